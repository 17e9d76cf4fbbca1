"""Compares what a reader must see with what a cell printed.

Floats agree to the digits that are written, integers exactly; runs of white space are equal, and
`...` stands for any text. :mod:`doctest` knows ELLIPSIS and pytest knows NUMBER, but neither knows
both at once.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_WANTED_FLOAT = r"(?<![\w.])[+-]?(?:\d+\.\d*(?!\.)|\.\d+)(?:[eE][+-]?\d+)?(?!\w)|(?<![\w.])[+-]?\d+[eE][+-]?\d+(?!\w)"
_TOKEN = re.compile(rf"(?P<any>\.\.\.)|(?P<float>{_WANTED_FLOAT})|(?P<space>\s+)|(?P<text>.)")
_GOT_FLOAT = re.compile(rf"\s*({_NUMBER})(?!\w)")
_SPACE = re.compile(r"\s+")
_MAYBE_SPACE = re.compile(r"\s*")


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


def half_unit(literal: str) -> float:
    """Half a unit in the last written place of a float literal.

    Examples:
        >>> half_unit("1.25"), half_unit("3."), half_unit("1.5e-3")
        (0.005, 0.5, 5e-05)
    """
    mantissa, _, exponent = literal.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - digits)


def is_vacuous(want: str) -> bool:
    """Whether an expected text agrees with everything: it is nothing but ellipses.

    Examples:
        >>> is_vacuous("..."), is_vacuous("tensor(...)")
        (True, False)
    """
    return not want.replace("...", "").strip()


def agree(want: str, got: str) -> bool:
    """Whether the text `got` is what `want` describes.

    Examples:
        >>> agree("tensor([1.23, -0.5])", "tensor([ 1.2345, -0.5000])")
        True
        >>> agree("torch.Size([2, 4])", "torch.Size([2, 5])")
        False
        >>> agree("tensor([[ 1.19, ..., 0.58]])", "tensor([[ 1.1918, -0.1481, 0.4814]])")
        False
    """
    tokens = list(_tokens(want.strip()))
    text = got.strip()

    @cache
    def matches(index: int, position: int) -> bool:
        while index < len(tokens):
            token = tokens[index]
            if token.kind == "any":
                rest = range(position, len(text) + 1)
                return any(matches(index + 1, start) for start in rest)
            end = _end_of(token, text, position, before_number=_is_number(tokens, index + 1))
            if end is None:
                return False
            index, position = index + 1, end
        return position == len(text)

    return matches(0, 0)


def _tokens(want: str) -> Iterator[_Token]:
    """Splits an expected text; neighbouring plain characters become one token."""
    plain = ""
    for match in _TOKEN.finditer(want):
        if match.lastgroup == "text":
            plain += match.group()
            continue
        if plain:
            yield _Token("text", plain)
            plain = ""
        yield _Token(match.lastgroup or "", match.group())
    if plain:
        yield _Token("text", plain)


def _is_number(tokens: list[_Token], index: int) -> bool:
    return index < len(tokens) and tokens[index].kind == "float"


def _end_of(token: _Token, text: str, position: int, before_number: bool) -> int | None:
    """Where `token` ends in `text` when it starts at `position`; None when it does not match."""
    if token.kind == "text":
        return position + len(token.text) if text.startswith(token.text, position) else None
    if token.kind == "space":
        # torch pads numbers to a common width, so blanks before one may be missing.
        blank = (_MAYBE_SPACE if before_number else _SPACE).match(text, position)
        return blank.end() if blank else None
    number = _GOT_FLOAT.match(text, position)
    if number is None:
        return None
    difference = abs(float(number.group(1)) - float(token.text))
    rounding = 1e-9 * abs(float(token.text))  # of the decimal literals themselves
    return number.end() if difference <= half_unit(token.text) + rounding else None
