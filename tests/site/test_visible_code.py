"""What a lesson shows runs: its visible cells, pasted in order into a fresh Python."""

import re
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest
from bs4 import BeautifulSoup

from tests.site.lessons import pages as possible_lessons

BOOK = Path(__file__).parents[2] / "book"
LESSONS = [page.relative_to(BOOK).with_suffix("").as_posix() for page in possible_lessons(BOOK)]


@pytest.fixture
def code(html, lesson):
    """What a reader of a lesson pastes."""
    text = (html / f"{lesson}.html").read_text(encoding="utf-8")
    return pasted(BeautifulSoup(text, "html.parser"))


def pasted(soup: BeautifulSoup) -> str:
    """The code that a page shows unfolded, in order; where a cell shows an error, it goes on."""
    parts = []
    for shown in soup.select("article div.cell div.cell_input"):
        if shown.find_parent("details"):
            continue
        part = shown.get_text().strip("\n")
        if shown.find_parent("div", class_="tag_raises-exception"):
            part = f"try:\n{indent(part, '    ')}\nexcept Exception:\n    pass"
        parts.append(part)
    return "\n".join(parts) + "\n"


def unbound(code: str) -> list[str]:
    """The names that code uses before it has bound or imported them.

    What a function reads may be bound after it, and before it is called: only a run shows that.
    """
    command = ["ruff", "check", "--isolated", "--select=F821", "--output-format=concise", "-"]
    ran = subprocess.run(
        [sys.executable, "-m", *command], input=code, capture_output=True, text=True, check=False
    )
    if ran.returncode > 1 or "invalid-syntax" in ran.stdout:
        raise ValueError(f"this is no Python: {ran.stdout}{ran.stderr}\n{code}")
    return sorted(set(re.findall(r"F821 Undefined name `(\w+)`", ran.stdout)))


@pytest.mark.parametrize("lesson", LESSONS)
def test_visible_cells_have_bound_every_name_they_use(code, lesson):
    assert unbound(code) == []


@pytest.mark.nightly
@pytest.mark.parametrize("lesson", LESSONS)
def test_visible_cells_run_in_a_fresh_python(code, lesson, tmp_path):
    ran = subprocess.run(
        [sys.executable, "-"],
        input=code,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]


def cell(code: str, tags: str = "", fold: bool = False) -> str:
    """A cell as Jupyter Book writes it."""
    shown = f'<div class="cell_input"><pre>{code}</pre></div>'
    return f'<div class="cell {tags}">{f"<details>{shown}</details>" if fold else shown}</div>'


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (cell("a + 1") + cell("a = 1"), ["a"]),
        (cell("import math", fold=True) + cell("math.pi"), ["math"]),
        (cell("import math", fold=True) + cell("from math import pi\npi"), []),
        (cell("1 / zero", "tag_raises-exception"), ["zero"]),
    ],
)
def test_a_name_that_no_visible_cell_binds_is_seen(body, names):
    soup = BeautifulSoup(f"<article>{body}</article>", "html.parser")
    assert unbound(pasted(soup)) == names
