"""What Sphinx keeps between builds, damaged: it costs time and a sentence; no failure is lost."""

import logging
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.verified_book.books import sphinx_build
from tests.verified_book.hostile import DAMAGES
from verified_book import seals

ENVIRONMENT = "environment.pickle"


@pytest.fixture
def app(tmp_path: Path) -> Any:
    """A build that has written its environment and the doctrees of two pages."""
    env = SimpleNamespace(all_docs={"index": 1, "sub/page": 2, "not written": 3})
    (tmp_path / "sub").mkdir()
    for name in (ENVIRONMENT, "index.doctree", "sub/page.doctree"):
        (tmp_path / name).write_bytes(pickle.dumps({"what it says": name}))
    app = SimpleNamespace(doctreedir=tmp_path, env=env)
    seals.seal(app, env)
    return app


def left(app: Any) -> set[str]:
    """The files that the next build will trust."""
    seals.check(app, None)
    paths = Path(app.doctreedir).rglob("*")
    return {path.relative_to(app.doctreedir).as_posix() for path in paths if path.is_file()} - {
        seals.SEAL
    }


WHOLE = {ENVIRONMENT, "index.doctree", "sub/page.doctree"}


def test_what_a_build_has_left_stays(app: Any, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    assert left(app) == WHOLE
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (ENVIRONMENT, "half"),
        ("index.doctree", "binary"),
    ],
)
def test_what_is_damaged_goes(app: Any, name: str, kind: str, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    file = Path(app.doctreedir, name)
    DAMAGES[kind](file)
    assert left(app) == WHOLE - {name}
    what = "every page is" if name == ENVIRONMENT else "its page is"
    assert caplog.messages == [f"{file} is not as a build has left it: {what} read again"]
    assert not file.is_symlink()
    assert not file.exists()


def test_a_red_book_stays_red_and_a_page_says_what_its_source_says(tmp_path: Path):
    conf = 'extensions = ["verified_book"]\nnb_execution_mode = "cache"\nhtml_theme = "basic"\n'
    pages = {
        "index.rst": "Index\n=====\n\nThe sum is 4.\n\n.. toctree::\n\n   red\n",
        "red.rst": "Red\n===\n\n.. code-cell::\n\n   1\n\n.. expect-output::\n\n   2\n",
    }
    first = sphinx_build(tmp_path, conf, pages, "-T", status=1)
    file = first.site / ".doctrees" / ENVIRONMENT
    changed = file.read_bytes().replace(b"verified_book_records", b"werified_book_records")  # a bit
    assert changed != file.read_bytes()
    file.write_bytes(changed)
    (first.site / "index.html").unlink()
    second = sphinx_build(tmp_path, conf, {}, "-T", status=1)
    assert [failure.line for failure in second.failures] == [8]
    assert f"{ENVIRONMENT} is not as a build has left it: " in second.log
    assert "The sum is 4." in second.pages["index.html"]
