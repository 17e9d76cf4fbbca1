"""Finds symbols in an equation's TeX and puts them into groups that have a class."""

import re
from collections.abc import Sequence

# Words, names of environments and the room below a line are one token: no symbol is within.
_TOKEN = re.compile(
    r"\\(?:begin|end|text\w*|math[a-z]+|operatorname\*?|label|tag)\s*\{[^{}]*\}"
    r"|\\\\(?:\[[^\]]*\])?|\\[A-Za-z]+|\\.|\s+|.",
    re.DOTALL,
)


def tokens(tex: str) -> list[str]:
    r"""The tokens of TeX; joined they are what they were.

    Examples:
        >>> tokens(r"\mathrm{LN}(x_i)")
        ['\\mathrm{LN}', '(', 'x', '_', 'i', ')']
    """
    return _TOKEN.findall(tex)


def count(tex: str, symbol: str) -> int:
    r"""How often a symbol stands in an equation.

    Examples:
        >>> count(r"\sqrt{x_i} + y", "x"), count(r"\text{max } y", "x")
        (1, 0)
    """
    return marked(tex, [symbol]).count(r"{\htmlClass{")


def marked(tex: str, symbols: Sequence[str], numbers: Sequence[int] = ()) -> str:
    r"""An equation in which each symbol, with its indices, is in a group that has a class.

    Where several symbols could stand, the longest does: `x_i` before `x`.

    Args:
        tex: The equation.
        symbols: The TeX of each symbol.
        numbers: The number of each, which its class has; their places if not given.

    Examples:
        >>> print(marked("x_i + y", ["x"]))
        {\htmlClass{symbol symbol-0}{x_i}} + y
    """
    wanted = [(_solid(tokens(symbol)), number) for number, symbol in enumerate(symbols)]
    wanted.sort(key=lambda each: -len(each[0]))
    return _marked(
        tokens(tex), [(found, (numbers or range(len(symbols)))[n]) for found, n in wanted]
    )


def _solid(found: list[str]) -> list[str]:
    return [token for token in found if not token.isspace()]


def _marked(found: list[str], wanted: list[tuple[list[str], int]]) -> str:
    written, place = "", 0
    while place < len(found):
        for symbol, number in wanted:
            end = _end(found, place, symbol)
            if end:
                rest = _end_of_indices(found, end)
                inside = "".join(found[place:end]) + _marked(found[end:rest], wanted)
                # The outer braces make it one argument, wherever it stands.
                written += rf"{{\htmlClass{{symbol symbol-{number}}}{{{inside}}}}}"
                place = rest
                break
        else:
            written += found[place]
            place += 1
    return written


def _end(found: list[str], place: int, symbol: list[str]) -> int:
    """Where a symbol that begins at a place ends; 0 if none does."""
    if not symbol or found[place].isspace():
        return 0
    for token in symbol:
        while place < len(found) and found[place].isspace():
            place += 1
        if place == len(found) or found[place] != token:
            return 0
        place += 1
    return place


def _end_of_indices(found: list[str], place: int) -> int:
    """Where the indices, powers and primes end that begin at a place."""
    while place < len(found):
        if found[place] == "'":
            place += 1
        elif found[place] in ("_", "^") and place + 1 < len(found):
            place += 1
            depth = 0
            while place < len(found):
                depth += (found[place] == "{") - (found[place] == "}")
                place += 1
                if depth <= 0 and not found[place - 1].isspace():
                    break
        else:
            break
    return place
