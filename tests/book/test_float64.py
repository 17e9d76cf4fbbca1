"""A float that a page prints is the right one: float64 has the same digits."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.book.in_float64 import cells_of

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"


def in_float32(page: Path) -> bool:
    """Whether a page has cells with expected floats, and computes in torch's own default."""
    text = page.read_text(encoding="utf-8")
    own = re.search(r"^torch\.set_default_dtype\(torch\.float64\)", text, re.M)
    return own is None and any(want and re.search(r"\d\.\d", want) for _, want in cells_of(text))


PAGES = sorted(
    page.relative_to(BOOK).as_posix()
    for page in BOOK.rglob("*.md")
    if "_build" not in page.parts and in_float32(page)
)

DRAWN = "-1.1258 -2.3104"  # with seed 0, of float32 and of float64
PAGE = """
```{code-cell} ipython3
:tags: [show]
import torch
from transformer_training.toy_language.model import by_itself

torch.manual_seed(0)
drawn = torch.randn(20)[0].item()
with by_itself(0):
    alone = torch.randn(20)[0].item()
print(f"{drawn:.4f} {alone:.4f}")
```
```{expect-output}
DRAWN
```
```{code-cell} ipython3
(torch.tensor(1e8) + 3.0 - 1e8).item()
```
```{expect-output}
DIFFERENCE
```
```{code-cell} ipython3
torch.tensor(0.1).dtype
```
```{expect-output}
0.5
```
"""


def run(page: Path, **others: str) -> dict[str, object]:
    """What `compared` finds on a page, in a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.book.in_float64", str(page)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, object] = json.loads(ran.stdout.splitlines()[-1])
    return found


def test_a_float_that_float32_rounded_is_found_and_draws_are_those_of_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("DRAWN", DRAWN).replace("DIFFERENCE", "0.0"))
    assert run(page) == {
        "count": 3,
        "others": ["cell 1: on the page\n0.0\nin float64\n3.0"],
        "aside": [],
    }
    page.write_text(PAGE.replace("DRAWN", DRAWN).replace("DIFFERENCE", "3.0"))
    assert run(page)["others"] == []


@pytest.mark.nightly
@pytest.mark.parametrize("page", PAGES)
def test_floats_of_a_page_are_those_of_float64(page):
    found = run(BOOK / page)
    assert not found["others"], found
    # Where nothing was compared, each cell with floats printed something else or was no use.
    assert found["count"] or found["aside"], found
