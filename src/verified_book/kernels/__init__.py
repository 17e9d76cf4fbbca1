"""Runs the cells of a book: kernels that do not meet, that outlive no build, and whose files count.

A part of :mod:`verified_book` that needs none of the others, and an extension by itself. It puts
its own clients in the place of MyST-NB's for the time of a build, in all of its execution modes.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import ExtensionMetadata

from verified_book import settings
from verified_book.kernels import cache, clients, damage, files, readers
from verified_book.kernels.build import Kernels
from verified_book.kernels.patches import Replacements
from verified_book.version import __version__

__all__ = ["declare_files", "opened_files", "read_files", "setup"]

_replaced = Replacements()
_builds: list[Kernels] = []  # one, unless a build was broken off


def opened_files(app: Sphinx, docname: str) -> list[Path]:
    """The files of the book that the cells of a page have opened to read when they last ran."""
    known = files.pages(app.env).get(docname)
    return [Path(app.srcdir, name) for name in known.opened] if known else []


def read_files(app: Sphinx, docname: str) -> list[Path]:
    """All files that a page depends on: those that it opened or that are declared for it."""
    known = files.pages(app.env).get(docname)
    return [Path(app.srcdir, name) for name in known.digests] if known else []


def declare_files(app: Sphinx, docname: str, patterns: Iterable[str]) -> None:
    """Makes the page that is being read depend on files, whether its cells have run yet or not.

    Args:
        app: The build.
        docname: The page.
        patterns: Globs from the page's folder, or with a leading slash from the book's.
    """
    files.declare(app, docname, patterns)
    cache.update_sidecar(app, docname)


def prepare(app: Sphinx) -> None:
    """Readies the cache, and makes MyST-NB run its pages here."""
    finish(app)
    kernels = Kernels(app)
    _builds.append(kernels)
    settings = app.env.mystnb_config  # type: ignore[attr-defined]  # MyST-NB adds it
    if settings.execution_mode == "cache":
        wanted = Path(settings.execution_cache_path)
        found = damage.usable_cache(wanted, lambda: kernels.quarters.folder("cache"))
        app.env.mystnb_config = settings.copy(  # type: ignore[attr-defined]  # as above
            execution_cache_path=str(found)
        )
    _replaced.put(
        {
            **clients.of_build(kernels),
            "myst_nb.core.execute.cache.get_cache": partial(cache.BookCache, app),
            "sphinx.builders.ParallelTasks": readers.WatchedTasks,
        }
    )


def before_reading(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Remembers whether any page is read."""
    if not _builds:  # the second build of one application
        prepare(app)
    _builds[-1].reads = bool(docnames)
    if docnames:
        _builds[-1].preload()


def after_reading(app: Sphinx, env: BuildEnvironment) -> None:
    """Names the pages whose files have changed after all, which can only be if some page ran."""
    if _builds[-1].reads:
        files.warn_of_changes(app, env)


def finish(app: Sphinx, error: Exception | None = None) -> None:
    """Undoes what :func:`prepare` did."""
    _replaced.restore()
    while _builds:
        _builds.pop().close()


def setup(app: Sphinx) -> ExtensionMetadata:
    """Registers the configuration and the events."""
    app.setup_extension("myst_nb")
    settings.register(app, settings.KERNELS)
    app.connect("builder-inited", prepare, priority=800)
    app.connect("env-before-read-docs", before_reading)
    app.connect("env-updated", after_reading)
    app.connect("build-finished", finish)
    files.setup(app)
    return {
        "version": __version__,
        "env_version": 1,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
