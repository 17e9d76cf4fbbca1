"""Sphinx extension: claims, statements that the cells after them prove.

The cells up to the next claim or heading are the proof. At least one of them must be able to fail:
it asserts something, it is held against an expected block, or its output carries evidence. A cell
gives evidence by an output whose metadata has the key `evidence`: a dictionary with `kind`
("equal", "different" or any other word), `error` and `tolerance` (numbers or None), and `pattern`
(the text of the output as an expected block should have it). It may have `strength`, a dictionary
with `kind` ("all", "search", "draws", "seeds", "count" or "input") and `number`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

# Imported when a build begins, in this order: a book without claims waits for none of them.
_MODULES = (
    *("domain", "directive", "folds", "index", "listing"),
    *("chips", "outdated", "checks"),
)


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Registers the domain of claims, its directives, and the claims' part in the checks."""
    from verified_book import settings
    from verified_book.version import __version__

    app.setup_extension("verified_book")
    settings.register(app, settings.CLAIMS)
    for module in _MODULES:
        import_module(f"{__name__}.{module}").setup(app)
    return {
        "version": __version__,
        "env_version": 4,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
