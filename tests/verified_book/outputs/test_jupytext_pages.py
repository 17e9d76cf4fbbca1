"""The lines of the cells of pages that jupytext reads."""

import jupytext
import pytest

from verified_book.outputs import jupytext_pages

PAGE = """\
---
kernelspec: {name: python3, display_name: Python 3}
---

# Title

:::{note}
```{code-cell}
1
```
:::

+++

End.
"""


def test_the_lines_are_those_of_the_cells():
    read = jupytext_pages.with_lines(lambda text: jupytext.reads(text, fmt="md:myst"))
    notebook = read(PAGE)
    assert [cell.cell_type for cell in notebook.cells] == [
        "markdown",
        "code",
        "markdown",
        "markdown",
    ]
    assert notebook.metadata["source_map"] == [3, 8, 10, 13]


@pytest.mark.parametrize(
    ("fmt", "text"), [("Rmd", "```{python}\n'```{code-cell}'\n```\n"), ("py:percent", "# %%\n1\n")]
)
def test_other_formats_have_no_lines(fmt: str, text: str):
    read = jupytext_pages.with_lines(lambda text: jupytext.reads(text, fmt=fmt))
    assert "source_map" not in read(text).metadata
    assert not jupytext_pages.is_read_so(read(text), text)


def test_without_jupytext_there_are_none(monkeypatch: pytest.MonkeyPatch):
    notebook = jupytext.reads(PAGE, fmt="md:myst")
    assert jupytext_pages.is_read_so(notebook, PAGE)
    monkeypatch.setattr(jupytext_pages, "parser", lambda: None)
    assert not jupytext_pages.is_read_so(notebook, PAGE)


def test_a_page_that_jupytext_cannot_read_has_none():
    assert jupytext_pages.as_notebook("```{code-cell}\n:tags: [a\n\n1\n```\n") is None
