"""pytest plugin: the expected blocks of a book's pages as tests.

Asked for with `pytest --verified-book book/` or, for good, in `pyproject.toml`:

    [tool.pytest.ini_options]
    verified_book = ["book/"]

Each page is a collector. It has an item for each block, named after its line, and one for all else
that can be wrong with the page. The page runs once, when the first of its items does, in a process
of its own.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

_SUFFIXES = {".md", ".rst", ".ipynb"}
_CELL = re.compile(r"code-cell|expect-output")
_BLOCK = re.compile(
    r"[ \t>|*+\-\d.)]*?(?:(?:`{3,}|~{3,}|:{3,})[ \t]*\{ *|\.\.[ \t]+)expect[-_ ]output\b"
)
_NO_PAGES = re.compile(r"\..*|_build|jupyter_execute|__pycache__|node_modules")

_Failure = dict[str, Any]  # as `verified_book.commands.reporting.as_json` writes it


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option and the ini value by which pages are chosen."""
    purpose = "check the expected outputs of a page, or of all pages in a folder"
    parser.getgroup("verified_book").addoption(
        "--verified-book", action="append", default=[], metavar="PATH", help=purpose
    )
    parser.addini("verified_book", f"paths: {purpose}", type="paths", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Collects pages if it was asked to."""
    base = config.invocation_params.dir
    asked = [base / path for path in config.getoption("--verified-book")]
    set_up = [Path(path) for path in config.getini("verified_book")]
    if not asked and not set_up:
        return
    for path in asked or set_up:
        if not os.path.exists(path):
            raise pytest.UsageError(f"verified_book: {path}: there is no such page or folder")
    config.pluginmanager.register(_Pages(asked or set_up), "verified_book_pages")
    # As with `testpaths`, what is set up for good is added where no path is given.
    none_given = config.args_source is not pytest.Config.ArgsSource.ARGS
    for path in asked or (set_up if none_given else []):
        given = [(base / argument.partition("::")[0]).resolve() for argument in config.args]
        if not any(_overlap(path.resolve(), other) for other in given):
            config.args.append(str(path))


def _overlap(path: Path, other: Path) -> bool:
    return path.is_relative_to(other) or other.is_relative_to(path)


class _Pages:
    """Finds the pages below some paths."""

    def __init__(self, paths: list[Path]) -> None:
        self._paths = [path.resolve() for path in paths]

    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Makes a collector of a page."""
        if file_path.suffix not in _SUFFIXES:
            return None
        path = file_path.resolve()
        for root in self._paths:
            if path == root:
                return PageFile.from_parent(parent, path=file_path, named=True)
            if path.is_relative_to(root) and _is_page(path, root):
                return PageFile.from_parent(parent, path=file_path, named=False)
        return None


def _is_page(path: Path, root: Path) -> bool:
    """Whether a file looks like a page with cells; its book decides when it runs."""
    if any(map(_NO_PAGES.fullmatch, path.relative_to(root).parts)):
        return False
    return path.suffix == ".ipynb" or bool(_CELL.search(_text(path)))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


class PageFile(pytest.File):
    """A page of a book."""

    def __init__(self, *, named: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._named = named

    def collect(self) -> Iterator[pytest.Item]:
        """An item for each line that looks like a block, and one for the page."""
        if self.config.pluginmanager.hasplugin("xdist"):  # With `--dist loadgroup`, one worker.
            self.add_marker(pytest.mark.xdist_group(self.nodeid))
        for line in self.lines:
            yield BlockItem.from_parent(self, name=f"line-{line}", line=line)
        yield PageItem.from_parent(self, name="page")

    @cached_property
    def lines(self) -> list[int]:
        """The lines, from 1, that look like blocks; those of a notebook are not its cells'."""
        if self.path.suffix == ".ipynb":
            return []
        lines = _text(self.path).split("\n")
        return [number for number, line in enumerate(lines, start=1) if _BLOCK.match(line)]

    @cached_property
    def run(self) -> "_Run":
        """What came of the page when it ran."""
        found = _results(self.path)
        if found.get("foreign") and not self._named:
            return _Run(skipped=found["error"])
        if "error" in found:
            return _Run(error=found["error"])
        page = found["pages"][0]
        if not page["executed"]:
            return _Run(skipped="its book does not run this page")
        return _Run(page["path"], page["blocks"], found["failures"], self.lines)


class _Run:
    """The results of a page, each failure given to an item."""

    def __init__(
        self,
        path: str = "",
        blocks: list[dict[str, Any]] | None = None,
        failures: list[_Failure] | None = None,
        lines: list[int] | None = None,
        *,
        skipped: str = "",
        error: str = "",
    ) -> None:
        self.skipped, self.error = skipped, error
        own = [b for b in blocks or [] if b["source"] == path and b["line"] in (lines or [])]
        self.compared = {block["line"]: block["compared"] for block in own}
        of_cell = {block["cell"]: block["line"] for block in own if block["cell"] is not None}
        self.of_page: list[_Failure] = []
        self.of_line: dict[int, list[_Failure]] = defaultdict(list)
        for failure in failures or []:
            line = failure["line"]
            if failure["source"] != path or line not in (lines or []):
                line = of_cell.get(failure["cell"])  # of a cell with a block; None if of no cell
            (self.of_page if line is None else self.of_line[line]).append(failure)


def _results(path: Path) -> dict[str, Any]:
    """Runs a page in a process of its own, which leaves this one as it is."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.json")
        command = [sys.executable, "-m", "verified_book", "check", str(path)]
        command += ["--json", str(results)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        sys.stderr.write(done.stderr)  # pytest shows it where the item fails
        if results.is_file():
            found: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
            return found
        return {"error": f"{path}: it could not be run\n{done.stderr.strip()}"}


def _place(failure: _Failure) -> str:
    return f"{os.path.relpath(failure['source'])}:{failure['line']}"


class _Item(pytest.Item):
    """What the items of a page share."""

    parent: PageFile

    def _result(self) -> _Run:
        run = self.parent.run
        if run.skipped:
            pytest.skip(run.skipped)
        if run.error:
            pytest.fail(run.error, pytrace=False)
        return run

    def _fail(self, failures: list[_Failure]) -> None:
        pytest.fail("\n\n".join(map(self._described, failures)), pytrace=False)

    def _described(self, failure: _Failure) -> str:
        """A failure with its place, and pytest's own account of how two texts differ."""
        message: str = failure["message"]
        if failure["executed"] is not None:
            explained = self.ihook.pytest_assertrepr_compare(
                config=self.config,
                op="==",
                left=failure["executed"],
                right=failure["expected"],
            )
            first, *rest = next(filter(None, explained), ["the texts differ"])
            headline = message.partition("\n")[0]
            message = "\n".join([headline, f"assert {first}", *(f"  {line}" for line in rest)])
        return f"{_place(failure)}: {message}\nRemedy: {failure['remedy']}"


class BlockItem(_Item):
    """An expected block, and the cell above it."""

    def __init__(self, *, line: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._line = line

    def runtest(self) -> None:
        """Fails if the output of the cell is not as expected, or was not compared with it."""
        run = self._result()
        if failures := run.of_line[self._line]:
            self._fail(failures)
        if run.compared.get(self._line):
            return
        place = f"{os.path.relpath(self.path)}:{self._line}"
        # Not met, since the page shows it as text, or could not be read; or its cell has not run.
        if self._line not in run.compared and not run.of_page:
            pytest.skip(f"{place}: the page shows this block as text")
        causes = run.of_page or [item for found in run.of_line.values() for item in found]
        lines = [f"{place}: nothing was held against this block, since:"]
        lines += [f"{_place(item)}: {item['message'].partition(chr(10))[0]}" for item in causes]
        pytest.fail("\n".join(lines), pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the block is."""
        return self.path, self._line - 1, f"{self.path.name}:{self._line}"


class PageItem(_Item):
    """What can be wrong with a page beside its blocks: cells that raise, or have no block."""

    def runtest(self) -> None:
        """Fails if anything of the page does that no block stands for."""
        if failures := self._result().of_page:
            self._fail(failures)

    def reportinfo(self) -> tuple[Path, None, str]:
        """The page."""
        return self.path, None, self.path.name
