"""Makes pages shorter: colors of code that are the text's own, spaces between tags."""

import re

# Operators, names, punctuation: the styles give them the color of the code around them, or nearly.
_PLAIN = re.compile(r'<span class="(?:n|nc|nn|o|p|w)">([^<]*)</span>')
# What is between the tags of a theme's templates, and must stay where it is text.
_AS_IT_IS = re.compile(r"(<(pre|textarea|script|style)\b.*?</\2>)", re.DOTALL)
_LINES = re.compile(r"[ \t]*\n\s*")


def minified(page: str) -> str:
    r"""A page whose lines have no indent, and none are empty, but where they are text.

    Examples:
        >>> minified('<p>a\n\n  b</p> <pre>c\n\n  <span class="o">+</span></pre>')
        '<p>a\nb</p> <pre>c\n\n  +</pre>'
    """
    parts = _AS_IT_IS.split(_PLAIN.sub(r"\1", page))
    # Each third is what stays, each one after it the name of its tag.
    kept = [part if place % 3 else _LINES.sub("\n", part) for place, part in enumerate(parts)]
    return "".join(part for place, part in enumerate(kept) if place % 3 != 2)
