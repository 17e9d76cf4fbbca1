"""`accept` runs pages in the mode that rewrites them, and names those that it has rewritten."""

import os
from pathlib import Path

import pytest
from sphinx.util import logging

from tests.verified_book.commands.conftest import GREEN, RED, Command, write
from verified_book import accepting

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("commands")]

TWICE = f"{accepting.VARIABLE}_TWICE"


@pytest.fixture
def modes(monkeypatch) -> list[tuple[str, str]]:
    """The values of the two variables in each run; what is to be written is written plainly."""
    found = []

    def rewrite(app, pages):
        found.append((os.environ[accepting.VARIABLE], os.environ[TWICE]))
        for edit in (edit for record in pages.values() for edit in record.edits):
            path = Path(edit.source)
            if os.environ[accepting.VARIABLE] == "dry":
                logger = logging.getLogger(f"{accepting.__name__}.shown")
                logger.info("--- %s\n-%s\n+%s", path.name, edit.old, edit.new)
            else:
                path.write_text(path.read_text().replace(edit.old, edit.new))
        for record in pages.values():
            record.edits = []

    monkeypatch.setattr(accepting, "rewrite", rewrite)
    return found


def test_pages_are_rewritten_and_named(command: Command, tmp_path: Path, modes):
    write(tmp_path, {"red.md": RED, "green.rst": GREEN})
    assert command("accept", "--dry-run", "red.md").out == (
        "--- red.md\n-41\n+42\n1 page, 1 output checked, 0 not checked, no failure\n"
    )
    assert (tmp_path / "red.md").read_text() == RED
    said = command("accept", "red.md", "green.rst", "--twice")
    assert (said.status, said.out) == (
        0,
        "2 pages, 2 outputs checked, 0 not checked, no failure\n"
        "rewrote red.md\nReview the changes with `git diff`.\n",
    )
    assert (tmp_path / "red.md").read_text() == RED.replace("41", "42")
    assert (tmp_path / "green.rst").read_text() == GREEN
    assert modes == [("dry", "0"), ("1", "1"), ("1", "1")]
    assert accepting.VARIABLE not in os.environ


def test_what_no_block_can_mend_still_fails(command: Command, tmp_path: Path, modes):
    write(tmp_path, {"page.md": "# Page\n\n```{expect-output}\n1\n```\n"})
    said = command("accept", "page.md")
    assert said.status == 1
    assert "page.md:3: ERROR: expect-output: no code cell directly before it" in said.out
    assert "rewrote" not in said.out
