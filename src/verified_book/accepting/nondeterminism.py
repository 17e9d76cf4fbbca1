"""What an output says only once: known kinds of it, and what two runs show to move."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from difflib import SequenceMatcher
from pathlib import Path

from verified_book.accepting import sets
from verified_book.matching import agree, escape, is_vacuous

_NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_UNIT = r"(?:ns|us|µs|μs|ms|s|sec|secs|seconds|min|minutes)\b"
_TIME = r"\b\d\d:\d\d:\d\d(?:\.\d+)?\b"
_UUID = r"\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b"

KINDS: dict[str, str] = {
    "a memory address": r"\bat 0x[0-9a-fA-F]{6,}\b|\b0x[0-9a-fA-F]{9,}\b",
    "a timing": (
        rf"Wall time:|CPU times:|{_NUMBER} ?{_UNIT} ± |(?i:\b(?:elapsed|took)\b)\D{{0,20}}{_NUMBER}"
        rf"|(?i:\btime\b)\D{{0,20}}{_NUMBER} ?{_UNIT}"
        rf"|\bin {_NUMBER} ?{_UNIT}|\d(?:it/s|s/it)\b"
    ),
    "a time of day": rf"(?<!\d[T ]){_TIME}",
    "a temporary path": r"/tmp/\w|/var/folders/|\\Temp\\|\btmp[a-z0-9_]{8}\b",
    "a process id": r"(?i:\bpid\b)\W{0,3}\d+|\bipykernel_\d+",
    "a random UUID": _UUID,
}
"""Patterns of what differs from run to run, by what it is."""

# What moves as a whole, in a text that has moved: a second run may show a part of it once more.
_MOVES = re.compile(
    rf"{_NUMBER} ?{_UNIT} ± {_NUMBER} ?{_UNIT}|\b[\d,]+ loops? each|(?<=Wall time: )\S.*"
    rf"|(?<=CPU times: )\S.*|\b[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} [ \d]\d {_TIME} \d{{4}}\b"
    rf"|{_TIME}|{_UUID}"
)

_TOKENS = (
    rf"0x[0-9a-fA-F]+|(?:(?<![\w.])[+-])?{_NUMBER}|[^\W\d]\w*|\s+|.",
    r"\s+|\S+",
    r"\n|[^\n]+",
)

_MOST_PAIRS = 1_000_000  # of tokens that are matched at all
_MANY_PAIRS = 100_000


def folders(source: str | Path) -> tuple[str, ...]:
    """The folders whose names only this machine has, the inner ones first: of a book and others."""
    home = os.path.expanduser("~")  # itself where the user has none, as in some containers
    found = [Path(source), Path(sys.prefix), Path(sys.base_prefix), Path(home)]
    names = {str(name) for path in found for name in (path, path.resolve()) if len(path.parts) > 1}
    return tuple(sorted(names, key=lambda name: (-len(name), name)))


def _pattern(names: Sequence[str]) -> str:
    return "|".join(rf"(?<![\w/]){re.escape(name)}(?![\w-])" for name in names)


def _today() -> str:
    """A pattern of this day as it is usually written."""
    now = date.today()
    day, year = rf"0?{now.day}", now.year
    month = rf"(?:{now:%B}|{now:%b})"
    weekday = rf"(?:\b(?:{now:%A}|{now:%a}),? +)?"
    return (
        rf"\b{now:%Y-%m-%d}(?!\d)|\b{now:%d/%m/%Y}\b|\b{now:%m/%d/%Y}\b|\b{now:%d.%m.%Y}\b"
        rf"|{weekday}\b{day} {month},? {year}\b|{weekday}\b{month} +{day},? {year}\b"
        rf"|\b{now:%a %b} +{day}(?= )"
    )


def without_places(text: str, names: Sequence[str]) -> str:
    """An expected text with `...` for this day, and for folders that only this machine has.

    Examples:
        >>> without_places("'/home/me/book/data'", ["/home/me/book", "/home/me"])
        "'.../data'"
    """
    text = re.sub(_today(), "...", text)
    return re.sub(_pattern(names), "...", text) if names else text


def kinds_in(
    line: str, names: Sequence[str] = (), *, displayed: Iterable[str] = ()
) -> Iterator[str]:
    """What in a line of output will differ in the next run, or on another machine.

    Args:
        line: The line.
        names: Folders that only this machine has.
        displayed: The texts of values that IPython has laid out, whose sets it may have sorted.

    Examples:
        >>> list(kinds_in("<object object at 0x7f3a5c0d1b20>"))
        ['a memory address']
        >>> list(kinds_in("{'a', 'b'}")), list(kinds_in("{'a', 'b'}", displayed=["{'a', 'b'}"]))
        (['the order of a set'], [])
    """
    for kind, pattern in KINDS.items():
        if re.search(pattern, line):
            yield kind
    if sets.moves(line) and not any(
        line in text.split("\n") and sets.is_laid_out(text) for text in displayed
    ):
        yield "the order of a set"
    if names and re.search(_pattern(names), line):
        yield "a folder of this machine"
    if re.search(_today(), line):
        yield "the date"


def mask(first: str, second: str, exact: bool = False) -> str | None:
    """The expected text for the outputs of two runs, with `...` for what moved.

    Returns:
        A text that agrees with both; None if they have nothing in common to be held against.

    Examples:
        >>> mask("step 1 took 0.31 s", "step 1 took 0.29 s")
        'step 1 took ... s'
    """
    one, two = _MOVES.sub("\ue000", first), _MOVES.sub("\ue001", second)
    for token in _TOKENS:
        tokens = re.findall(token, one), re.findall(token, two)
        if len(tokens[0]) * len(tokens[1]) > _MOST_PAIRS:
            continue  # larger ones are fewer
        masked = _masked(*tokens)
        if _holds(masked, first, second, exact):
            return masked
    return None


def mask_lines(new: str, first: str, second: str, exact: bool = False) -> str | None:
    """The same for an expected text that agrees with the first; its lines stay where they can."""
    lines, before, after = new.split("\n"), first.split("\n"), second.split("\n")
    if len(lines) == len(before) == len(after):
        masked = [
            line
            if agree(line, one, exact=exact) and agree(line, two, exact=exact)
            else mask(one, two, exact) or "..."
            for line, one, two in zip(lines, before, after, strict=True)
        ]
        text = "\n".join(masked)
        if _holds(text, first, second, exact):
            return text
    return mask(first, second, exact)


def _holds(text: str, first: str, second: str, exact: bool) -> bool:
    """Whether a text can be held against two outputs, and agrees with both."""
    return not is_vacuous(text) and all(agree(text, got, exact=exact) for got in (first, second))


def _masked(first: list[str], second: list[str]) -> str:
    """Tokens that two texts share; dots next to what moved, and marks between, move with it."""
    parts: list[str | None] = []  # None for what moved
    # Where the same few tokens stand everywhere, to match each of them takes cubic time.
    many = len(first) * len(second) > _MANY_PAIRS
    for name, start, end, *_ in SequenceMatcher(None, first, second, many).get_opcodes():
        part = "".join(first[start:end]) if name == "equal" else None
        if part is not None and parts and part.startswith("."):
            part = part.lstrip(".") or None
        if part is None and parts and (before := parts[-1]) is not None:
            parts[-1] = before.rstrip(".") or None
        parts.append(part)
    joined: list[str | None] = []
    for place, part in enumerate(parts):
        between = 0 < place < len(parts) - 1 and not re.search(r"[\w\s]", part or "")
        if part is None or between:
            if not joined or joined[-1] is not None:
                joined.append(None)
        else:
            joined.append(part)
    return "".join("..." if part is None else escape(part) for part in joined)
