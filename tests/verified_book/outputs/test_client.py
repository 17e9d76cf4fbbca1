"""The notebook that is kept while its page is read."""

from nbformat import NotebookNode, v4

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
