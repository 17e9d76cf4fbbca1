"""Serves a page's outputs from jupyter-cache only if nothing that the page has read has changed.

jupyter-cache knows a page by its code alone. What a page has read lies next to its outputs, with a
digest of those, so that a fresh clone with an old cache, a changed file and a damaged one are seen.
"""

import shutil
import weakref
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from jupyter_cache.base import CacheBundleIn
from jupyter_cache.cache.db import NbCacheRecord, create_db
from jupyter_cache.cache.main import JupyterCacheBase
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.util import logging
from sqlalchemy import event

from verified_book.kernels import files
from verified_book.kernels.files import PageFiles
from verified_book.regular import holds, stamp_of
from verified_book.sealed import read_sealed, write_sealed

logger = logging.getLogger(__name__)

_SIDECAR = "verified_book.json"
_PATIENCE = 60  # seconds


class BookCache(JupyterCacheBase):  # type: ignore[misc]  # untyped
    """The cache, as the page that is being read may use it."""

    def __init__(self, app: Sphinx, path: str | Path) -> None:
        super().__init__(path)
        self.app = app

    @cached_property
    def db(self) -> Any:
        """The database of the cache, whose connection ends with this object."""
        engine = create_db(self.path)
        event.listen(engine, "connect", _wait_for_others)
        weakref.finalize(self, engine.dispose)
        return engine

    def match_cache_notebook(self, nb: NotebookNode) -> NbCacheRecord:
        """Finds the outputs of a page; raises KeyError if it has to run."""
        record = super().match_cache_notebook(nb)
        folder = self._folder(record.hashkey)
        docname = self.app.env.docname
        try:
            known = read_sidecar(folder)
        except FileNotFoundError as error:
            raise KeyError("made by others, who noted no files") from error
        except (OSError, ValueError, TypeError) as error:
            logger.info("%s: its outputs in the cache were damaged; it runs anew", docname)
            remove(folder)
            NbCacheRecord.remove_records([record.pk], self.db)
            raise KeyError("damaged") from error
        now = known.with_patterns(Path(self.app.srcdir), files.declared(self.app, nb.metadata))
        elsewhere = known.folder != files.folder_of(docname) and known.digests
        if elsewhere or now.digests != known.digests:
            raise KeyError("what the page reads has changed")
        files.pages(self.app.env)[docname] = now
        return record

    def cache_notebook_bundle(
        self,
        bundle: CacheBundleIn,
        check_validity: bool = True,
        overwrite: bool = False,
        description: str = "",
    ) -> NbCacheRecord:
        """Keeps the outputs of the page that has just run; without them it only runs again."""
        docname = self.app.env.docname
        try:
            folder = self._folder(self.create_hashed_notebook(bundle.nb)[1])
            if overwrite:
                remove(folder)  # also one that a killed build left half written
            record = super().cache_notebook_bundle(bundle, check_validity, overwrite, description)
            write_sidecar(folder, files.pages(self.app.env)[docname])
        except Exception as error:  # of the disk, the database, or a build that did the same
            reason = str(error).partition("\n")[0]
            logger.info("%s: its outputs could not be kept in the cache: %s", docname, reason)
            return NbCacheRecord(uri=bundle.uri, hashkey="")
        return record

    def _folder(self, hashkey: str) -> Path:
        """Where the outputs of a notebook lie."""
        return Path(self._get_notebook_path_cache(hashkey)).parent


def _wait_for_others(connection: Connection, _: Any) -> None:
    """Has a page wait for others that write: after SQLite's five seconds its outputs are lost."""
    connection.execute(f"PRAGMA busy_timeout = {1000 * _PATIENCE}")


def read_sidecar(folder: Path) -> PageFiles:
    """What a cached page has read; an error if anything of it is damaged."""
    known: dict[str, Any] = dict(read_sealed(folder / _SIDECAR))
    if not (folder / "base.ipynb").is_file():
        raise ValueError("there are no outputs")
    if not holds(folder / "base.ipynb", known.pop("outputs", None)):
        raise ValueError("the outputs are not those that were written")
    return PageFiles(**known)


def write_sidecar(folder: Path, known: PageFiles) -> None:
    """Notes what a page has read next to its outputs."""
    content = {"outputs": stamp_of(folder / "base.ipynb"), **asdict(known)}
    write_sealed(folder / _SIDECAR, content)


def remove(path: Path) -> None:
    """Removes a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
