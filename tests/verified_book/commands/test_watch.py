"""`watch` serves a book, builds what changes, and tells browsers to reload."""

import asyncio
import gzip
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.verified_book.commands.conftest import RED, Command, write
from tests.verified_book.hostile import NEVER_READ
from verified_book.commands import watching
from verified_book.commands.books import Book, CommandError

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("commands")]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", "nowhere: there is no such page or folder"),
        (".", ".: no book is in this folder or above it (_config.yml and _toc.yml, or conf.py); "),
    ],
)
def test_what_cannot_be_watched(command: Command, monkeypatch, name: str, message: str):
    monkeypatch.setitem(sys.modules, "sphinx_autobuild", sys)  # whether or not it is there
    said = command("watch", name)
    assert said.status == 2
    assert said.err.startswith(f"verified_book: {message}")


def test_without_its_extra(command: Command, monkeypatch):
    monkeypatch.setitem(sys.modules, "sphinx_autobuild", None)
    said = command("watch")
    assert (said.status, said.err) == (
        2,
        "verified_book: watch needs sphinx-autobuild; "
        "run: python -m pip install 'verified-book[watch]'\n",
    )


def test_what_says_the_same_as_before_starts_no_build(tmp_path: Path):
    write(tmp_path, {"page.md": "one", "folder/page.md": "one"})
    unchanged = watching.Unchanged([tmp_path], tmp_path / "_build")
    page = str(tmp_path / "page.md")
    assert not unchanged(page)
    assert unchanged(page)  # a cell has written the same again
    Path(page).write_text("two")
    assert not unchanged(page)
    Path(page).unlink()
    assert not unchanged(page)
    assert unchanged(str(tmp_path / "folder"))


@pytest.mark.parametrize("kind", NEVER_READ)
def test_what_is_no_file_starts_one_build_at_most(tmp_path: Path, kind: str):
    unchanged = watching.Unchanged([tmp_path], tmp_path / "_build")
    page = tmp_path / "page.md"
    page.write_text("one")
    assert not unchanged(str(page))
    NEVER_READ[kind](page)
    assert unchanged(str(page)) == (kind == "a folder")
    assert unchanged(str(page))


@pytest.mark.parametrize(
    "name", ["_build/html/page.html", ".git/index", "a/__pycache__/x.pyc", "a/.x.md.swp", "x.md~"]
)
def test_what_is_passed_over(tmp_path: Path, name: str):
    folder = tmp_path / ".hidden"  # what stands above the book does not matter
    write(folder, {name: "", "page.md": ""})
    unchanged = watching.Unchanged([folder], folder / "_build")
    assert unchanged(str(folder / name))
    assert not unchanged(str(folder / "page.md"))


def test_a_port_that_another_server_has():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        assert watching._free(taken) not in (taken, 0)


def test_a_port_that_no_server_has(monkeypatch):
    bound: list[tuple[str, int]] = []
    monkeypatch.setattr(socket.socket, "bind", lambda self, address: bound.append(address))
    monkeypatch.setattr(socket.socket, "getsockname", lambda self: bound[-1])
    assert watching._free(8000) == 8000
    assert bound == [("127.0.0.1", 8000)]


def test_no_port_is_free(monkeypatch):
    def bind(self, address):
        raise OSError

    monkeypatch.setattr(socket.socket, "bind", bind)
    with pytest.raises(CommandError, match="no port is free to serve the book on"):
        watching._free(8000)


