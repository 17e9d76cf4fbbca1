"""A page that goes through a note has a line for each of its claims, beside what became of it."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tests.verified_book.books import FRONT_MATTER, Build, sphinx_build

pytestmark = pytest.mark.xdist_group("other books")

CONF = """\
extensions = ["book_site.note_lines"]
nb_execution_mode = "off"
verified_book_notes = {"first": "first note", "second": "second note"}
"""
PAGE = """\
# Sums

```{claim} A1
:note: first
:verdict: fails

It is *six*, says {doc}`../index`.
:stated: It is seven.
```

```{claim} A2
:note: first
:verdict: holds

It is even.
```

```{code-cell}
not run
```
"""
LINES = """\
# A book

```{toctree}
part/sums
```

```{note-lines} first
A1: It is seven, says `two
  plus` four.

A2: It is even.
```
"""


def built(folder: Path, pages: dict[str, str], status: int = 0) -> Build:
    return sphinx_build(folder, CONF, {"part/sums.md": FRONT_MATTER + PAGE} | pages, status=status)


def rows(page: Path) -> list[list[str]]:
    table = BeautifulSoup(page.read_text(), "html.parser").select_one("table.note-lines")
    assert table
    return [
        [" ".join(cell.get_text().split()) for cell in row.select("td")]
        for row in table.select("tbody tr")
    ]


def test_each_line_stands_beside_its_claim(tmp_path):
    site = built(tmp_path, {"index.md": LINES}).site
    assert rows(site / "index.html") == [
        ["It is seven, says two plus four.", "not proven A1, Sums It is six, says A book."],
        ["It is even.", "not proven A2, Sums It is even."],
    ]
    page = BeautifulSoup(site.joinpath("index.html").read_text(), "html.parser")
    titles = [title.get_text(strip=True) for title in page.select("table.note-lines th")]
    assert titles == ["what the note says", "what is true"]
    links = [link["href"] for link in page.select("table.note-lines a")]
    assert links == ["part/sums.html#claim-a1", "#", "part/sums.html#claim-a2"]
    assert page.select_one("table.note-lines td code")


def test_mistakes_name_the_line_and_the_remedy(tmp_path):
    lines = LINES.replace("A2: It is even.", "A2 without a colon\nB1: What?\nA1: Again.")
    lines += "\n```{note-lines} third\nA1: No.\n```\n"
    build = built(tmp_path, {"index.md": lines}, status=1)
    told = [(f"{each.file}:{each.line}", each.message, each.remedy) for each in build.failures]
    no_line = "note-lines: 'A2 without a colon' is no line of a note"
    assert sorted(told) == [
        ("index.md:11", no_line, "Write the id of a claim, a colon, and what the note says."),
        ("index.md:12", "note-lines: first has no claim B1", "Its claims are: A1, A2."),
        ("index.md:13", "note-lines: A1 has 2 lines", "Leave one of them."),
        ("index.md:13", "note-lines: no line for A2 of first", "Say what the note states there."),
        ("index.md:16", "note-lines: unknown note 'third'", "The notes are: first, second."),
        ("index.md:8", "note-lines: A1 has 2 lines", "Leave one of them."),
    ]
