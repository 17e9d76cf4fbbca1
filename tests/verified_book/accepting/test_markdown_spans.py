"""Cells and blocks of Markdown pages are found where MyST-NB finds them, and nowhere else."""

from pathlib import Path

import pytest

from tests.verified_book.accepting.edits import (
    FRONT_MATTER,
    accepted,
    edit,
    markdown,
    reason,
    summary,
)

FIRST = FRONT_MATTER.count("\n") + 1  # line below the front matter

NOT_BLOCKS = {
    "a string in a cell": "````{code-cell}\nx = '''\n```{expect-output}\n1\n```\n\n\n'''\n````",
    "an outer fence": "````md\n```{expect-output}\n1\n```\n````",
    "a directive": "````{note}\n```{expect-output}\n1\n```\n````",
    "a quote": "> ```{expect-output}\n> 1\n> ```",
}


@pytest.mark.parametrize("part", NOT_BLOCKS.values(), ids=NOT_BLOCKS)
def test_what_is_no_block_is_not_taken_for_one(part: str):
    text = f"{FRONT_MATTER}{part}\n\n```{{code-cell}}\n2\n```\n\n```{{expect-output}}\n1\n```\n"
    spans = markdown().spans(text)
    blocks = [span for span in spans if span.kind == "block"]
    assert [block.start for block in blocks] == [text.count("\n") - 3]
    end = len(spans) - 1
    assert spans[end - 1].block == end
    new = accepted(text, markdown(), {end: "2"})
    assert new == text[: text.rindex("1")] + "2\n```\n"


def test_cells_have_the_code_that_runs(tmp_path: Path):
    (tmp_path / "code.py").write_text("loaded\n1")
    text = (
        f"{FRONT_MATTER}```{{code-cell}} ipython3\n---\ntags: [a]\n---\nyaml\n```\n"
        "~~~{code-cell}\n:tags: [b]\n\ncolons\n~~~\n"
        "  ````{code-cell}\n  ```\n   indented\n  ````\n"
        "```{code-cell}\n:load: code.py\n```\n"
        "``` {code-cell}\nno cell\n```\n"
        ":::{note}\n```{code-cell}\nno cell\n```\n:::\n"
    )
    spans = markdown(path=tmp_path / "page.md").spans(text)
    assert summary(spans) == [
        ("cell", FIRST, "yaml"),
        ("cell", FIRST + 6, "colons"),
        ("cell", FIRST + 11, "```\n indented"),
        ("cell", FIRST + 15, "loaded\n1"),
    ]
    new = accepted(text, markdown(path=tmp_path / "page.md"), {3: "1"})
    assert new == text.replace(
        ":load: code.py\n```\n", ":load: code.py\n```\n\n```{expect-output}\n1\n```\n"
    )


CELL = "```{code-cell}\n1\n```\n"
REPLACED = [
    ("```{expect-output}\nold\n```\n", "```{expect-output}\nnew\n```\n"),
    ("`````{expect-output}\n```\nold\n```````\n", "`````{expect-output}\nnew\n```````\n"),
    ("  ~~~{expect-output}\n  old\n more\n ~~~\n", "  ~~~{expect-output}\n  new\n ~~~\n"),
]


BETWEEN = ["", "\n\n\n", "% a comment\n\n+++\n", "<!-- a -->\n"]
NEWLINES = ["\n", "\r\n", "\r"]
CASES = [
    (*block, BETWEEN[number % 4], NEWLINES[number % 3]) for number, block in enumerate(REPLACED)
]


@pytest.mark.parametrize(("before", "after", "between", "newline"), CASES)
def test_a_block_is_replaced(before: str, after: str, between: str, newline: str):
    def page(block: str) -> str:
        return (FRONT_MATTER + CELL + between + block).replace("\n", newline)

    assert accepted(page(before), markdown(), {1: "new"}) == page(after)


def test_a_new_block_takes_the_fence_of_its_cell_and_leaves_the_end_of_the_page():
    text = f"{FRONT_MATTER}~~~{{code-cell}}\n1\n~~~"
    new = accepted(text, markdown(), {0: "1"})
    assert new == f"{text}\n\n~~~{{expect-output}}\n1\n~~~"


def test_kept_lines_stay_byte_for_byte():
    block = "  ```{expect-output}\n  a 0.3   \r\n\t\n  changed\n  ...\n  z\n  ```\n"
    text = FRONT_MATTER + CELL + block
    new = accepted(text, markdown(), {1: "a 0.31\n\nother\nb\nc\nz"})
    assert new == text.replace("changed", "other")


REFUSED = {
    "a block that is not closed": (
        f"{CELL}\n```{{expect-output}}\n1\n\nProse of the author.\n",
        1,
        "the fence of the block is not closed",
    ),
    "a block that is not shown": (
        f"{CELL}\n```{{expect-output}}\n1\n```\n",
        0,
        "a block that is not held to the cell follows it",
    ),
}


@pytest.mark.parametrize(("text", "index", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_sure_is_refused(text: str, index: int, why: str):
    assert reason(FRONT_MATTER + text, markdown(), {index: "new"}) == why


def test_what_is_not_as_it_was_parsed_is_refused():
    text = f"{FRONT_MATTER}{CELL}\n```{{expect-output}}\n1\n```\n\n{CELL}"
    spans = markdown().spans(text)
    for index, changed, why in [
        (0, {"code": "2"}, "the cell does not stand there as it was parsed"),
        (0, {"cell_line": 1}, "the cell does not stand there as it was parsed"),
        (1, {"old": "2"}, "the block does not follow its cell as it was parsed"),
        (2, {"old": "1"}, "the block does not follow its cell as it was parsed"),
    ]:
        assert reason(text, markdown(), {index: edit(spans, index, "new", **changed)}) == why
