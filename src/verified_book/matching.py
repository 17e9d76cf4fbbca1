"""Compares what a reader must see with what a cell printed.

Floats agree to the digits that are written, but with no integer; all else agrees exactly; runs of
white space are equal, and `...` stands for any text. :mod:`doctest` knows ELLIPSIS and pytest knows
NUMBER, but neither knows both at once.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

_EXPONENT = r"[eE][+-]?\d{1,4}"  # with more digits it is no number, but a digest, say
_FLOAT = (  # a number with a point or an exponent, and no part of a word
    rf"(?<![\w.])[+-]?(?:(?:\d+\.\d*|\.\d+)(?:{_EXPONENT})?|\d+{_EXPONENT})(?!\w|\.\d)"
)
_TOKEN = re.compile(rf"(?P<any>\.\.\.)|(?P<float>{_FLOAT})(?!\.\.)|(?P<space>\s+)|(?P<text>.)")
_GOT_FLOAT = re.compile(rf"\s*({_FLOAT})")
_SPACE = re.compile(r"\s+")
_MAYBE_SPACE = re.compile(r"\s*")


@dataclass(frozen=True)
class _Token:
    """A piece of an expected text.

    Attributes:
        kind: "any", "float", "space" or "text".
        text: The piece itself.
        signed: Whether a plus or minus that is no part of it stands before it.
    """

    kind: str
    text: str
    signed: bool = False


def half_unit(literal: str) -> Decimal:
    """Half a unit in the last written place of a float literal.

    Examples:
        >>> print(half_unit("1.25"), half_unit("3."), half_unit("1.5e-3"))
        0.005 0.5 0.00005
    """
    mantissa, _, exponent = literal.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    return Decimal(5).scaleb(int(exponent or 0) - digits - 1)


def is_vacuous(want: str) -> bool:
    """Whether an expected text agrees with everything: it is nothing but ellipses.

    Examples:
        >>> is_vacuous("..."), is_vacuous("tensor(...)")
        (True, False)
    """
    return not want.replace("...", "").strip()


def escape(text: str) -> str:
    """Text that stands for itself."""
    return text


def agree(want: str, got: str, exact: bool = False) -> bool:
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
        signed = want[max(match.start() - 1, 0) : match.start()] in ("+", "-")
        yield _Token(match.lastgroup or "", match.group(), signed)
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
    # Not the 0.5 of -0.5, where an ellipsis would swallow the sign.
    if text[max(number.start(1) - 1, 0) : number.start(1)] in ("+", "-") and not token.signed:
        return None
    # Decimal: the literals are compared as they are written, whatever their size.
    difference = abs(Decimal(number.group(1)) - Decimal(token.text))
    return number.end() if difference <= half_unit(token.text) else None
