"""What builds make within a book's folder is no page of it, for none of the builds."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.verified_book.kernels.builds import Book
from verified_book.kernels import made

NAMES = [".jupyter_cache", "**/.jupyter_cache", "jupyter_execute", "**/jupyter_execute"]


@pytest.mark.parametrize(
    ("outdir", "cache", "found"),
    [
        ("/book/_build/html", "", ["_build/html", *NAMES]),
        ("/book/_build", "", ["_build", *NAMES]),
        ("/site", "", NAMES),
        ("/book", "", NAMES),
        ("/site", "own/cache", ["own/cache", *NAMES]),
        ("/site", "/elsewhere/cache", NAMES),
    ],
)
def test_what_is_excluded(outdir: str, cache: str, found: list[str]):
    app: Any = SimpleNamespace(srcdir="/book", outdir=outdir)
    config: Any = SimpleNamespace(exclude_patterns=["old"], nb_execution_cache_path=cache)
    for _ in range(2):  # the second time nothing is new
        made.exclude_those_of_builds(app, config)
        assert config.exclude_patterns == ["old", *found]


def test_built_sites_are_found(tmp_path: Path):
    for name in ("_build", "_build/html", "a/b/c", "page", "site"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("_build/html", "a/b/c", "site", "."):
        (tmp_path / name / ".buildinfo").touch()
    assert made.sites_in(tmp_path) == [tmp_path / "_build/html", tmp_path / "site"]


@pytest.mark.parametrize(("places", "cache"), [(("_build", "_build"), "own"), (("a/b", "_c"), "")])
def test_each_build_finds_the_same_pages(tmp_path: Path, places: tuple[str, str], cache: str):
    book = Book(
        tmp_path / "book",
        {"nb_execution_mode": "cache", "exclude_patterns": [], "nb_execution_cache_path": cache},
    )
    book.page("index", "1 + 1")
    for place in places:
        build = book.build("-W", to=place)
        assert build.status == 0, build.log
        assert set(re.findall(r"reading sources\.\.\. \[ *\d+%\] (\S+)", build.log)) <= {"index"}
