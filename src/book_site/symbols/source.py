"""Finds variables in a piece of Python, and in the markup that shows it."""

import html
import re
from collections import defaultdict
from collections.abc import Iterable

# Neither the words of a comment nor those of a string are variables.
_WORDS = re.compile(r"#[^\n]*|(\"\"\"|'''|\"|')(?:\\.|(?!\1).)*?\1", re.DOTALL)
_PIECE = re.compile(r"<[^>]*>|&[^;\s]+;|.", re.DOTALL)


def places(source: str, variable: str) -> list[tuple[int, int]]:
    """Where a variable stands.

    Examples:
        >>> places("y = self.y + y  # y", "y")
        [(0, 1), (13, 14)]
        >>> places("y = self.y", "self.y")
        [(4, 10)]
    """
    plain = _WORDS.sub(lambda words: " " * len(words[0]), source)
    name = rf"(?<![\w.]){re.escape(variable)}(?!\w)"
    return [match.span() for match in re.finditer(name, plain)]


def marked(markup: str, variables: Iterable[tuple[str, int]]) -> str:
    """The markup of a source, in which each variable is in a span that has classes.

    Args:
        markup: What Pygments has made of the source, within its `pre`.
        variables: Names, each with the number of a symbol; the variable of several has a class of
            each.

    Examples:
        >>> marked("<b>y</b> = <b>x</b>", [("x", 3)])
        '<b>y</b> = <span class="symbol symbol-3"><b>x</b></span>'
        >>> marked("x", [("x", 3), ("x", 5)])
        '<span class="symbol symbol-3 symbol-5">x</span>'
    """
    pieces = _PIECE.findall(markup)
    shown = [place for place, piece in enumerate(pieces) if not _is_tag(piece)]
    text = "".join(html.unescape(pieces[place])[:1] for place in shown)
    before: dict[int, str] = defaultdict(str)
    after: dict[int, str] = defaultdict(str)
    classes: dict[str, str] = defaultdict(lambda: "symbol")
    for variable, number in variables:
        classes[variable] += f" symbol-{number}"
    for variable in sorted(classes, key=len):  # the outer one last
        for start, end in places(text, variable):
            first, last = shown[start], shown[end - 1]
            while first and _is_tag(pieces[first - 1]) and not pieces[first - 1].startswith("</"):
                first -= 1
            opened = sum(_depth(piece) for piece in pieces[first : last + 1])
            while opened > 0 and last + 1 < len(pieces) and _is_tag(pieces[last + 1]):
                last += 1
                opened += _depth(pieces[last])
            if opened == 0:
                before[first] = f'<span class="{classes[variable]}">{before[first]}'
                after[last] += "</span>"
    return "".join(before[n] + piece + after[n] for n, piece in enumerate(pieces))


def _is_tag(piece: str) -> bool:
    return piece.startswith("<") and len(piece) > 1


def _depth(piece: str) -> int:
    return 0 if not _is_tag(piece) else -1 if piece.startswith("</") else 1
