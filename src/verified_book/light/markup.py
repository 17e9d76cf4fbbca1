"""Makes pages shorter that look the same: colors that are the text's own, digits that none sees."""

import re
from pathlib import Path

_RULE = re.compile(
    r"^(?P<theme>html\[[^\]]*\])? *\.highlight(?: \.(?P<name>\w+))? *\{(?P<body>[^}]*)\}",
    re.MULTILINE,
)
_DRAWING = re.compile(r"<svg\b(?![^>]*preserveAspectRatio).*?</svg>", re.DOTALL)
_PLACES = re.compile(r' (?:d|x|y|x1|x2|y1|y2|cx|cy|points)="[^"]*"')
# What matplotlib calls its groups: the same in each drawing of a page, and nothing refers to them.
_GROUP = re.compile(r'<g id="[A-Za-z][\w.]*_\d+">')
_DIGITS = re.compile(r"(\.\d\d)\d+")


def shorten(pages: dict[Path, str], static: Path) -> None:
    """Shortens pages that were just written."""
    plain = plain_names(static / "pygments.css")
    span = re.compile(rf'<span class="(?:{"|".join(plain)})">([^<]*)</span>') if plain else None
    for file, text in pages.items():
        if span:
            text = span.sub(r"\1", text)
        pages[file] = _DRAWING.sub(lambda drawing: rounded(drawing[0]), text)


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
    return sorted({"n", "p", "w", "nn", "nc", "o"} - styled)


def _color(body: str) -> str:
    found = re.search(r"(?<![-\w])color: ([^;]+?)\s*(?:;|$)", body)
    return found[1] if found else ""


def rounded(drawing: str) -> str:
    """A drawing whose places have two digits, a hundredth of a point, and whose groups no names.

    Examples:
        >>> rounded('<path d="M 1.23456 2" transform="scale(0.01563)"/>')
        '<path d="M 1.23 2" transform="scale(0.01563)"/>'
    """
    drawing = _GROUP.sub("<g>", drawing)
    drawing = re.sub(r">\s+<", "><", drawing)
    return _PLACES.sub(lambda places: " ".join(_DIGITS.sub(r"\1", places[0]).split("\n")), drawing)
