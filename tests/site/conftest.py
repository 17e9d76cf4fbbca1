"""The built site, a server for it on this machine, and a browser that has visited every page."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.site import costs
from tests.site.screens import resize
from tests.site.serving import BROWSERS, ROOT, Handler

DESKTOP = ViewportSize(width=1300, height=900)
PHONE = ViewportSize(width=390, height=844)
SCREEN = ViewportSize(width=1300, height=1000)  # by which the height of a chapter is counted
LABEL = 11  # pixels of a word in a figure on a phone, at least
NARROW = ViewportSize(width=320, height=568)  # the narrowest phones, and a desktop at 400 %

_LINK = re.compile(r'href="([^"#?]+\.html)')

expect.set_options(timeout=60_000)  # milliseconds; five seconds can be short on a busy machine


@pytest.fixture(scope="session")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site, which the first worker that needs it builds for all.

    BUILT_SITE names one that is taken as it stands.
    """
    if built := os.environ.get("BUILT_SITE"):
        if not Path(built, "index.html").is_file():
            pytest.fail(f"BUILT_SITE={built}: no site was built there, it has no index.html")
        return Path(built).resolve()
    # The folder of all workers of this run, or of this process.
    folder = tmp_path_factory.getbasetemp()
    done = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "site-is-built"
    site = ROOT / "book" / "_build" / "html"
    program = Path(sys.executable).with_name("jupyter-book")
    command = [program, "build", "book/", "-W", "-n", "--keep-going"]
    # Two builds at once, by two workers, would mix their pickled environments into one.
    with (ROOT / "book" / "_config.yml").open() as config:
        fcntl.flock(config, fcntl.LOCK_EX)
        if done.exists():
            return site
        build = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if build.returncode:
            pytest.fail(f"the book does not build:\n{build.stderr[-4000:]}")
        done.touch()
    return site


@pytest.fixture(scope="session")
def texts(html: Path) -> dict[str, str]:
    """What every page that can be reached from the first one consists of, by its path."""
    found: dict[str, str] = {}
    ahead = ["index.html"]
    while ahead:
        name = ahead.pop()
        file = html / name
        if name in found or not file.is_file():  # test_links.py reports what is missing
            continue
        found[name] = file.read_text(encoding="utf-8")
        links = [urlsplit(urljoin(name, link)) for link in set(_LINK.findall(found[name]))]
        ahead += [unquote(link.path) for link in links if not link.netloc]
    return dict(sorted(found.items()))


class Parsed(Mapping[str, BeautifulSoup]):
    """Pages, each parsed when it is asked for."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._found: dict[str, BeautifulSoup] = {}

    def __getitem__(self, name: str) -> BeautifulSoup:
        if name not in self._found:
            self._found[name] = BeautifulSoup(self._texts[name], "html.parser")
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


@pytest.fixture(scope="session")
def pages(texts: dict[str, str]) -> Parsed:
    """The same, parsed; all take half a minute, so who asks for many is of the group "site"."""
    return Parsed(texts)


@pytest.fixture(scope="session")
def different(texts: dict[str, str]) -> list[str]:
    """The pages that a browser visits, the longest first.

    Of those with a module's source, which are alike, the longest and every twentieth.
    """
    by_length = sorted(texts, key=lambda name: len(texts[name]), reverse=True)
    alike = [name for name in by_length if name.startswith("_modules/")]
    return [name for name in by_length if name not in set(alike) - set(alike[::20])]


@pytest.fixture(scope="session")
def address(html: Path) -> Iterator[str]:
    """The address of the site."""
    handler = partial(Handler, directory=str(html))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, as installed on this machine; closed when a module's tests are over.

    Playwright leaves an event loop running in the thread, in which the tests of other folders, that
    come next in the same process, cannot begin theirs.
    """
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        reason = f"the site is tested in Chromium; install one of {', '.join(BROWSERS)}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        # Chromium refuses to run as root, which is who runs in a container, with its sandbox.
        chromium = playwright.chromium.launch(
            executable_path=program, chromium_sandbox=os.geteuid() != 0
        )
        yield chromium
        chromium.close()


