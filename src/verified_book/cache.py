"""Makes the build notice what the cells import, the installed versions, and the table of contents.

Neither Sphinx nor jupyter-cache knows that a chapter depends on them, and both would show stale
pages. Their digests become part of two configuration values, so a change reads every page again, in
an execution cache of its own; undone, it finds its old cache again.
"""

import hashlib
import shutil
import sys
from importlib import metadata
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

_CACHES_KEPT = 6


def digest_of_sources(base: Path, patterns: list[str], distributions: list[str]) -> str:
    """A digest of the files that match, and of the versions that run them."""
    digest = hashlib.sha256(sys.version.encode())
    for pattern in sorted(patterns):
        folder, _, rest = pattern.partition("*")
        root = (base / folder).resolve()
        files = sorted(file for file in root.glob(f"*{rest}") if file.is_file())
        if not files:
            raise ValueError(f"verified_book_sources: no file matches {pattern!r} from {base}")
        for file in files:
            digest.update(f"\0{pattern}\0{file.relative_to(root).as_posix()}\0".encode())
            digest.update(file.read_bytes())
    for name in distributions:
        digest.update(f"\0{name}={metadata.version(name)}".encode())
    return digest.hexdigest()[:16]


def prepare(app: Sphinx, config: Config) -> None:
    """Sets the two configuration values, before anything reads them."""
    digest = digest_of_sources(
        Path(app.srcdir), config.verified_book_sources, config.verified_book_distributions
    )
    caches = Path(app.outdir).parent / ".jupyter_cache"
    folder = caches / digest
    folder.mkdir(parents=True, exist_ok=True)
    folder.touch()  # the time of its last use
    config.nb_execution_cache_path = str(folder)  # type: ignore[attr-defined]
    for old in sorted(caches.iterdir(), key=lambda f: f.stat().st_mtime)[:-_CACHES_KEPT]:
        shutil.rmtree(old, ignore_errors=True)

    toc = Path(app.srcdir, getattr(config, "external_toc_path", "") or "_toc.yml")
    if toc.is_file():
        config.verified_book_toc = hashlib.sha256(toc.read_bytes()).hexdigest()[:16]


def setup(app: Sphinx) -> None:
    """Registers what to watch."""
    app.add_config_value("verified_book_sources", [], "")
    app.add_config_value("verified_book_distributions", ["torch", "numpy"], "env")
    app.add_config_value("verified_book_toc", "", "env")
    app.connect("config-inited", prepare)