class Watch(NamedTuple):
    """A book that is being watched."""

    page: Path
    address: str
    lines: "queue.Queue[str]"
    process: "subprocess.Popen[str]"

    def said(self, pattern: str) -> str:
        """What it says next that matches."""
        seen = []
        try:
            while not re.search(pattern, line := self.lines.get(timeout=300)):
                seen.append(line)
        except queue.Empty:
            raise AssertionError(f"{pattern} is not in:\n{''.join(seen)}") from None
        return line

    def shown(self) -> str:
        """The page as a browser gets it."""
        deadline = time.monotonic() + 300
        while True:
            try:
                with urllib.request.urlopen(f"{self.address}/red.html") as answer:
                    return answer.read().decode()
            except OSError:  # it does not listen yet
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    pytest.importorskip("sphinx_autobuild")
    write(
        tmp_path,
        {
            "docs/conf.py": 'extensions = ["verified_book"]\nhtml_theme = "basic"\n'
            'nb_execution_mode = "cache"\nverified_book_sources = ["../src/*.py"]\n',
            "docs/index.md": "# Index\n\n```{toctree}\nred\n```\n",
            "docs/red.md": RED,
            "src/module.py": "",
        },
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "verified_book", "watch", "docs", "--port", "0"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: [*map(lines.put, process.stdout)], daemon=True).start()
    watch = Watch(tmp_path / "docs/red.md", "", lines, process)
    address = watch.said("^http://").partition(" ")[0]
    yield watch._replace(address=address)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_red_book_is_served_and_built_again_until_it_is_interrupted(watch: Watch, tmp_path: Path):
    from websockets.asyncio.client import connect

    assert "<h1>Red" in watch.shown()
    asked = urllib.request.Request(f"{watch.address}/red.html", headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(asked) as answer:
        page = gzip.decompress(answer.read()).decode()
    assert "<h1>Red" in page
    assert "websocket-reload" in page

    async def reloaded() -> None:
        async with connect(watch.address.replace("http", "ws") + "/websocket-reload") as socket:
            watch.page.write_text(RED.replace("# Red", "# Mended").replace("41", "42"))
            await asyncio.wait_for(socket.recv(), 300)

    asyncio.run(reloaded())
    assert "changed: docs/red.md" in watch.said("^changed")
    assert "1 output checked, 0 not checked, no failure" in watch.said("pages")
    assert "<h1>Mended" in watch.shown()

    watch.said("^http://")
    write(tmp_path, {"src/module.py": "new = 1", "docs/conf.py": "1 / 0"})
    assert "changed: docs/conf.py, src/module.py" in watch.said("^changed")
    watch.said("ZeroDivisionError")  # and yet:
    assert "<h1>Mended" in watch.shown()

    watch.said("^http://")
    os.killpg(watch.process.pid, signal.SIGINT)  # as a terminal does
    assert watch.process.wait(timeout=300) == 0
    assert "no longer watching" in watch.said("no longer")
    assert watch.lines.empty()


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a.md"], "a.md"),
        (["c.md", "a.md", "b.md", "a.md"], "a.md, b.md, c.md"),
        (["a.md", "b.md", "c.md", "d.md", "e.md"], "a.md, b.md, c.md and 2 more"),
    ],
)
def test_what_has_changed_is_named(monkeypatch, capsys, names: list[str], said: str):
    built: list[list[str]] = []
    monkeypatch.setattr(watching, "_build", lambda arguments, address: built.append(arguments))
    watching._rebuild(["page"], "", changed_paths=[Path(name).resolve() for name in names])
    assert capsys.readouterr().out == f"\nchanged: {said}\n"
    assert built == [["page"]]


class Stubborn:
    """A process that ends once it was told to often enough."""

    def __init__(self, times: int) -> None:
        self.times, self.told = times, list[int]()

    def send_signal(self, number: int) -> None:
        self.told.append(number)

    def wait(self, timeout: float) -> None:
        if len(self.told) < self.times:
            raise subprocess.TimeoutExpired("build", timeout)


@pytest.mark.parametrize("times", [0, 1, 2, 3])
def test_a_build_that_goes_on_is_told_to_end(times: int):
    process = Stubborn(times)
    watching._end(process)
    assert process.told == [signal.SIGINT, signal.SIGTERM][:times]


def served(tmp_path: Path, monkeypatch) -> Any:
    """The application that shows a folder at port 8000."""
    pytest.importorskip("sphinx_autobuild")
    found: list[Any] = []
    monkeypatch.setattr("uvicorn.run", lambda app, **options: found.append(app))
    book = Book(tmp_path, "page", "")
    watching._serve(book, [tmp_path], tmp_path, "127.0.0.1:8000", lambda **paths: None)
    return found[0]


