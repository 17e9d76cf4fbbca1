"""What Lighthouse says of a page, where it is installed: npm install --global lighthouse."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

PROGRAM = "lighthouse"
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")


def scores(program: str, browser: str, address: str, form: str, runs: int = 3) -> list[int]:
    """Visits a page some times, and gives the median of each category's score, of 100.

    Args:
        program: Lighthouse.
        browser: The browser that it drives.
        address: Of the page; its server must compress.
        form: `desktop` or `mobile`.
        runs: Number of visits.
    """
    found = [_visit(program, browser, address, form) for _ in range(runs)]
    return [round(100 * median(each[name]["score"] for each in found)) for name in CATEGORIES]


def _visit(program: str, browser: str, address: str, form: str) -> dict[str, dict[str, float]]:
    flags = ["--headless=new", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    command = [program, address, "--quiet", "--output=json", f"--chrome-flags={' '.join(flags)}"]
    command.append(f"--only-categories={','.join(CATEGORIES)}")
    if form == "desktop":
        command.append("--preset=desktop")
    done = subprocess.run(
        command, env={**os.environ, "CHROME_PATH": browser}, capture_output=True, check=True
    )
    categories: dict[str, dict[str, float]] = json.loads(done.stdout)["categories"]
    return categories


@contextmanager
def compressing(site: Path) -> Iterator[str]:
    """Serves a site compressed, as a host does, and gives its address."""
    app = Starlette(
        routes=[Mount("/", StaticFiles(directory=site, html=True))],
        middleware=[Middleware(GZipMiddleware, minimum_size=500)],
    )
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.05)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        thread.join()
