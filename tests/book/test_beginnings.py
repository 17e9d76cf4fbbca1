"""No page begins with a folded cell: set-up is removed, or stands after the first sentence."""

import re
from pathlib import Path

import pytest

BOOK = Path(__file__).parents[2] / "book"
PAGES = sorted(
    page.relative_to(BOOK).as_posix()
    for suffix in ("md", "rst")
    for page in BOOK.rglob(f"*.{suffix}")
    if not page.relative_to(BOOK).parts[0].startswith("_")
)
# What stands above the first sentence and is not seen: front matter, targets, comments, the index.
UNSEEN = re.compile(
    r"\A(?:\s+|---\n.*?\n---\n|\([\w-]+\)=\n|%[^\n]*\n|# [^\n]*\n|[^\n]+\n={3,}\n|\.\. _[^\n]+\n"
    r"|```\{index\}.*?\n```\n|\.\. index::[^\n]*\n"
    r"|(`{3,})\{code-cell\}[^\n]*\n(?:(?!\1)[^\n]*\n)*?:tags:[^\n]*remove-cell[^\n]*\n.*?\n\1\n"
    r"|\.\. code-cell::[^\n]*\n\s+:tags:[^\n]*remove-cell[^\n]*\n(?:\s*\n|[ ]+[^\n]*\n)*)",
    re.DOTALL,
)
FOLDED = re.compile(
    r"\A(?:`{3,}\{code-cell\}[^\n]*\n(?::(?!tags)[^\n]*\n)*:tags:[^\n]*hide-"
    r"|\.\. code-cell::[^\n]*\n\s+:tags:[^\n]*hide-)"
)


def begins_folded(text: str) -> bool:
    """Whether the first thing that a page shows below its title is a folded cell."""
    while found := UNSEEN.match(text):
        text = text[found.end() :]
    return FOLDED.match(text) is not None


@pytest.mark.parametrize("page", PAGES)
def test_no_page_begins_with_a_folded_cell(page):
    assert not begins_folded((BOOK / page).read_text(encoding="utf-8"))


CELL = "```{{code-cell}} ipython3\n:tags: [{}]\nimport torch\n```\n"


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("---\na: b\n---\n\n(x)=\n# A\n\n```{index} b\n```\n\n" + CELL.format("hide-cell"), True),
        ("# A\n\n" + CELL.format("remove-cell") + CELL.format("hide-input"), True),
        ("# A\n\n" + CELL.format("remove-cell") + "Words.\n\n" + CELL.format("hide-input"), False),
        ("A\n===\n\n.. code-cell::\n   :tags: [hide-input]\n\n   import torch\n", True),
    ],
)
def test_a_page_that_begins_with_a_folded_cell_is_seen(text, folded):
    assert begins_folded(text) is folded
