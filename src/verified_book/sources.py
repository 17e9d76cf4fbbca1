"""Makes the build notice what cells import, versions, the processor, and the table of contents.

Neither Sphinx nor jupyter-cache knows that a page depends on them, and both would show stale pages.
Their digests become part of two configuration values, so a change reads every page again.
One of code, versions or processor runs in an execution cache of its own; undone, it finds its old
one again.
A new title is on every page, too: in the sidebar.
"""

import glob
import hashlib
import shutil
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import ConfigError

from verified_book import surroundings
from verified_book.kernels import made

_PREFIX = "verified-book-"


def digest_of_sources(
    base: Path,
    patterns: Iterable[str],
    distributions: Iterable[str],
    variables: Iterable[str] = (),
) -> str:
    """A digest of the files that match, and of what runs them: versions, processor, variables."""
    digest = hashlib.sha256(sys.version.encode())
    for text in (surroundings.processor(), *surroundings.variables(variables)):
        digest.update(f"\0{text}".encode())
    for pattern in sorted(patterns):
        found = sorted(glob.glob(pattern, root_dir=base, recursive=True))
        files = [name for name in found if (base / name).is_file()]
        if not files:
            raise ConfigError(
                f"verified_book_sources: no file matches {pattern!r} from {base}; "
                "mend the pattern in the configuration"
            )
        for name in files:
            digest.update(f"\0{name}\0".encode())
            digest.update((base / name).read_bytes())
    for name in distributions:
        digest.update(f"\0{name}={version_of(name)}".encode())
    return digest.hexdigest()[:16]


def _all_versions() -> str:
    """Every installed distribution."""
    # Once each: to read what two hundred say of themselves takes a quarter of a second.
    found = (item.metadata for item in metadata.distributions())
    return " ".join(sorted({f"{about['Name']}={about['Version']}" for about in found}))


def version_of(distribution: str) -> str:
    """The version of an installed distribution that the outputs depend on; `*` stands for all."""
    if distribution == "*":
        return _all_versions()
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError as error:
        raise ConfigError(
            f"verified_book_distributions: {distribution!r} is not installed; "
            "install it, or take it from the list in the configuration"
        ) from error


def prepare(app: Sphinx, config: Config) -> None:
    """Sets the two configuration values, before anything reads them."""
    digest = digest_of_sources(
        Path(app.srcdir),
        config.verified_book_sources,
        config.verified_book_distributions,
        config.verified_book_environment,
    )
    own = config.nb_execution_cache_path  # of this book, or of several that share it
    caches = Path(app.srcdir, own) if own else Path(app.outdir).parent / made.CACHE
    folder = caches / f"{_PREFIX}{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    folder.touch()  # the time of its last use
    config.nb_execution_cache_path = str(folder)
    known = [path for path in caches.glob(f"{_PREFIX}*") if path != folder]
    known.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for old in known[max(config.verified_book_caches_kept - 1, 0) :]:
        shutil.rmtree(old, ignore_errors=True)

    # Where the build lies within the book, as MyST-NB's notebooks do, they are no pages of it.
    outdir = Path(app.outdir)
    made.exclude(config, Path(app.srcdir), (caches, outdir.parent / made.NOTEBOOKS, outdir))

    toc = Path(app.srcdir, getattr(config, "external_toc_path", "") or "_toc.yml")
    if toc.is_file():
        config.verified_book_toc = hashlib.sha256(toc.read_bytes()).hexdigest()[:16]


def retitled_pages(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """All pages if the title of one has changed, to be written again."""
    before = getattr(env, "verified_book_titles", None)
    titles = {name: title.astext() for name, title in env.titles.items()}
    env.verified_book_titles = titles  # type: ignore[attr-defined]  # Sphinx's way to extend it
    return sorted(env.found_docs) if titles != before else []


def setup(app: Sphinx) -> None:
    """Registers what to watch."""
    app.add_config_value("verified_book_toc", "", "env", (str,))
    app.connect("config-inited", prepare)
    app.connect("env-updated", retitled_pages)
