"""The directive `symbols` in small books: what it adds to a page, and what it refuses."""

import re

import pytest

from tests.verified_book.books import FRONT_MATTER, sphinx_build, words

pytestmark = pytest.mark.xdist_group("light")

CONF = """\
extensions = ["verified_book", "book_site.symbols"]
verified_book_distributions = ["numpy"]
nb_execution_mode = "force"
myst_enable_extensions = ["colon_fence", "dollarmath"]
"""
CELL = """\
```{code-cell} ipython3
:tags: [remove-cell]
import numpy as np
from book_site.symbols import record

def scaled(x, eps):
    n = x.sum(-1, keepdims=True)
    return x / (n + eps)

record(lambda: scaled(np.ones((2, 3)), 1.0), scaled, batch=2, width=3)
```
"""
FRAME = """\
::::{container} equation-code
$$
\\begin{aligned}
n &= \\sum_i x_i \\\\
y &= \\frac{x}{n + \\epsilon}
\\end{aligned}
$$

```python
n = x.sum(-1, keepdims=True)
return x / (n + eps)
```
::::
"""
TABLE = """\
```{symbols}
| symbol | in the code | meaning |
| --- | --- | --- |
| $x$, $y$ | `x`, `return` | in and out |
| $n$ | `n` | the sum |
| $\\epsilon$ | `eps` | a number |
| width | | has no variable |
```
"""


def markdown(*parts):
    return FRONT_MATTER + "# Title\n\n" + "\n".join(parts)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pages = {"index.md": markdown(CELL, FRAME, TABLE)}
    return sphinx_build(tmp_path_factory.mktemp("symbols"), CONF, pages)


def rows(page):
    table = page.partition("symbols-table")[2].partition("</table>")[0]
    return [
        [words(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)]
        for row in table.split("<tr")[1:]
    ]


def test_shapes_are_those_of_the_run(site):
    assert rows(site.pages["index.html"]) == [
        ["symbol", "in the code float64; batch 2, width 3", "meaning"],
        [r"\(x\) , \(y\)", "x , return (batch, width)", "in and out"],
        [r"\(n\)", "n (batch, 1)", "the sum"],
        [r"\(\epsilon\)", "eps float", "a number"],
        ["width", "", "has no variable"],
    ]


def test_symbols_and_variables_share_a_number(site):
    frame = site.pages["index.html"].partition("equation-code")[2].partition("symbols-table")[0]
    code = re.sub(r"</?span(?! class=\"symbol)[^>]*>", "", frame.partition("<pre>")[2])
    assert re.findall(r'<span class="symbol symbol-(\d)">(\w+)', code) == [
        ("2", "n"), ("0", "x"), ("1", "return"), ("0", "x"), ("2", "n"), ("3", "eps"),
    ]  # fmt: skip
    drawn = re.findall(r'data-tex="([^"]*)"', frame)
    assert len(drawn) == 1
    assert re.findall(r"symbol-(\d)\}\{(\\?\w+)", drawn[0]) == [
        ("2", "n"), ("0", "x_i"), ("1", "y"), ("0", "x"), ("2", "n"), ("3", r"\epsilon"),
    ]  # fmt: skip


MISTAKES = [
    ("| $n$ |", "| $m$ |", "no equation above has the symbol m", "as the equation has it"),
    ("`eps`", "`epsilon`", "no source above has the variable epsilon", "as the source has it"),
    ("`eps`", "`keepdims`", "no value of keepdims was recorded; these were: x, eps, n", "record("),
    ("`x`, `return`", "`x`", r"2 symbols and 1 variables stand in one row", "of each symbol"),
]


def page_with(before, after):
    text = markdown(CELL, FRAME, TABLE)
    assert before in text
    return text.replace(before, after)


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory):
    """A book with a page for each mistake."""
    pages = {
        f"page{number}.md": page_with(before, after)
        for number, (before, after, _, _) in enumerate(MISTAKES)
    }
    pages["index.md"] = "# Index\n\n```{toctree}\n:glob:\npage*\n```\n"
    return sphinx_build(tmp_path_factory.mktemp("mistaken"), CONF, pages, status=1)


@pytest.mark.parametrize(("before", "after", "message", "remedy"), MISTAKES)
def test_mistakes_are_named(mistaken, before, after, message, remedy):
    name = f"page{MISTAKES.index((before, after, message, remedy))}.md"
    failure = next(failure for failure in mistaken.failures if failure.file == name)
    text = page_with(before, after)
    assert failure.line == text[: text.index("{symbols}")].count("\n") + 1
    assert message in failure.message
    assert remedy in failure.remedy
