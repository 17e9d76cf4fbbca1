"""The notebook that is kept while its page is read."""

from types import SimpleNamespace
from typing import Any

import pytest
from nbformat import NotebookNode, v4

from verified_book.outputs import client
from verified_book.outputs.client import joined


def stream(text: str, name: str = "stdout") -> NotebookNode:
    return v4.new_output("stream", name=name, text=text)


def texts(*outputs: NotebookNode) -> list[str]:
    return [output.get("text", output.output_type) for output in joined(list(outputs))]


def test_what_was_flushed_in_between_is_one_text():
    assert texts(stream("0 "), stream("1 "), stream("2\n")) == ["0 1 2\n"]


def test_other_outputs_stay_where_they_stood():
    shown = v4.new_output("display_data", {"text/plain": "x"})
    error = v4.new_output("error", ename="E", evalue="e", traceback=[])
    outputs = [stream("a"), stream("b", "stderr"), stream("c", "stderr"), shown, stream("d"), error]
    assert texts(*outputs) == ["a", "bc", "display_data", "d", "error"]
    assert texts() == []


@pytest.mark.parametrize(
    "outputs",
    [
        [stream("a\nb\n"), stream("c\n", "stderr")],
        [stream("a"), stream("c", "stderr"), stream("\nb\n"), stream("\n", "stderr")],
    ],
)
def test_which_stream_was_flushed_first_makes_no_difference(outputs: list[NotebookNode]):
    shown = v4.new_output("execute_result", {"text/plain": "x"})
    found = joined([*outputs, shown, stream("d", "stderr")])
    assert [output.get("name", "shown") for output in found] == [
        *("stdout", "stderr", "shown", "stderr")
    ]
    assert [output.text for output in found if output.output_type == "stream"] == [
        *("a\nb\n", "c\n", "d")
    ]


@pytest.mark.parametrize(
    ("metadata", "outputs", "executed"),
    [
        ({"mtime": 1.0}, [], True),  # its cells print nothing
        (None, [stream("a")], True),  # stored in the notebook
        (None, [], False),
    ],
)
def test_a_page_was_executed_if_its_cells_ran_or_have_outputs(
    metadata: dict[str, Any] | None, outputs: list[NotebookNode], executed: bool
):
    notebook = v4.new_notebook(cells=[v4.new_markdown_cell(), v4.new_code_cell(outputs=outputs)])
    kept = SimpleNamespace(exec_metadata=metadata, notebook=notebook)
    app: Any = SimpleNamespace(env=SimpleNamespace(temp_data={client._KEY: kept}))
    assert client.was_executed(app) is executed
