"""The look of claims and evidence: a stylesheet, and the classes that it needs."""

from sphinx.application import Sphinx

from verified_book.outputs.cells import Cell
from verified_book.static_files import offer_static_files


def mark_evidence(cells: list[Cell]) -> None:
    """Gives the cells that end in evidence a class for its kind."""
    for cell in cells:
        if cell.node is not None and cell.evidence:
            cell.node["classes"] += ["evidence", f"evidence-{cell.evidence[-1].get('kind')}"]


def setup(app: Sphinx) -> None:
    """Registers the stylesheet."""
    offer_static_files(app, __file__)
    app.add_css_file("verified_book.css")
