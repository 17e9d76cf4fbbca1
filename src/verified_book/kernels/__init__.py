"""Runs the cells of a book: kernels that do not meet, that outlive no build, and whose files count.

A part of :mod:`verified_book` that needs none of the others, and an extension by itself. It puts
its own clients in the place of MyST-NB's for the time of a build, in all of its execution modes.
"""

from functools import partial
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import ExtensionMetadata

from verified_book import patches, settings
from verified_book.kernels import cache, cache_repair, clients, files, made, parallel_tasks, threads
from verified_book.kernels.build import Kernels
from verified_book.patches import Replacements
from verified_book.version import __version__

_replaced = Replacements()
_builds: list[Kernels] = []  # one, unless a build was broken off


def prepare(app: Sphinx) -> None:
    """Readies the cache, and makes MyST-NB run its pages here."""
    finish(app)
    kernels = Kernels(app)
    _builds.append(kernels)
    settings = app.env.mystnb_config  # type: ignore[attr-defined]  # MyST-NB adds it
    if settings.execution_mode == "cache":
        wanted = Path(settings.execution_cache_path)
        found = cache_repair.usable_cache(wanted, lambda: kernels.runtime_dir.folder("cache"))
        app.env.mystnb_config = settings.copy(  # type: ignore[attr-defined]  # as above
            execution_cache_path=str(found)
        )
    _replaced.put(
        {
            **clients.of_build(kernels),
            "myst_nb.core.execute.cache.get_cache": partial(cache.BookCache, app),
            "sphinx.builders.ParallelTasks": parallel_tasks.WatchedTasks,
            "sphinx.builders.make_chunks": parallel_tasks.shrinking_chunks,
        }
    )


def before_reading(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Remembers whether any page is read."""
    if not _builds:  # the second build of one application
        prepare(app)
    _builds[-1].reads = bool(docnames)
    if docnames:
        threads.tell(app)
        if app.parallel > 1:
            parallel_tasks.longest_first(docnames, env.doc2path)
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
    patches.require()
    # Before the cache's path has a digest in it, which would be part of the pattern.
    app.connect("config-inited", made.exclude_those_of_builds, priority=400)
    app.connect("builder-inited", lambda app: patches.report())
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
