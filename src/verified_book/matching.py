r"""Compares what a reader must see with what a cell printed.

:mod:`doctest` knows ELLIPSIS and pytest knows NUMBER, but neither knows both at once. Here:

* **Floats** agree to the digits that are written, and never with an integer. One without decimals,
  as in `[0. 1.]` or `1.e+03`, agrees with what is whole, or all but (`literals.NEARLY`). In prose
  (`It is 7.`: white space or the end follows, no brackets are around it) the point is a full stop,
  and `7.` agrees with `7.` alone. Which words are floats, :mod:`verified_book.literals` says.
* **All else agrees exactly**, integers too.
* **White space** is whatever `str.isspace` says, no-break blanks and line separators too. Any run
  equals any other, none counts at both ends, and none need stand before a float, since torch pads:
  unless a letter, a digit, `_` or `.` is before it.
* **An ellipsis**, `...`, stands for any text, and for none. It ends neither inside a number nor
  between a number and its sign: `...5` is `x 5` and `x5`, but not `15`, `-5`, `0.5` or `1e5`. It
  may begin inside one: digits directly before it are a beginning, as `1.5...` is of `1.5432`.
* **Backslashes** directly before `...` are an escape: two make one, and one that is left over makes
  three dots of the ellipsis. Elsewhere they are plain.

The lines of two texts can be compared one by one. A bracket that closes on another line is not seen
there, which is stricter: `3.` is then taken for `3` and a full stop. Lines that agree make texts
that agree, unless an ellipsis alone on its line stands for an empty one (two blanks for one).

How, in a time that grows as the texts do: ellipses cut the expected text into pieces, and floats
cut a piece into gaps. Where a piece begins decides where it ends, and of two places for it, the one
that begins earlier does not end later, since floats do not overlap. So each piece in turn may take
its leftmost place: any match can be moved there, and what follows only gains room.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from verified_book.literals import SIGN, Literal, floats, half_unit, stands_for

__all__ = ["agree", "escape", "half_unit", "is_vacuous"]

_TAB = 8
_ELLIPSIS = re.compile(r"(?<!\\)(\\*+)\.\.\.")
_PADDING = re.compile(r"(?<![\w.]) ")
_INSIDE_NUMBER = re.compile(  # which is no float; but not after dots that are the ellipsis' own
    rf"(?<!\.\.\.)(?:(?<=\d)\.?\d|(?<=\.)\d|(?<={SIGN})\d|(?<=\d,)\d\d\d(?!\d))"
)


class _Piece(NamedTuple):
    """A text without ellipses: a gap and a float, again and again, and a tail."""

    gaps: list[str]  # without padding
    floats: list[Literal]
    tail: str
    whole: str  # the text that it is a part of


def agree(want: str, got: str, exact: bool = False) -> bool:
    """Whether the text `got` is what `want` describes.

    Args:
        want: The expected text, as the module describes it.
        got: What was printed.
        exact: Whether line breaks, indentation and runs of blanks count too. Still free are an
            indentation that all lines share, white space at the ends of lines, and blank lines
            before the first line and after the last. Tabs are blanks up to every eighth column.

    Examples:
        >>> agree("tensor([1.23, -0.5, 3.])", "tensor([ 1.2345, -0.5000,  3.0000])")
        True
        >>> agree("tensor([3.])", "tensor([3.4])"), agree("torch.Size([2])", "torch.Size([5])")
        (False, False)
        >>> agree("tensor([[ 1.19, ..., 0.58]])", "tensor([[ 1.1918, -0.1481, 0.4814]])")
        False
        >>> agree("a  b", "a b"), agree("a  b", "a b", exact=True)
        (True, False)
    """
    (text,) = _pieces([_laid_out(got, exact, len)], exact)
    first, *rest = _pieces(_between_ellipses(_laid_out(want, exact, _width)), exact)
    end = _end(first, text, 0) if first.gaps[:1] in ([], text.gaps[:1]) else None
    if not rest:
        return end == len(text.whole)
    for piece in rest[:-1]:
        end = None if end is None else _next_end(piece, text, end)
    return end is not None and _closes(rest[-1], text, end)


def is_vacuous(want: str) -> bool:
    r"""Whether an expected text agrees with everything: it is nothing but ellipses.

    Examples:
        >>> is_vacuous("..."), is_vacuous("tensor(...)"), is_vacuous(r"\...")
        (True, False, False)
    """
    return not "".join(_between_ellipses(want)).strip()


def escape(text: str) -> str:
    r"""Makes of a text an expected text in which its dots stand for themselves.

    Examples:
        >>> print(escape("[0 1 2 ... 997 998]"))
        [0 1 2 \... 997 998]
    """
    return _ELLIPSIS.sub(r"\1\1\\...", text)


def _between_ellipses(want: str) -> list[str]:
    """Cuts an expected text at its ellipses, and removes the escapes."""
    pieces: list[list[str]] = [[]]
    last = 0
    for match in _ELLIPSIS.finditer(want):
        backslashes, escaped = divmod(len(match[1]), 2)
        pieces[-1] += [want[last : match.start()], "\\" * backslashes]
        if escaped:
            pieces[-1].append("...")
        else:
            pieces.append([])
        last = match.end()
    pieces[-1].append(want[last:])
    return ["".join(piece) for piece in pieces]


def _width(want: str) -> int:
    return len("...".join(_between_ellipses(want)))


def _laid_out(text: str, exact: bool, width: Callable[[str], int]) -> str:
    """A text without the white space that does not count."""
    if not exact:
        return " ".join(text.split())
    lines = [_without_tabs(line, width).rstrip() for line in text.split("\n")]
    margin = min((len(line) - len(line.lstrip(" ")) for line in lines if line), default=0)
    return "\n".join(line[margin:] for line in lines).strip("\n")


def _without_tabs(line: str, width: Callable[[str], int]) -> str:
    *cells, last = line.split("\t")
    return "".join(cell + " " * (_TAB - width(cell) % _TAB) for cell in cells) + last


def _pieces(texts: list[str], exact: bool) -> list[_Piece]:
    """Takes the texts between ellipses apart, each in the context of the whole."""
    whole = "...".join(texts)
    literals = floats(whole)
    pieces, start = [], 0
    for text in texts:
        end = start + len(text)
        own = literals[bisect_left(literals, (start,)) : bisect_left(literals, (end,))]
        gaps = []
        for literal in own:
            padding = 0 if exact else bool(_PADDING.match(whole, literal.start - 1))
            gaps.append(whole[start : literal.start - padding])
            start = literal.end
        if gaps and not exact:
            gaps[0] = "" if gaps[0] == " " else gaps[0]
        pieces.append(_Piece(gaps, own, whole[start:end], whole))
        start = end + len("...")
    return pieces


def _end(piece: _Piece, text: _Piece, index: int) -> int | None:
    """Where a piece ends whose first float is at `index` of a text's; its first gap is not read."""
    after = index + len(piece.floats)
    found = text.floats[index:after]
    if len(found) < len(piece.floats) or piece.gaps[1:] != text.gaps[index + 1 : after]:
        return None
    start = found[-1].end if found else 0
    if all(map(stands_for, piece.floats, found)) and text.whole.startswith(piece.tail, start):
        return start + len(piece.tail)
    return None


