"""Checks what the cells of a page print: the core of :mod:`verified_book`."""

from sphinx.application import Sphinx

from verified_book.outputs import client, expected, pages, rst_cells, source


def setup(app: Sphinx) -> None:
    """Registers the directives and the checks."""
    for module in (client, source, pages, rst_cells, expected):
        module.setup(app)
