"""Sphinx extension: reads and executes the pages on every core, also under Jupyter Book.

It offers this: where an extension does not let its pages be read in parallel, Sphinx says so and
reads them one by one; and a number that was given on the command line stays.
"""

import os
import re
import sys
from typing import TYPE_CHECKING

from sphinx.util import logging

from verified_book import __version__, settings

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

logger = logging.getLogger(__name__)

# Jupyter Book loads these two; they are safe but do not say so.
_SAFE = ("sphinx_multitoc_numbering", "sphinx_jupyterbook_latex")


def prepare(app: "Sphinx") -> None:
    """Lets Sphinx fork readers, and makes what they would race for."""
    for name in _SAFE:
        extension = app.extensions.get(name)
        if extension and extension.parallel_read_safe is None:
            extension.parallel_read_safe = True
            extension.parallel_write_safe = True
    if not _number_was_given(sys.argv):
        app.parallel = app.config.verified_book_jobs or os.cpu_count() or 1
    if app.parallel > 1:
        # As many kernels as cores: with one thread each, none waits for another's threads.
        os.environ.setdefault("OMP_NUM_THREADS", "1")


def _number_was_given(arguments: list[str]) -> bool:
    """Whether the command line names a number of jobs.

    Examples:
        >>> _number_was_given(["sphinx-build", "-j4", "a", "b"]), _number_was_given(["a", "b"])
        (True, False)
    """
    return any(re.match(r"-j(\d|auto|$)|--jobs\b", item) for item in arguments)


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Registers the number of readers."""
    app.setup_extension("verified_book")
    settings.register(app, settings.PARALLEL)
    app.connect("builder-inited", prepare, priority=900)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
