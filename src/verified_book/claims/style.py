"""The look of claims and evidence: a stylesheet, and the classes that it needs."""

from pathlib import Path

from sphinx.application import Sphinx

from verified_book.outputs.cells import Cell


def add_static_folder(app: Sphinx) -> None:
    """Lets the HTML builders find the stylesheet."""
    app.config.html_static_path.append(str(Path(__file__).parent / "static"))


def mark_evidence(cells: list[Cell]) -> None:
    """Gives the cells that end in evidence a class for its kind."""
    for cell in cells:
        if cell.node is not None and cell.evidence:
            cell.node["classes"] += ["evidence", f"evidence-{cell.evidence[-1].get('kind')}"]


def setup(app: Sphinx) -> None:
    """Registers the stylesheet."""
    app.connect("builder-inited", add_static_folder)
    app.add_css_file("verified_book.css")
