"""Sphinx extension for books whose printed outputs are checked by the build.

Works in Jupyter Book 1 and in plain Sphinx with MyST-NB. `extensions = ["verified_book"]` holds the
outputs of Markdown and reStructuredText pages against the text that their authors expect. The rest
is chosen by name: `verified_book.claims`, `verified_book.offline`, `verified_book.notebooks` and
`verified_book.parallel`.
"""

from typing import TYPE_CHECKING

from verified_book.version import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

__all__ = ["__version__", "setup"]


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Registers the directives, the checks and what they need of Sphinx."""
    # Here, since a cell that imports `book_site.figures` needs none of it, and Sphinx and
    # MyST-NB take two seconds of every chapter's time.
    from sphinx.errors import ExtensionError

    from verified_book import patches

    patches.require()  # before a module fails to import what has gone
    from verified_book import accepting, kernels, outputs, records, seals, settings, sources

    if "myst_parser" in app.extensions:
        raise ExtensionError(
            "verified_book: MyST-NB runs the cells and brings myst_parser along; "
            "put myst_nb in its place in `extensions`"
        )
    app.setup_extension("myst_nb")
    settings.register(app, settings.OUTPUTS)
    for module in (records, seals, sources, kernels, outputs, accepting):
        module.setup(app)
    return {
        "version": __version__,
        "env_version": 3,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