@dataclass
class Visit:
    """What a browser notices on one page."""

    cost: costs.Cost = field(default_factory=lambda: costs.Cost({}, 0.0))
    messages: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    maths: dict[str, Any] = field(default_factory=dict)
    markup: list[str] = field(default_factory=list)
    unnamed_images: list[str] = field(default_factory=list)
    themes: dict[str, str] = field(default_factory=dict)
    too_wide: dict[str, list[str]] = field(default_factory=dict)
    faint: dict[str, list[str]] = field(default_factory=dict)
    open: dict[str, int] = field(default_factory=dict)
    small: list[str] = field(default_factory=list)
    symbols: dict[str, Any] | None = None


def watch(page: Page, visit: Visit, address: str) -> None:
    """Records what goes wrong from now on."""
    page.on(
        "console",
        lambda message: (
            message.type in ("error", "warning") and visit.messages.append(message.text)
        ),
    )
    page.on("pageerror", lambda error: visit.messages.append(str(error)))
    page.on(
        "request",
        lambda request: (
            request.url.startswith((address, "data:", "blob:")) or visit.foreign.append(request.url)
        ),
    )
    page.on(
        "response",
        lambda response: (
            response.status >= 400 and visit.refused.append(f"{response.status} {response.url}")
        ),
    )
    page.on(
        "requestfailed",
        lambda request: (
            # Broken off by the browser, as the icon of a page that was left at once.
            request.failure == "net::ERR_ABORTED" or visit.refused.append(f"failed {request.url}")
        ),
    )


@pytest.fixture(scope="session")
def visits_made() -> dict[int, dict[str, Visit]]:
    """The halves of the site that were visited already, each once for all tests."""
    return {}


@pytest.fixture(
    scope="module",
    params=[pytest.param(half, marks=pytest.mark.xdist_group(f"half {half}")) for half in (0, 1)],
)
def visits(
    request: pytest.FixtureRequest, different: list[str], visits_made: dict[int, dict[str, Visit]]
) -> dict[str, Visit]:
    """A visit to each page of a half of the site: light and dark, on a desktop and on a phone.

    Every other page by their length; two workers have a half each.
    """
    half: int = request.param
    if half not in visits_made:
        browser, address = map(request.getfixturevalue, ("browser", "address"))
        visits_made[half] = visited(browser, address, different[half::2])
    return visits_made[half]


def visited(browser: Browser, address: str, names: Sequence[str]) -> dict[str, Visit]:
    """Visits pages, and asks each all that needs no click.

    The browser keeps files from one page to the next, but nothing of what a page stores.
    """
    context = browser.new_context(color_scheme="light", viewport=SCREEN)
    context.add_init_script(path=Path(__file__).parent / "inspection.js")
    context.add_init_script("localStorage.clear()")
    visits: dict[str, Visit] = {}
    sizes: dict[str, int] = {}
    for name in names:
        page, visits[name] = context.new_page(), Visit()
        watch(page, visits[name], address)
        _ask(page, address + name, visits[name], sizes)
        page.close()
    context.close()
    return visits


def _ask(page: Page, url: str, visit: Visit, sizes: dict[str, int]) -> None:
    def meanwhile() -> None:
        page.evaluate("inspection.settled()")
        visit.maths = page.evaluate("inspection.maths()")
        visit.markup = page.evaluate("inspection.markup()")
        visit.unnamed_images = page.evaluate("inspection.unnamedImages()")
        visit.too_wide["desktop"] = page.evaluate("inspection.tooWide()")
        visit.open = page.evaluate("inspection.open()")
        visit.themes["light"] = page.evaluate("document.documentElement.dataset.theme")
        visit.faint["light"] = page.evaluate("inspection.faint()")

    visit.cost = costs.visited(page, url, meanwhile, sizes)
    page.evaluate("inspection.still()")
    page.emulate_media(color_scheme="dark")
    page.evaluate("inspection.settled()")
    visit.themes["dark"] = page.evaluate("document.documentElement.dataset.theme")
    visit.faint["dark"] = page.evaluate("inspection.faint()")
    for screen, size in (("narrow phone", NARROW), ("phone", PHONE)):
        resize(page, size)
        visit.too_wide[screen] = page.evaluate("inspection.tooWide()")
    visit.small = page.evaluate(f"inspection.small({LABEL})")
    if page.locator(".symbols-table").count():
        visit.symbols = page.evaluate("inspection.symbols()")
