"""Makes pages shorter: colors of code that are the text's own, drawings, spaces."""

import re
from collections.abc import Mapping
from pathlib import Path

from book_site.light import drawings

_RULE = re.compile(
    r"^(?P<theme>html\[[^\]]*\])? *\.highlight(?: \.(?P<name>\w+))? *\{(?P<body>[^}]*)\}",
    re.MULTILINE,
)
_DRAWING = re.compile(r"<svg\b(?![^>]*preserveAspectRatio).*?</svg>", re.DOTALL)
# What matplotlib calls its groups: the same in each drawing of a page, and nothing refers to them.
_GROUP = re.compile(r'<g id="[A-Za-z][\w.]*_\d+">')
_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
# Operators are a fifth of all tokens; they have the color of the text around them.
_QUIET = {"o"}
_CODE = re.compile(r'(<div class="highlight">)(.*?)(?=</div>)', re.DOTALL)
_START = re.compile(r"(<pre[^>]*>)<span></span>(?!\n)")
# What is between the tags of a theme's templates, and must stay where it is text.
_AS_IT_IS = re.compile(r"(<(pre|textarea|script|style)\b.*?</\2>)", re.DOTALL)
_LINES = re.compile(r"[ \t]*\n\s*")
# Words that no line can break in, with or without the rule that forbids it.
_WORD = re.compile(r'<span class="pre">([\w.()]+)</span>')


def shorten(pages: dict[Path, str], static: Path) -> None:
    """Shortens pages that were just written."""
    plain = plain_names(static / "pygments.css")
    span = re.compile(rf'<span class="(?:{"|".join(plain)})">([^<]*)</span>') if plain else None
    for file, text in pages.items():
        if span:
            text = _CODE.sub(lambda block: block[1] + span.sub(r"\1", block[2]), text)
        text = _START.sub(r"\1", text)
        pages[file] = without_spaces(_WORD.sub(r"\1", with_short_drawings(text)))


def plain_names(file: Path) -> list[str]:
    """The kinds of token that a stylesheet of Pygments gives the color of all text in a block."""
    if not file.is_file():
        return []
    found = list(_RULE.finditer(file.read_text(encoding="utf-8")))
    own = {rule["theme"]: _color(rule["body"]) for rule in found if not rule["name"]}
    styled = {
        rule["name"]
        for rule in found
        if rule["name"] and rule["body"].strip() != f"color: {own.get(rule['theme'])}"
    }
    return sorted(({"n", "p", "w", "nn", "nc"} - styled) | (_QUIET if found else set()))


def _color(body: str) -> str:
    found = re.search(r"(?<![-\w])color: ([^;]+?)\s*(?:;|$)", body)
    return found[1] if found else ""


def with_short_drawings(page: str) -> str:
    """A page whose drawings are shortened; HTML knows what they are without a namespace."""
    names = drawings.names_in(page)
    return _DRAWING.sub(lambda drawing: shortened(drawing[0], names).replace(_NAMESPACE, ""), page)


def shortened(drawing: str, names: Mapping[str, str] | None = None) -> str:
    """A drawing in fewer bytes, whose groups have no names.

    Args:
        drawing: An `svg` element.
        names: Other names for those that matplotlib makes of digests.
    """
    return drawings.shortened(_GROUP.sub("<g>", drawing), names)


def without_spaces(page: str) -> str:
    r"""A page whose lines have no indent, and none are empty, but where they are text.

    Examples:
        >>> without_spaces("<p>a\n\n  b</p> <pre>c\n\n  d</pre>")
        '<p>a\nb</p> <pre>c\n\n  d</pre>'
    """
    parts = _AS_IT_IS.split(page)
    # Each third is what stays, each one after it the name of its tag.
    kept = [part if place % 3 else _LINES.sub("\n", part) for place, part in enumerate(parts)]
    return "".join(part for place, part in enumerate(kept) if place % 3 != 2)
