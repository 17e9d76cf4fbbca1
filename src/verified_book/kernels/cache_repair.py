"""Finds a cache that is damaged or cannot be written, before a page needs it."""

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.request import pathname2url

from jupyter_cache.cache.db import DB_NAME, OrmBase, create_db
from sphinx.util import logging

from verified_book.regular import discard, open_regular

logger = logging.getLogger(__name__)


def usable_cache(wanted: Path, substitute: Callable[[], Path]) -> Path:
    """A cache folder that works, with a database in it.

    Args:
        wanted: The folder that is configured.
        substitute: Makes a temporary one, for when that cannot be written.
    """
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        _mend(wanted)
        _create_database(wanted)
        return wanted
    except OSError as error:
        logger.info(
            "the execution cache %s cannot be used (%s): this build runs every page that it reads",
            *(wanted, error.strerror),
        )
        folder = substitute()
        _create_database(folder)
        return folder


def _mend(folder: Path) -> None:
    """Clears away what is damaged."""
    with tempfile.TemporaryFile(dir=folder):
        pass  # an error if the folder cannot be written
    executed, database = folder / "executed", folder / DB_NAME
    damage = _damage_of(database) if os.path.lexists(database) else None
    if executed.exists() and not executed.is_dir():
        damage = "executed is not a folder"
        discard(executed)
    if damage is not None:
        # Those beside it too, or they would be applied to a new one.
        for suffix in ("", "-journal", "-wal", "-shm"):
            discard(folder / f"{DB_NAME}{suffix}")
        logger.info("the execution cache %s was damaged (%s): it is begun anew", folder, damage)


def _damage_of(database: Path) -> str | None:
    """What is wrong with a database, if anything is."""
    try:
        open_regular(database).close()
    except OSError as error:
        return str(error.strerror)
    address = f"file:{pathname2url(str(database))}?mode=rw"
    try:
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=60)) as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            for table in OrmBase.metadata.sorted_tables:
                columns = ", ".join(f'"{column.name}"' for column in table.columns)
                connection.execute(f'SELECT {columns} FROM "{table.name}" LIMIT 0')
    except sqlite3.Error as error:
        busy = "locked" in str(error)  # by another build, for a minute
        return None if busy else str(error)
    return None if found == "ok" else str(found)


def _create_database(folder: Path) -> None:
    """Makes the database if there is none, at once, so that no other build sees half of it."""
    if not (folder / DB_NAME).exists():
        with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as scratch:
            create_db(scratch).dispose()
            for path in Path(scratch).iterdir():
                path.replace(folder / path.name)
