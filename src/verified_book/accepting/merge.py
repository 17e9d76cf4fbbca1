"""Joins what an author wrote with what a cell printed: lines that still agree stay as they are."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from verified_book.matching import agree, is_vacuous

_ANY = re.compile(r"(?<!\\)(?:\\\\)*\.\.\.")
_MOST_PAIRS = 10_000  # of lines that are compared with each other; a block has a few dozen
_MOST_SIMILARITIES = 900
_MOST_COVERED = 60  # lines that one with an ellipsis in it is held against

_KEPT, _KEPT_EMPTY, _LOST = 2.0, 0.5, -0.5


class _Step(NamedTuple):
    """The best way to go on from a pair of lines.

    Attributes:
        score: How well it and all after it does.
        old: How many old lines it takes.
        new: How many new lines it takes.
        keeps: Whether the old ones stand for the new ones.
    """

    score: float
    old: int
    new: int
    keeps: bool


def merge(old: str, new: str, got: str, exact: bool = False) -> list[int | str]:
    r"""The lines of a block: indices of old lines that stay, and new lines.

    Args:
        old: The expected text as the author wrote it.
        new: A text that agrees with the output.
        got: The output itself.
        exact: Whether white space counts.

    Examples:
        >>> merge("0.3\n...\nlast 1", "0.33\na\nb\nlast 2", "0.33\na\nb\nlast 2")
        [0, 1, 'last 2']
    """
    before, after = old.split("\n"), new.split("\n")
    if not is_vacuous(old) and agree(old, got, exact=exact):
        return list(range(len(before)))
    merged = _merged(before, after, got.split("\n"), exact)
    while merged and not _text(merged[-1], before).strip():
        merged.pop()
    while merged and not _text(merged[0], before).strip():
        merged.pop(0)
    text = joined(merged, old)
    if is_vacuous(text) or not agree(text, got, exact=exact):
        return list(after)
    return merged


def joined(lines: Sequence[int | str], old: str) -> str:
    """The text that merged lines make."""
    return "\n".join(_text(line, old.split("\n")) for line in lines)


def _text(line: int | str, old: Sequence[str]) -> str:
    return old[line] if isinstance(line, int) else line


def _merged(old: list[str], new: list[str], got: list[str], exact: bool) -> list[int | str]:
    if len(new) != len(got):  # a pattern that does not say which line it is for
        return list(new)

    many = len(old) * len(new) > _MOST_PAIRS

    def same(i: int, j: int) -> bool:
        # An ellipsis may stand for more than its line; where there are many, it does not.
        sure = not is_vacuous(old[i]) if many else not _ANY.search(old[i])
        return sure and agree(old[i], got[j], exact=exact)

    start, ends = 0, (len(old), len(got))
    while start < min(ends) and same(start, start):
        start += 1
    after = 0
    while after < min(ends) - start and same(ends[0] - after - 1, ends[1] - after - 1):
        after += 1
    i, j = start, start
    to_i, to_j = ends[0] - after, ends[1] - after
    merged: list[int | str] = list(range(start))
    if (to_i - i) * (to_j - j) > _MOST_PAIRS:
        merged += new[j:to_j]
    else:
        steps = _best_steps(old[:to_i], new[:to_j], got[:to_j], start, exact)
        while (i, j) != (to_i, to_j):
            step = steps[i, j]
            merged += range(i, i + step.old) if step.keeps else new[j : j + step.new]
            i, j = i + step.old, j + step.new
    return merged + list(range(to_i, len(old)))


def _best_steps(
    old: list[str], new: list[str], got: list[str], start: int, exact: bool
) -> dict[tuple[int, int], _Step]:
    """The best step from each pair of places, found from the end."""
    compares = (len(old) - start) * (len(got) - start) <= _MOST_SIMILARITIES
    best = {(len(old), len(got)): _Step(0.0, 0, 0, False)}
    for i in range(len(old), start - 1, -1):
        for j in range(len(got), start - 1, -1):
            if (i, j) in best:
                continue
            steps = []
            if j < len(got):
                steps.append(_Step(_LOST + best[i, j + 1].score, 0, 1, False))
            if i < len(old):
                lost = 0.0 if is_vacuous(old[i]) else _LOST
                steps.append(_Step(lost + best[i + 1, j].score, 1, 0, False))
            if i < len(old) and j < len(got):
                if not is_vacuous(old[i]):
                    like = SequenceMatcher(None, old[i], new[j]).ratio() if compares else 0.1
                    steps.append(_Step(like + best[i + 1, j + 1].score, 1, 1, False))
                for covered in _agreeing(old[i], got[j:], exact):
                    score = _worth(old[i]) + best[i + 1, j + covered].score
                    steps.append(_Step(score, 1, covered, True))
            best[i, j] = max(steps, key=lambda step: step.score)
    return best


def _worth(line: str) -> float:
    if not line.strip():
        return _KEPT_EMPTY
    return 0.0 if is_vacuous(line) else _KEPT


def _agreeing(line: str, got: list[str], exact: bool) -> list[int]:
    """For how many of the next lines of output an old line can stand."""
    if is_vacuous(line) and line.strip():
        return list(range(1, len(got) + 1))
    found = [1] if agree(line, got[0], exact=exact) else []
    some = _ANY.search(line)
    if some and agree(line[: some.end()], got[0], exact=exact):
        for covered in range(2, min(_MOST_COVERED, len(got)) + 1):
            if agree(line, "\n".join(got[:covered]), exact=exact):
                found.append(covered)
    return found
