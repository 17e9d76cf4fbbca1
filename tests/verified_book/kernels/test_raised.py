"""An error that the kernel tells of in its reply only is the cell's, with what stands on stderr."""

from pathlib import Path
from typing import Any

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_output

from tests.verified_book.kernels.builds import Book
from verified_book.kernels.raised import note_error

GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "1.py", line 1, in <module>
  | ExceptionGroup: all (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    | ValueError: a
    +------------------------------------
"""
FIRST = "Traceback (most recent call last):\nKeyError: 'k'\n"


def stream(text: str, name: str = "stderr") -> NotebookNode:
    return new_output("stream", name=name, text=text)


def reply(name: str, message: str, **more: object) -> dict[str, Any]:
    return {"content": {"status": "error", "ename": name, "evalue": message, **more}}


def noted(answer: dict[str, Any] | None, *outputs: NotebookNode) -> list[tuple[str, str]]:
    """The outputs of a cell afterwards: the streams and the errors."""
    cell = new_code_cell(outputs=list(outputs))
    note_error(cell, answer)
    return [
        ("error", "\n".join(output.traceback))
        if output.output_type == "error"
        else (output.name, output.text)
        for output in cell.outputs
    ]


ALL = reply("ExceptionGroup", "all (1 sub-exception)", traceback=[])


@pytest.mark.parametrize(
    ("texts", "left", "taken"),
    [
        ([GROUP], [], GROUP),
        (["careful\n", GROUP[:80], GROUP[80:]], ["careful\n"], GROUP),
        (["of another kind\n"], ["of another kind\n"], "ExceptionGroup: all (1 sub-exception)"),
    ],
)
def test_what_was_printed_in_place_of_an_error_is_its_traceback(
    texts: list[str], left: list[str], taken: str
):
    found = noted(ALL, *map(stream, texts), stream("a\n", "stdout"))
    kept = [("stderr", text) for text in left]
    assert found == [*kept, ("stdout", "a\n"), ("error", taken.rstrip("\n"))]


def test_an_error_among_the_outputs_stays_the_only_one():
    sent = new_output("error", ename="ValueError", evalue="a", traceback=["ValueError: a"])
    answer = reply("ValueError", "a", traceback=["ValueError: a"])
    assert noted(answer, stream(FIRST), sent) == [("stderr", FIRST), ("error", "ValueError: a")]
    in_hook = [("error", "ValueError: a"), ("error", GROUP.rstrip("\n"))]
    assert noted(ALL, sent, stream(GROUP)) == in_hook


@pytest.mark.parametrize("mode", ["cache", "inline"])
def test_a_group_is_shown_as_an_error_in_each_mode(tmp_path: Path, mode: str):
    book = Book(tmp_path / "book", {"nb_execution_mode": mode, "nb_execution_allow_errors": True})
    code = "import asyncio\nasync def no(): 1 / 0\nasync with asyncio.TaskGroup() as group:\n"
    book.page("index", f"{code}    group.create_task(no())")
    assert book.build().status == 0
    page = (book.folder / "_build/html/index.html").read_text(encoding="utf-8")
    assert "output traceback" in page
    assert "output stderr" not in page
    assert "ZeroDivisionError: division by zero" in book.output()
