"""`accept` runs pages in the mode that rewrites them, and names those that it has rewritten."""

import os
from pathlib import Path

import pytest

from tests.verified_book import forks
from tests.verified_book.books import run
from tests.verified_book.commands.conftest import GREEN, RED, Command, write
from verified_book.accepting import mode

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("commands")]

PATCH = """\
--- red.md
+++ red.md
@@ -9,5 +9,5 @@
 ```
\x20
 ```{expect-output}
-41
+42
 ```
1 page, 1 output checked, 0 not checked, no failure, 1 block to be written
"""


def test_pages_are_rewritten_and_named(command: Command, tmp_path: Path):
    write(tmp_path, {"red.md": RED, "green.rst": GREEN})
    said = command("accept", "--dry-run", "red.md")
    assert (said.status, said.out) == (1, PATCH)
    assert (tmp_path / "red.md").read_text() == RED
    said = command("accept", "red.md", "green.rst")
    assert (said.status, said.out) == (
        0,
        "verified_book: rewrote 1 expected block(s) in red.md\n"
        "2 pages, 2 outputs checked, 0 not checked, no failure\n"
        "Review the changes with `git diff`.\n",
    )
    assert (tmp_path / "red.md").read_text() == RED.replace("41", "42")
    assert (tmp_path / "green.rst").read_text() == GREEN
    assert mode.VARIABLE not in os.environ


def test_copies_that_a_build_has_made_are_no_pages(command: Command, tmp_path: Path):
    place = "out/html"
    conf = "extensions = ['verified_book', 'verified_book.notebooks']\nhtml_theme = 'basic'\n"
    conf += "nb_execution_mode = 'cache'\n"
    write(tmp_path, {"docs/conf.py": conf, "docs/index.md": RED})
    docs = tmp_path / "docs"
    for _ in range(2):
        build = run(forks.sphinx, [".", place], docs / place, docs)
        assert build.status == 1, build.log
        assert [failure.file for failure in build.failures] == ["index.md"]
    assert len(list(docs.rglob("*.ipynb"))) >= 3  # in the cache, the notebooks, and the site
    last = "1 page, 1 output checked, 0 not checked"
    assert command("check", "docs").out.endswith(f"{last}, 1 failure\n")
    said = command("accept", "docs")
    assert (said.status, said.err) == (0, "")
    assert f"{last}, no failure\n" in said.out
    assert command("check", "docs").out == f"{last}, no failure\n"


def test_what_moves_is_masked_and_what_no_block_can_mend_fails(command: Command, tmp_path: Path):
    moving = "import time\ntime.perf_counter_ns()"
    lost = "\n\n```{expect-output}\nlost\n```\n"
    write(
        tmp_path, {"docs/page.md": RED.replace("6 * 7", f"print('at', end=' ')\n{moving}") + lost}
    )
    said = command("accept", "--twice", "docs/page.md")
    assert said.status == 1
    assert said.out.startswith("verified_book: rewrote 1 expected block(s) in docs/page.md\n")
    page = (tmp_path / "docs/page.md").read_text()
    assert "```{expect-output}\nat\n...\n```" in page
    line = page[: page.index("lost")].count("\n")  # of the page as it has become
    assert f"docs/page.md:{line}: ERROR: expect-output: no code cell directly before it" in said.out
