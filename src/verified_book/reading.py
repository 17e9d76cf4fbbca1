"""Reads and executes the pages on every core, also under the command line of Jupyter Book."""

import os

from jupyter_cache import get_cache
from jupyter_cache.executors import utils as executor
from nbclient import NotebookClient
from sphinx.application import Sphinx

# Jupyter Book loads these two; they are safe but do not say so.
_SAFE = ("sphinx_multitoc_numbering", "sphinx_jupyterbook_latex")


def prepare(app: Sphinx) -> None:
    """Lets Sphinx fork readers, and makes what they would race for."""
    for name in _SAFE:
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True
            app.extensions[name].parallel_write_safe = True
    settings = app.env.mystnb_config  # type: ignore[attr-defined]  # MyST-NB adds it
    get_cache(settings.execution_cache_path).db  # noqa: B018  # the access creates the database
    app.parallel = app.config.verified_book_jobs or os.cpu_count() or 1
    # There are as many kernels as cores: with one thread each, none waits for another's threads.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # A kernel's polite shutdown takes a second a page; it has nothing left to lose.
    NotebookClient.shutdown_kernel.default_value = "immediate"
    # It stands in an `except`. A kernel that dies, of too little memory say, thus ends its page, as
    # a cell does that takes too long, and not the whole build with a traceback that names no page.
    executor.CellTimeoutError = Exception


def setup(app: Sphinx) -> None:
    """Registers the number of readers; 0 is one for each core."""
    app.add_config_value("verified_book_jobs", 0, "")
    app.connect("builder-inited", prepare, priority=900)
