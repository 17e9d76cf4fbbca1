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

from verified_book.regular import open_regular

logger = logging.getLogger(__name__)


def usable_cache(wanted: Path, substitute: Callable[[], Path]) -> Path:
    """A cache folder that works, with a database in it.

    What is damaged is moved aside, never removed: the folder may be the author's own.

    Args:
        wanted: The folder that is configured.
        substitute: Makes a temporary one, for when that cannot be written.
    """
    try:
        if wanted.exists() and not wanted.is_dir():
            _move_aside(wanted, "it is not a folder")
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
    """Moves what is damaged aside."""
    with tempfile.TemporaryFile(dir=folder):
        pass  # an error if the folder cannot be written
    executed, database = folder / "executed", folder / DB_NAME
    if executed.exists() and not executed.is_dir():
        _move_aside(executed, "it is not a folder")
    damage = _damage_of(database) if os.path.lexists(database) else None
    if damage is not None:
        _move_aside(database, damage)
        for suffix in ("-journal", "-wal", "-shm"):  # or they would be applied to a new one
            with contextlib.suppress(FileNotFoundError):
                database.with_name(database.name + suffix).unlink()


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


def _move_aside(path: Path, reason: str) -> None:
    """Renames what is damaged, and says so."""
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.damaged-{number}")):
        number += 1
    with contextlib.suppress(FileNotFoundError):  # another build has just done it
        path.rename(aside)
        logger.info(
            "the execution cache was damaged (%s: %s): it is now %s, and a new one is begun",
            *(path, reason, aside.name),
        )


def _create_database(folder: Path) -> None:
    """Makes the database if there is none, so that no other build ever sees half of it."""
    if (folder / DB_NAME).exists():
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as scratch:
        create_db(scratch).dispose()
        for path in Path(scratch).iterdir():
            with contextlib.suppress(FileExistsError):
                try:
                    os.link(path, folder / path.name)
                except FileExistsError:
                    raise
                except OSError:  # the disk knows no links
                    path.replace(folder / path.name)
