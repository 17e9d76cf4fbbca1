"""Shows a book in a browser while it is written: builds what changes, and reloads the page.

The server, the watching of files and the reloading are those of sphinx-autobuild.
"""

import contextlib
import functools
import ipaddress
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from verified_book.commands.books import Book, CommandError, book_of, scratch, shown
from verified_book.regular import digest_of

_HOST = "127.0.0.1"
_NAMED = re.compile(r"(?:\[([\da-f:.]+)\]|([\w.-]+))(?::(\d{1,5}))?", re.ASCII | re.IGNORECASE)
_USUAL_PORT = 80
_PASSED_OVER = re.compile(r"\..*|_build|__pycache__|node_modules|.*~|.*\.sw[px]")


def watch(name: str, port: int, opens: bool) -> int:
    """Serves the book that a folder or a page is in until it is interrupted.

    Raises:
        CommandError: If there is nothing to serve, or nothing to serve it with.
    """
    try:
        import sphinx_autobuild  # noqa: F401
    except ImportError:
        raise CommandError(
            "watch needs sphinx-autobuild; run: python -m pip install 'verified-book[watch]'"
        ) from None
    given = Path(name)
    if not os.path.exists(given):  # also where the name is too long
        raise CommandError(f"{name}: there is no such page or folder")
    path = given.resolve() if given.is_dir() else given.parent.resolve() / given.name
    book = book_of(path)
    if book.kind == "page" and not book.alone:
        raise CommandError(
            f"{name}: no book is in this folder or above it (_config.yml and _toc.yml, "
            "or conf.py); name a page to see it by itself"
        )
    with scratch(book) as folder:
        site, roots = folder.parent / "html", folder / "watched.json"
        site.mkdir(parents=True, exist_ok=True)
        roots.unlink(missing_ok=True)
        address = f"{_HOST}:{_free(port)}"
        rebuild = functools.partial(_rebuild, [str(path), str(site), str(roots)], address)
        try:
            _build([str(path), str(site), str(roots)], address)
            watched = [book.folder]
            if roots.is_file():
                found = [Path(root) for root in json.loads(roots.read_text(encoding="utf-8"))]
                watched += [root for root in found if root.exists()]
            if opens:
                threading.Timer(1, webbrowser.open, [f"http://{address}"]).start()
            _serve(book, watched, site, address, rebuild)
        except KeyboardInterrupt:
            pass
    print("\nverified_book: no longer watching")
    return 0


def _serve(book: Book, watched: list[Path], site: Path, address: str, rebuild: Any) -> None:
    """Serves a site, and builds it anew when a file below the watched folders changes."""
    import uvicorn
    from sphinx_autobuild.middleware import JavascriptInjectorMiddleware
    from sphinx_autobuild.server import RebuildServer
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.gzip import GZipMiddleware
    from starlette.responses import RedirectResponse
    from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
    from starlette.staticfiles import StaticFiles

    server = RebuildServer(watched, Unchanged(watched, book.builds()), rebuild)
    routes: list[BaseRoute] = [WebSocketRoute("/websocket-reload", server)]
    if book.alone:
        page = f"/{Path(book.alone).stem}.html"
        routes.append(Route("/", lambda request: RedirectResponse(page)))
    routes.append(Mount("/", StaticFiles(directory=site, html=True)))
    app = Starlette(
        routes=routes,
        # Compressed as by a host, so that one sees how long a page takes.
        middleware=[
            Middleware(OnlyHere, address=address),
            Middleware(GZipMiddleware, minimum_size=500),
            Middleware(JavascriptInjectorMiddleware, ws_url=address),
        ],
        lifespan=server.lifespan,
    )
    host, _, port = address.partition(":")
    uvicorn.run(app, host=host, port=int(port), log_level="warning")


class OnlyHere:
    """Answers what a browser asks of this machine by its own name, and refuses all else.

    Else a site that the author visits could read the book: its name may suddenly mean this machine,
    and its scripts may open a websocket to any address.
    """

    def __init__(self, app: Any, address: str) -> None:
        self._app, self._address = app, address
        self._port = int(address.rpartition(":")[2])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers a request by the names in its headers `Host` and `Origin`."""
        from starlette.responses import PlainTextResponse

        if scope["type"] in ("http", "websocket") and (refused := self._refusal(scope["headers"])):
            status, reason = refused
            said = (
                f"verified_book watch shows the book at http://{self._address} only, "
                f"and {reason}. Remedy: open that address in a browser on this machine.\n"
            )
            await PlainTextResponse(said, status)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, headers: list[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        """The status for a request that is refused, and why."""
        hosts, origins = (
            [value.decode("latin-1") for name, value in headers if name.lower() == wanted]
            for wanted in (b"host", b"origin")
        )
        if len(hosts) != 1 or not self._is_here(hosts[0]):
            return 400, f"the request was for {' and '.join(hosts)!a}"
        for origin in origins:
            scheme, _, host = origin.partition("://")
            if scheme.lower() != "http" or not self._is_here(host):
                return 403, f"the request was made by a page of {origin!a}"
        return None

    def _is_here(self, named: str) -> bool:
        """Whether a host with its port is this server, as a browser on this machine names it."""
        found = _NAMED.fullmatch(named)
        if not found or int(found[3] or _USUAL_PORT) != self._port:
            return False
        host = found[1] or found[2]
        try:
            return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:  # the name of another host
            return False


def _rebuild(arguments: list[str], address: str, *, changed_paths: Sequence[Path]) -> None:
    """Builds the site after a change; sphinx-autobuild calls it in a process of its own."""
    names = sorted({shown(path) for path in changed_paths})
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    print(f"\nchanged: {', '.join(names[:3])}{more}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):  # the server ends too
        _build(arguments, address)


def _build(arguments: list[str], address: str) -> None:
    """Builds the site in a process of its own, which says what is not as expected."""
    command = [sys.executable, "-m", "verified_book", "_site", *arguments]
    with subprocess.Popen(command) as process:
        try:
            process.wait()
        except KeyboardInterrupt:
            _end(process)
            raise
    print(f"http://{address} shows the book; Ctrl-C ends it", flush=True)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Lets a build that was interrupted end its kernels, whether or not it knows yet."""
    for sent in (None, signal.SIGINT, signal.SIGTERM):
        if sent:
            process.send_signal(sent)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=3)
            return


class Unchanged:
    """Tells for a file whether it says the same as when it was last asked for, or is none to watch.

    Cells write files too, and those of a page that fails run in every build: what they write must
    not start the next one.
    """

    def __init__(self, watched: list[Path], builds: Path) -> None:
        self._watched = [root.resolve() for root in watched]
        self._builds = builds.resolve()
        self._seen: dict[str, str] = {}

    def __call__(self, name: str) -> bool:
        """Whether a change of a file is to be passed over."""
        path = Path(os.path.realpath(name))  # also of a link that leads to itself
        if path.is_dir() or path.is_relative_to(self._builds):
            return True
        roots = [root for root in self._watched if path.is_relative_to(root)]
        parts = path.relative_to(max(roots)).parts if roots else path.parts[-1:]
        if any(map(_PASSED_OVER.fullmatch, parts)):
            return True
        try:
            digest = digest_of(path)
        except OSError:  # it has gone
            digest = ""
        before = self._seen.get(name)
        self._seen[name] = digest
        return digest == before


def _free(port: int) -> int:
    """The port, or any that is free if another server has it."""
    for number in (port, 0):
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((_HOST, number))
            except OSError:
                continue
            found: int = trial.getsockname()[1]
            return found
    raise CommandError("no port is free to serve the book on")
