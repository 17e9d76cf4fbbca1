"""The words that an HTML output shows, a line for each row of a table."""

from html.parser import HTMLParser
from itertools import zip_longest

_UNSEEN = {"style", "script", "template", "head", "title", "noscript"}
_DRAWN = {"svg", "math", "canvas", "video", "audio", "object", "iframe"}
_BREAKS = {"p", "div", "br", "li", "ul", "ol", "pre", "hr", "table", "caption", "section", "figure"}
_BREAKS |= {"article", "aside", "blockquote", "dd", "details", "dl", "dt", "figcaption", "footer"}
_BREAKS |= {"form", "header", "legend", "main", "nav", "option", "summary", "address", "fieldset"}
_BREAKS |= {"hgroup", "menu", "search"}
_BREAKS |= {f"h{level}" for level in range(1, 7)}
_VOID = {"br", "hr", "img", "input", "link", "meta", "col", "source", "wbr"}
_CELL = {"td", "th"}


class _Words(HTMLParser):
    """Collects lines of cells; text outside of a table is a line with one cell.

    A table within a cell is part of its text.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[list[str]] = [[""]]
        self.has_table = False
        self._inside: list[tuple[str, bool]] = []  # open elements, and which of them show nothing

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.has_table |= tag == "table"
        if tag in _CELL | {"tr"}:
            self._close_in_table(_CELL if tag in _CELL else _CELL | {"tr"})
        tables = sum(name == "table" for name, _ in self._inside)
        if tag == "tr" and tables == 1:
            self.lines.append([""])
        elif tag in _CELL and tables == 1:
            self.lines[-1].append("")
        elif tag in _BREAKS | _CELL | {"tr"}:
            self._break()
        if tag not in _VOID:
            style = "".join((values.get("style") or "").split()).lower()
            hidden = "hidden" in values or "display:none" in style
            self._inside.append((tag, hidden or tag in _UNSEEN | _DRAWN))

    def handle_endtag(self, tag: str) -> None:
        if any(name == tag for name, _ in self._inside):  # also what is not closed inside it
            while self._inside.pop()[0] != tag:
                pass
        if tag in _BREAKS - _VOID:
            self._break()

    def handle_data(self, data: str) -> None:
        if any(unseen for _, unseen in self._inside):
            return
        preformatted = any(name == "pre" for name, _ in self._inside)
        first, *rest = data.split("\n") if preformatted else [data]
        self.lines[-1][-1] += first
        for line in rest:
            self._break()
            self.lines[-1][-1] += line

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """What browsers take for a comment; the parser of Python would raise an error."""
        return self.parse_bogus_comment(i)

    def _break(self) -> None:
        """Ends a line, or a word in a cell."""
        if any(name in _CELL for name, _ in self._inside):
            self.lines[-1][-1] += " "
        else:
            self.lines.append([""])

    def _close_in_table(self, tags: set[str]) -> None:
        """Closes what the next cell or row of the innermost table ends without an end tag."""
        names = [name for name, _ in self._inside]
        start = len(names) - names[::-1].index("table") if "table" in names else len(names)
        for place in range(start, len(names)):
            if names[place] in tags:
                del self._inside[place:]
                return


def visible_text(html: str) -> tuple[str, bool]:
    r"""The words of an HTML output, and whether there is a table in it.

    Examples:
        >>> visible_text("<table><tr><th>n</th><td>10</td></tr><tr><th></th><td>2</td></tr>")
        ('n  10\n   2', True)
    """
    words = _Words()
    words.feed(html)
    words.close()
    rows = [[" ".join(cell.split()) for cell in line] for line in words.lines]
    rows = [row[1:] if len(row) > 1 and not row[0] else row for row in rows]
    rows = [row for row in rows if any(row)]
    columns = zip_longest(*(row for row in rows if len(row) > 1), fillvalue="")
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        if len(row) > 1
        else row[0]
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines), words.has_table