def answered(app: Any, kind: str, path: str, headers: list[tuple[str, str]]) -> tuple[str, str]:
    """How an application answers a request: its status, or that it accepts; and what it says."""
    scope = {
        "type": kind,
        "method": "GET",
        "path": path,
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        "extensions": {"websocket.http.response": {}},
    }
    asked = iter([{"type": f"{kind}.{'connect' if kind == 'websocket' else 'request'}"}])
    said: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if (message := next(asked, None)) is not None:
            return message
        if kind == "http":
            await asyncio.Event().wait()  # it stays connected until it has all
        return {"type": "websocket.disconnect", "code": 1000}

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    asyncio.run(app(scope, receive, send))
    first = said[0]
    status = str(first["status"]) if "status" in first else first["type"].partition(".")[2]
    return status, b"".join(message.get("body", b"") for message in said).decode()


HERE = [("host", "localhost:8000")]
FROM_HERE = [*HERE, ("origin", "http://127.0.0.1:8000")]


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (HERE, ""),
        (FROM_HERE, ""),
        ([("host", "127.0.0.1:8000")], ""),
        ([("host", "127.0.0.2:8000")], ""),
        ([("host", "[::1]:8000")], ""),
        ([("host", "LocalHost:8000"), ("origin", "http://LOCALHOST:8000")], ""),
        ([], "400"),
        ([("host", "")], "400"),
        ([("host", "evil.example:8000")], "400"),
        ([("host", "evil.example:8000"), ("origin", "http://localhost:8000")], "400"),
        ([("host", "localhost.evil.example:8000")], "400"),
        ([("host", "127.0.0.1.evil.example:8000")], "400"),
        ([("host", "localhost@evil.example:8000")], "400"),
        ([("host", "192.168.0.7:8000")], "400"),
        ([("host", "localhost")], "400"),
        ([("host", "localhost:8001")], "400"),
        ([("host", "localhost:80000")], "400"),
        ([("host", "localhost:8000/evil")], "400"),
        ([("host", "[::1")], "400"),
        ([("host", "\xff:8000")], "400"),
        ([*HERE, ("host", "evil.example:8000")], "400"),
        ([*HERE, ("origin", "http://evil.example")], "403"),
        ([*HERE, ("origin", "http://evil.example:8000")], "403"),
        ([*HERE, ("origin", "http://localhost:8001")], "403"),
        ([*HERE, ("origin", "http://localhost")], "403"),
        ([*HERE, ("origin", "https://localhost:8000")], "403"),
        ([*HERE, ("origin", "null")], "403"),
        ([*HERE, ("origin", "")], "403"),
        ([*HERE, ("origin", "http://[::1")], "403"),
        ([*FROM_HERE, ("origin", "http://evil.example")], "403"),
    ],
)
def test_other_names_and_sites_are_refused(
    tmp_path: Path, monkeypatch, kind: str, headers: list[tuple[str, str]], status: str
):
    (tmp_path / "index.html").write_text("the book")
    path = "/websocket-reload" if kind == "websocket" else "/index.html"
    found, text = answered(served(tmp_path, monkeypatch), kind, path, headers)
    if status:
        assert found == status
        assert text.startswith("verified_book watch shows the book at http://127.0.0.1:8000 only")
        assert "the book" not in text.partition("only")[2]
    else:
        assert found == ("accept" if kind == "websocket" else "200")


def test_the_usual_port_of_a_browser_is_not_said(tmp_path: Path):
    def first(port: int, **headers: str) -> str:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"status": 200})

        named = [(name, value) for name, value in headers.items()]
        return answered(watching.OnlyHere(app, f"127.0.0.1:{port}"), "http", "/", named)[0]

    assert first(80, host="localhost", origin="http://localhost") == "200"
    assert first(80, host="localhost:80") == "200"
    assert first(443, host="localhost") == "400"


def test_the_address_of_a_page_by_itself_leads_to_it(tmp_path: Path, monkeypatch):
    pytest.importorskip("sphinx_autobuild")
    served = []
    monkeypatch.setattr("uvicorn.run", lambda app, **options: served.append((app, options)))
    for alone in ("page.md", ""):
        book = Book(tmp_path, "page", alone)
        watching._serve(book, [tmp_path], tmp_path, "127.0.0.1:8000", lambda **paths: None)
    (page, options), (others, _) = served
    (first,) = [route for route in page.routes if route.path == "/"]
    assert first.endpoint(None).headers["location"] == "/page.html"
    assert not [route for route in others.routes if route.path == "/"]
    assert (options["host"], options["port"]) == ("127.0.0.1", 8000)
