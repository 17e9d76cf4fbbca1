"""Checks what the cells of a page print: the core of :mod:`verified_book`."""

from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    """Registers the directives and the checks."""
    # Here, since the directives of other extensions use single modules of this package.
    from verified_book.outputs import client, expected, pages, rst_cells, source

    for module in (client, source, pages, rst_cells, expected):
        module.setup(app)
