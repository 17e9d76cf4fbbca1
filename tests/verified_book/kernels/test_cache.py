"""A cache that is damaged costs time and a sentence, never the build, and never a right page."""

import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.cache.db import NbCacheRecord, create_db
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tests.verified_book.hostile import NO_FILES
from tests.verified_book.kernels.builds import Book, app_for
from verified_book.kernels import files
from verified_book.kernels.cache import BookCache
from verified_book.kernels.cache_repair import usable_cache
from verified_book.kernels.files import PageFiles

pytestmark = pytest.mark.xdist_group("files")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def without_tables(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("create table nbcache (pk)")
    connection.commit()
    connection.close()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "not a database": lambda path: path.write_text("what is this?" * 100),
    "of another version": without_tables,
    "a pipe": NO_FILES["a pipe"],
}


def no_substitute() -> Path:
    raise AssertionError("there is a cache that can be written")


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_database_is_begun_anew(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
):
    cache = tmp_path / "cache"
    (cache / "executed/own").mkdir(parents=True)
    create_db(cache).dispose()
    database = cache / "global.db"
    DAMAGES[kind](database)
    assert usable_cache(cache, no_substitute) == cache
    (message,) = caplog.messages
    assert message.startswith(f"the execution cache {cache} was damaged (")
    assert message.endswith("): it is begun anew")
    assert (cache / "executed/own").is_dir()
    engine = create_db(cache)
    assert NbCacheRecord.records_all(engine) == []
    engine.dispose()
    assert usable_cache(cache, no_substitute) == cache
    assert len(caplog.messages) == 1


def test_a_database_that_another_build_writes_to_is_not_damaged(tmp_path: Path):
    create_db(tmp_path).dispose()
    with sqlite3.connect(tmp_path / "global.db", isolation_level=None) as other:
        other.execute("begin immediate")
        assert usable_cache(tmp_path, no_substitute) == tmp_path
        other.execute("rollback")
    other.close()
    assert not list(tmp_path.glob("*.damaged*"))


def test_a_cache_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "file").touch()
    (tmp_path / "other").mkdir()
    found = usable_cache(tmp_path / "file", lambda: tmp_path / "other")
    assert found == tmp_path / "other"
    assert (found / "global.db").is_file()
    assert caplog.messages == [
        f"the execution cache {tmp_path / 'file'} cannot be used (File exists): "
        "this build runs every page that it reads"
    ]


@pytest.fixture
def cache(tmp_path: Path) -> BookCache:
    """A cache with the outputs of one page."""
    (tmp_path / "book/sub").mkdir(parents=True)
    (tmp_path / "book/sub/data.txt").write_text("one")
    app = app_for(tmp_path / "book", "sub/page")
    found = BookCache(app, usable_cache(tmp_path / "cache", no_substitute))
    keep(found)
    return found


def keep(cache: BookCache) -> None:
    """Keeps what the page has read and shown."""
    known = PageFiles("sub", [], ["sub/data.txt"], {}).with_patterns(Path(cache.app.srcdir), [])
    files.pages(cache.app.env)["sub/page"] = known
    cache.cache_notebook_bundle(CacheBundleIn(notebook(), "sub/page.md"), False, True)


def notebook(code: str = "open('data.txt').read()") -> NotebookNode:
    cell = new_code_cell(code, outputs=[new_output("stream", text="one")])
    return new_notebook(cells=[cell])


def is_served(cache: BookCache, docname: str = "sub/page", **metadata: object) -> bool:
    """Whether a page need not run, in a build that remembers nothing."""
    cache.app.env = SimpleNamespace(docname=docname, temp_data={})
    try:
        cache.merge_match_into_notebook(new_notebook(cells=notebook().cells, metadata=metadata))
    except KeyError:
        return False
    return docname in files.pages(cache.app.env)


def test_the_database_is_closed_when_a_page_is_done_with_it(tmp_path: Path):
    """Python 3.13 warns of one that is not."""
    page = BookCache(app_for(tmp_path, "page"), tmp_path / "cache")
    assert not is_served(page)
    connections = page.db.pool
    assert connections.checkedin() == 1
    del page
    assert connections.checkedin() == 0


def test_outputs_are_kept_though_another_page_is_slow_to_keep_its_own(cache: BookCache):
    """SQLite alone would wait for five seconds, and these outputs be lost."""
    (folder,) = Path(cache.path, "executed").iterdir()
    shutil.rmtree(folder)
    other = sqlite3.connect(
        Path(cache.path, "global.db"), isolation_level=None, check_same_thread=False
    )
    other.execute("begin immediate")
    ending = threading.Timer(6, other.execute, ["rollback"])
    ending.start()
    cache.app.env = SimpleNamespace(docname="sub/page", temp_data={})
    keep(cache)
    ending.join()
    other.close()
    assert is_served(cache)


OUTPUTS: dict[str, Callable[[Path], object]] = {
    "half": lambda folder: truncate(folder / "base.ipynb"),
    "of others": lambda folder: (folder / "verified_book.json").unlink(),
    "no folder": shutil.rmtree,
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_damaged_outputs_are_not_served_and_are_replaced(
    cache: BookCache, kind: str, caplog: pytest.LogCaptureFixture
):
    (folder,) = Path(cache.path, "executed").iterdir()
    OUTPUTS[kind](folder)
    assert not is_served(cache)
    told = ["sub/page: its outputs in the cache were damaged; it runs anew"]
    unknown = ("of others", "no folder")
    assert caplog.messages == ([] if kind in unknown else told)
    keep(cache)
    assert is_served(cache)


def test_a_cache_that_breaks_while_the_book_is_built(tmp_path: Path):
    book = Book(tmp_path / "book", {"nb_execution_mode": "cache"})
    breaks = "open('_build/.jupyter_cache/global.db', 'w').write('x' * 5000)"
    book.page("a_breaks", breaks)
    book.page("index", "2 + 2")
    build = book.build("-W")
    assert build.status == 0
    assert "a_breaks: its outputs could not be kept in the cache: " in build.log
    failed = "index: the execution cache failed (file is not a database); the page runs without"
    assert failed in build.log
    assert "Traceback" not in build.log
    assert book.output() == "4"
    build = book.build("-W", "-E")
    assert "cache was damaged (file is not a database): it is begun anew" in build.log
    assert build.ran == {"a_breaks", "index"}


def test_the_same_code_in_another_folder_has_other_files(cache: BookCache):
    assert is_served(cache, "sub/other")
    assert not is_served(cache, "index")
