"""Small books without any check, and their builds, which a test may watch and interrupt.

What they are about is how cells run, so that plain Sphinx with the basic theme is enough.
"""

import html
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.verified_book import forks

FRONT_MATTER = """\
---
file_format: mystnb
orphan: true
kernelspec: {display_name: Python 3, language: python, name: %s}
%s
---
# Page
"""


class Build(forks.Run):
    """A build that runs or has ended."""

    @property
    def status(self) -> int:
        """Its exit status."""
        return self.wait()

    @property
    def ran(self) -> set[str]:
        """The pages whose cells ran."""
        self.wait()
        return set(re.findall(r"(\w+)\.\w+: (?:Executing notebook|Starting inline)", self.log))

    @property
    def warnings(self) -> list[str]:
        """Its warnings, without the place that they are about, and without their types."""
        self.wait()
        return re.findall(r"WARNING: (.*?)(?: \[[\w.]+\])*$", self.log, re.MULTILINE)


@dataclass
class Book:
    """A book in a folder."""

    folder: Path
    config: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        defaults = {
            "extensions": ["verified_book.kernels"],
            "html_theme": "basic",
            "exclude_patterns": ["_build"],
            "html_copy_source": False,
        }
        values = {**defaults, **self.config}
        self.write("conf.py", *(f"{name} = {value!r}" for name, value in values.items()))

    def write(self, name: str, *lines: str) -> Path:
        """Writes a file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def page(self, name: str, *cells: str, front: str = "", kernel: str = "python3") -> None:
        """Writes a page of cells."""
        fenced = [f"```{{code-cell}} ipython3\n{cell}\n```\n" for cell in cells]
        self.write(f"{name}.md", FRONT_MATTER % (kernel, front), *fenced)

    def start(self, *arguments: str, to: str = "_build/html", **environment: str) -> Build:
        """Begins a build into a folder."""
        log = self.folder.parent / f"{self.folder.name}-{time.monotonic_ns()}.log"
        options = ["--color", "-b", "html", *arguments, ".", to]
        return Build(forks.sphinx, options, self.folder, environment, log)

    def build(self, *arguments: str, to: str = "_build/html", **environment: str) -> Build:
        """Builds it into a folder."""
        build = self.start(*arguments, to=to, **environment)
        build.wait()
        return build

    def output(self, name: str = "index") -> str:
        """What the cells of a page show."""
        page = (self.folder / f"_build/html/{name}.html").read_text(encoding="utf-8")
        found = re.findall(r'<div class="cell_output.*?</div>\s*</div>', page, re.DOTALL)
        return html.unescape(re.sub("<[^>]+>", "", "\n".join(found))).strip()


def wait_until(condition: Callable[[], object], within: float = 60) -> float:
    """Waits for something, and gives the seconds that it took."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > within:
            raise TimeoutError(f"not within {within} seconds")
        time.sleep(0.02)
    return time.monotonic() - start


def lives(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def descendants(pid: int) -> dict[int, str]:
    """The command lines of the processes that a process has started, directly or not."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            status = (path / "stat").read_text().rpartition(")")[2].split()
            parents[int(path.name)] = int(status[1])
    found: dict[int, str] = {}
    queue = [pid]
    for ancestor in queue:
        children = [child for child, parent in parents.items() if parent == ancestor]
        queue += children
        for child in children:
            with suppress(OSError):
                found[child] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
    return found


def begun(book: Book, *options: str) -> tuple[Build, dict[int, str]]:
    """A build in the middle of a cell that has noted it in `started`, and all its processes."""
    build = book.start(*options)
    started = book.folder / "started"
    wait_until(lambda: started.exists() or not lives(build.pid), 60)
    found: dict[int, str] = {}
    wait_until(lambda: found.update(descendants(build.pid)) or "sleep" in str(found))
    return build, found


def app_for(source: Path, docname: str) -> Any:
    """What stands for Sphinx while a page is read."""
    env = SimpleNamespace(docname=docname, temp_data={})
    return SimpleNamespace(srcdir=source, env=env, config=SimpleNamespace(verified_book_data=[]))
