"""Floats as they are written in a text: which there are, and when one stands for another.

A float has a point or an exponent, or is `nan` or `inf`; it may have a sign and, being imaginary, a
`j` at its end. What is part of a word is none: `v1.5`, `3.5ms`, `1.2.3`, `2024.05.01`, `0x7f`, a
digest. Nor is the `1.5` of `1.5...`, which may go on.
"""

import re
from decimal import Decimal
from typing import NamedTuple

#: A float without decimals stands for what is off by this share of a unit, or of its value if that
#: is more; but by no more than a hundredth of a unit, lest it stand for another whole number.
NEARLY = Decimal("1e-6")

SIGN = "[-+\N{MINUS SIGN}]"
_EXPONENT = r"[eE][+-]?\d{1,4}"  # with more digits it is no number, but a digest, say
_FLOAT = re.compile(
    rf"(?:{SIGN}|(?<![\w.])|(?<=\.\.\.)(?!\.))"
    # The group of the exponent is not possessive: before Python 3.11.5 `re` took "e" alone for it.
    rf"(?:(?:\d++\.\d*+|\.\d++)(?:{_EXPONENT})?|\d++{_EXPONENT}|nan|inf)j?+(?!\w|\.\d|\.\.)"
)
_BRACKET_OR_STOP = re.compile(r"[(\[{]|[)\]}]|(?<=\d)\.(?!\S)")


class Literal(NamedTuple):
    """A float in a text.

    Attributes:
        start: Where it starts.
        end: Where it ends.
        text: How it is written.
        stop: Whether its point may be a full stop: outside brackets, before white space or the end.
    """

    start: int
    end: int
    text: str
    stop: bool


def floats(text: str) -> list[Literal]:
    """The floats in a text, in their order.

    Examples:
        >>> [literal.text for literal in floats("[1. -2.5e-3] and x=.5, but 12 is v1.5")]
        ['1.', '-2.5e-3', '.5']
        >>> floats(".5e is none, nor is 1.5e-")
        []
        >>> [literal.stop for literal in floats("(of 1. and 3.) It is 7.")]
        [False, False, True]
    """
    stops = _full_stops(text)
    return [
        Literal(match.start(), match.end(), match[0], match.end() - 1 in stops)
        for match in _FLOAT.finditer(text)
    ]


def stands_for(want: Literal, got: Literal) -> bool:
    """Whether `got` is what `want` says: written the same, or equal to the digits that it has."""
    if want.text == got.text:
        return True
    if want.stop or got.stop or "n" in want.text + got.text:  # nan, inf
        return False
    (wanted, imaginary), (value, also) = _parts(want.text), _parts(got.text)
    # Decimal: the literals are compared as they are written, whatever their size.
    return imaginary == also and abs(Decimal(value) - Decimal(wanted)) <= _tolerance(wanted)


def half_unit(literal: str) -> Decimal:
    """Half a unit in the last written place of a float literal.

    Examples:
        >>> print(half_unit("1.25"), half_unit("1e-07"), half_unit("1.5e-3"))
        0.005 5E-8 0.00005
    """
    mantissa, _, exponent = literal.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    return Decimal(5).scaleb(int(exponent or 0) - digits - 1)


def _parts(text: str) -> tuple[str, bool]:
    """The number itself, and whether it is imaginary."""
    return text.removesuffix("j").replace("\N{MINUS SIGN}", "-"), text.endswith("j")


def _tolerance(literal: str) -> Decimal:
    mantissa, _, exponent = literal.lower().partition("e")
    if not mantissa.endswith("."):
        return half_unit(literal)
    unit, size = Decimal(1).scaleb(int(exponent or 0)), abs(Decimal(literal))
    if exponent and not size:
        return size  # 0.e+00 stands among numbers of any size
    return min(NEARLY * max(unit, size), unit / 100)


def _full_stops(text: str) -> set[int]:
    """The points after digits that may end a sentence; a bracket without a partner is text."""
    levels: list[list[int]] = [[]]  # of the points so far, those in each bracket that is open
    for match in _BRACKET_OR_STOP.finditer(text):
        if match[0] == ".":
            levels[-1].append(match.start())
        elif match[0] in "([{":
            levels.append([])
        elif len(levels) > 1:
            levels.pop()
    return {point for level in levels for point in level}
