"""What the cells of the document import; it is copied next to the pages."""

import base64
import io
from collections.abc import Sequence


class Table:
    """A table that a notebook shows as HTML; as text it tells no cell."""

    def __init__(self, rows: Sequence[tuple[str, int]]) -> None:
        self.rows = rows

    def __repr__(self) -> str:
        return f"<Table of {len(self.rows)} rows>"

    def _repr_html_(self) -> str:
        rows = [f"<tr><td>{name}</td><td>{count}</td></tr>" for name, count in self.rows]
        return "<table>" + "".join(rows) + "</table>"


class Formula:
    """A formula that a notebook shows as LaTeX; as text it does not tell which."""

    def __init__(self, latex: str) -> None:
        self.latex = latex

    def __repr__(self) -> str:
        return "<Formula>"

    def _repr_latex_(self) -> str:
        return f"$${self.latex}$$"


def pictures() -> str:
    """Every open figure as a Markdown image with its data inside: for pages without a kernel."""
    from matplotlib import pyplot

    found = []
    for number in pyplot.get_fignums():
        file = io.BytesIO()
        pyplot.figure(number).savefig(file)
        data = base64.b64encode(file.getvalue()).decode()
        found.append(f"![figure](data:image/png;base64,{data})")
    pyplot.close("all")
    return "\n".join(found)
