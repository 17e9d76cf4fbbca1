"""What builds make within the folder of a book, and what so is no page of it.

Executed notebooks lie in MyST-NB's cache and in its folder of notebooks, and those lie beside a
build, wherever that was: another build, or a command that checks the book, finds them as well.
"""

from collections.abc import Iterable
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

CACHE = ".jupyter_cache"
"""What MyST-NB calls the folder of a cache that the configuration does not name."""

NOTEBOOKS = "jupyter_execute"
"""What it calls the folder of the notebooks that it writes."""


def exclude(config: Config, source: Path, folders: Iterable[Path]) -> None:
    """Excludes folders from what Sphinx looks for pages in, as far as they lie within the book."""
    for folder in folders:
        if folder.is_relative_to(source) and folder != source:
            _add(config, folder.relative_to(source).as_posix())


def exclude_those_of_builds(app: Sphinx, config: Config) -> None:
    """Excludes what this build makes, and what others have made, wherever in the book that is."""
    cache = config.nb_execution_cache_path
    caches = [Path(app.srcdir, cache)] if cache else []
    exclude(config, Path(app.srcdir), [*caches, Path(app.outdir)])
    for name in (CACHE, NOTEBOOKS):
        for pattern in (name, f"**/{name}"):  # the second one needs a folder around it
            _add(config, pattern)


def sites_in(source: Path) -> list[Path]:
    """The folders of built sites within a book, which may have copies of its pages."""
    found = (path.parent for depth in ("*", "*/*") for path in source.glob(f"{depth}/.buildinfo"))
    return sorted(found)


def _add(config: Config, pattern: str) -> None:
    """Excludes by a pattern; a list that differs from build to build would have all read again."""
    if pattern not in config.exclude_patterns:
        config.exclude_patterns.append(pattern)
