"""Blocks that no directive was made of are noticed; what a page shows as text is not."""

from pathlib import Path

import pytest

from tests.verified_book.books import Build, sphinx_build
from verified_book.outputs.unparsed import _in_open_fences

pytestmark = pytest.mark.xdist_group("unparsed")

CONF = 'extensions = ["verified_book"]\nexclude_patterns = ["part.txt"]\n'
BLOCK = "```{expect-output}\n42\n```\n"

# By name: the lines of a page, and those of its blocks that are no directive.
UNMET: dict[str, tuple[str, list[int]]] = {
    "a_fence_before_it_is_not_closed.md": (f"# A\n\n```python\nx = 1\n\n{BLOCK}", [6]),
    "a_colon_too_few.rst": ("A\n=\n\n.. expect-output:\n\n   42\n", [4]),
    "a_fence_in_words_before_it.md": ("# A\n\n``` `x` ``` y\n\n``` { expect-output}\n```\n", [5]),
    "in_what_parses_no_content.md": (f"# A\n\n````{{image}} x.png\n{BLOCK}````\n", [4]),
}
MEANT: dict[str, str] = {
    "as_code.md": f"# A\n\n````md\n{BLOCK}````\n",
    "as_code_with_a_language.rst": "A\n=\n\n.. code-block:: rst\n\n   .. expect-output::\n",
    "in_a_comment.rst": "A\n=\n\n..\n   .. expect-output::\n\n      42\n",
    "in_words.md": "# A\n\nThe `{expect-output}` directive, ` ```{expect-output} ` in full.\n",
}


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("unparsed")
    names = [Path(name).stem for name in (*UNMET, *MEANT)]
    toctree = "\n   ".join(["", *names])
    pages = {"index.rst": f"Index\n=====\n\n.. toctree::\n{toctree}\n"}
    pages |= {name: text for name, (text, _) in UNMET.items()}
    return sphinx_build(folder, CONF, pages | MEANT, status=1)


@pytest.mark.parametrize("name", UNMET)
def test_a_block_that_is_no_directive_fails_the_build(build: Build, name: str):
    found = [failure for failure in build.failures if failure.file == name]
    unmet = [failure for failure in found if "the block is no directive here" in failure.message]
    assert [failure.line for failure in unmet] == UNMET[name][1], found
    assert all("Close the fence before it" in failure.remedy for failure in unmet)


@pytest.mark.parametrize("name", MEANT)
def test_a_block_that_is_meant_as_text_is_none(build: Build, name: str):
    assert [failure for failure in build.failures if failure.file == name] == []


def test_a_fence_in_the_text_of_a_colon_block_opens_nothing():
    block = ":::{expect-output}\n```\n::: no end\n:::\n"
    assert _in_open_fences(f"{block}\n{BLOCK}", with_colons=True) == set()