def _closes(piece: _Piece, text: _Piece, start: int) -> bool:
    """Whether a piece fits at the end of a text, at `start` or later."""
    if not piece.floats:
        begin = len(text.whole) - len(piece.tail)
        return begin >= start and text.whole.endswith(piece.tail) and _may_begin(text, begin)
    index = len(text.floats) - len(piece.floats)
    fits = index >= 0 and _first_gap_fits(piece, text, index, start)
    return fits and _end(piece, text, index) == len(text.whole)


def _next_end(piece: _Piece, text: _Piece, start: int) -> int | None:
    """Where the leftmost place of a piece ends that begins at `start` or later."""
    if not piece.floats:
        begin = text.whole.find(piece.tail, start)
        while begin >= 0 and not _may_begin(text, begin):
            begin = text.whole.find(piece.tail, begin + 1)
        return begin + len(piece.tail) if begin >= 0 else None

    # All places at once, as bits (Baeza-Yates and Gonnet, https://doi.org/10.1145/135239.135243).
    with_gap, with_text = defaultdict[str, int](int), defaultdict[tuple[str, bool], int](int)
    for place, (gap, literal) in enumerate(zip(piece.gaps, piece.floats, strict=True)):
        with_gap[gap] |= 1 << place
        with_text[literal.text, literal.stop] |= 1 << place
    fits = 0  # bit i: the piece fits from its begin to its float i, and that is the last float read
    for index in range(bisect_left(text.floats, (start,)), len(text.floats)):
        literal = text.floats[index]
        candidates = fits << 1 & with_gap[text.gaps[index]]
        candidates |= _first_gap_fits(piece, text, index, start)
        fits = 0
        while candidates:
            wanted = piece.floats[(candidates & -candidates).bit_length() - 1]
            alike = candidates & with_text[wanted.text, wanted.stop]
            fits |= alike if stands_for(wanted, literal) else 0
            candidates ^= alike
        if fits >> len(piece.floats) - 1 and text.whole.startswith(piece.tail, literal.end):
            return literal.end + len(piece.tail)
    return None


def _first_gap_fits(piece: _Piece, text: _Piece, index: int, start: int) -> bool:
    """Whether a piece's first gap fits before a float, and begins at `start` or later."""
    gap, end = piece.gaps[0], text.floats[index].start
    if gap:  # between it and the float may be padding
        end = len(text.gaps[index]) + (text.floats[index - 1].end if index else 0)
    begin = end - len(gap)
    return begin >= start and text.whole.startswith(gap, begin) and _may_begin(text, begin)


def _may_begin(text: _Piece, begin: int) -> bool:
    """Whether an ellipsis may end here: in no number, but before a point at the end of one."""
    index = bisect_left(text.floats, (begin,))
    if index and begin < text.floats[index - 1].end - text.floats[index - 1].text.endswith("."):
        return False
    return not _INSIDE_NUMBER.match(text.whole, begin)
