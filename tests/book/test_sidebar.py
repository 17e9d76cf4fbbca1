"""The table of contents, which is the site's sidebar: short, and no page is missing."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

BOOK = Path(__file__).parents[2] / "book"
TOC = yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))
LINES = 62  # with a caption for each part, as before anything is opened


def entries(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What stands below an entry, in the order of the pages."""
    for each in part.get("chapters", part.get("sections", [])):
        yield each
        yield from entries(each)


ALL = [entry for part in TOC["parts"] for entry in entries(part)]
FOLDED = [entry for page in ALL for entry in page.get("sections", [])]


def heading(page: str) -> str:
    """The title of a page, of Markdown or reStructuredText."""
    [file] = BOOK.glob(f"{page}.*")
    found = re.search(r"^# (.+)|^(.+)\n={3,}$", file.read_text(encoding="utf-8"), re.MULTILINE)
    assert found, f"{file} has no title"
    return found[1] or found[2]


def test_every_page_is_listed_once():
    files = [
        file.relative_to(BOOK).with_suffix("").as_posix()
        for suffix in ("md", "rst")
        for file in BOOK.rglob(f"*.{suffix}")
        if not file.relative_to(BOOK).parts[0].startswith("_")
    ]
    assert sorted([TOC["root"], *(entry["file"] for entry in ALL)]) == sorted(files)


def test_the_sidebar_is_short_until_a_line_is_opened():
    lines = sum(1 + len(part["chapters"]) for part in TOC["parts"]) + 1
    assert lines <= LINES


def test_pages_of_proofs_stand_behind_one_line():
    proofs = {entry["file"] for entry in ALL if entry["file"].startswith("proofs/")}
    assert proofs == {entry["file"] for entry in FOLDED if entry["file"].startswith("proofs/")}


@pytest.mark.parametrize("entry", FOLDED, ids=lambda entry: entry["file"])
def test_a_line_is_the_title_without_what_all_lines_beside_it_say(entry):
    title = heading(entry["file"])
    line = entry.get("title", title)
    assert not re.match("Proofs|API", line)
    assert line.lower() in title.lower()
