"""The notebook that is kept while its page is read."""

import pytest
from nbformat import NotebookNode, v4

from verified_book.outputs.client import joined


def stream(text: str, name: str = "stdout") -> NotebookNode:
    return v4.new_output("stream", name=name, text=text)


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
