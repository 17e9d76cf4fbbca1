"""The words that an HTML output shows, a line for each row of a table."""

from html.parser import HTMLParser

_UNSEEN = {"style", "script", "template", "head", "title"}
_DRAWN = {"svg", "math", "canvas", "video", "audio", "object", "iframe"}
_BREAKS = {"p", "div", "br", "li", "ul", "ol", "pre", "hr", "table", "caption", "section", "figure"}
_BREAKS |= {f"h{level}" for level in range(1, 7)}
_VOID = {"br", "hr", "img", "input", "link", "meta", "col", "source", "wbr"}


class _Words(HTMLParser):
    """Collects lines of cells; text outside of a table is a line with one cell."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[list[str]] = [[""]]
        self.has_table = False
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.has_table |= tag == "table"
        if tag not in _VOID:
            self._inside.append(tag)
        if tag == "tr" or (tag in _BREAKS and not self._in_cell()):
            self.lines.append([""])
        elif tag in ("td", "th"):
            self.lines[-1].append("")
        elif tag in _BREAKS:
            self.lines[-1][-1] += " "

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:  # also what is not closed inside it
            while self._inside.pop() != tag:
                pass
        if tag in _BREAKS - _VOID and not self._in_cell():
            self.lines.append([""])

    def handle_data(self, data: str) -> None:
        if not (_UNSEEN | _DRAWN) & set(self._inside):
            self.lines[-1][-1] += data

    def _in_cell(self) -> bool:
        return bool({"td", "th"} & set(self._inside))


def visible_text(html: str) -> tuple[str, bool]:
    """The words of an HTML output, and whether there is a table in it.

    Examples:
        >>> visible_text("<table><tr><th>n</th><td>10</td></tr><tr><th></th><td>2</td></tr>")
        ('n  10\\n   2', True)
    """
    words = _Words()
    words.feed(html)
    words.close()
    rows = [[" ".join(cell.split()) for cell in line] for line in words.lines]
    rows = [row[1:] if len(row) > 1 and not row[0] else row for row in rows]
    rows = [row for row in rows if any(row)]
    columns = max((len(row) for row in rows if len(row) > 1), default=0)
    widths = [
        max((len(row[i]) for row in rows if 1 < len(row) > i), default=0) for i in range(columns)
    ]
    lines = [
        row[0]
        if len(row) == 1
        else "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines), words.has_table
