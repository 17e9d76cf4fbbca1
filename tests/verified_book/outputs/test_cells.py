"""What a reader sees below a cell, and what the checks read from its outputs."""

import pytest
from nbformat import v4
from verified_book.notebook_cells import Cell

PRIORITY = ["text/html", "image/png", "text/markdown", "text/plain"]


def stream(name: str, text: str):
    return v4.new_output("stream", name=name, text=text)


def shown(metadata: dict[str, object] | None = None, **data: str):
    named = {name.replace("_", "/"): value for name, value in data.items()}
    return v4.new_output("execute_result", named, metadata=metadata or {})


def cell(*outputs: object, tags: str = "") -> Cell:
    return Cell(0, "a.md", 1, "", frozenset(tags.split()), list(outputs), True, None)


@pytest.mark.parametrize(
    ("outputs", "text"),
    [
        ([], ""),
        ([stream("stdout", "a\nb\n")], "a\nb"),
        ([stream("stdout", "a\n"), shown(text_plain="1")], "a\n1"),
        ([stream("stdout", "\x1b[1;31mred\x1b[0m\n")], "red"),
        ([stream("stderr", "a log")], ""),
        ([shown(text_plain="<b>", text_html="<b>bold</b>")], ""),
        ([shown(text_plain="plain", text_latex="$x$")], "plain"),
        ([shown(text_plain="plain", text_markdown="*x*")], ""),
        ([v4.new_output("display_data", {"text/plain": "displayed"})], "displayed"),
        ([v4.new_output("display_data", {"application/x": "unknown"})], ""),
        ([v4.new_output("error", ename="E", evalue="e", traceback=["E: e"])], ""),
    ],
)
def test_the_text_that_a_reader_sees(outputs, text):
    assert cell(*outputs).shown_text(PRIORITY) == text
    assert cell(*outputs).expected_text(PRIORITY) == text


@pytest.mark.parametrize("tag", ["remove-cell", "remove_cell", "remove-output", "remove_output"])
def test_a_reader_does_not_see_what_a_tag_removes(tag):
    assert cell(stream("stdout", "a"), shown(text_plain="1"), tags=tag).shown_text(PRIORITY) == ""


def test_only_stdout_is_removed_by_its_own_tag():
    outputs = [stream("stdout", "a"), shown(text_plain="1")]
    assert cell(*outputs, tags="remove-stdout").shown_text(PRIORITY) == "1"


@pytest.mark.parametrize("tag", ["hide-output", "hide-cell", "remove-input", "raises-exception"])
def test_a_folded_output_is_seen(tag):
    assert cell(stream("stdout", "a"), tags=tag).shown_text(PRIORITY) == "a"


def test_evidence_is_expected_by_its_pattern():
    evidence = {"kind": "equal", "error": 1e-7, "tolerance": 1e-6, "pattern": "equal: ..."}
    found = cell(stream("stdout", "a\n"), shown({"evidence": evidence}, text_plain="equal: 1e-07"))
    assert found.shown_text(PRIORITY) == "a\nequal: 1e-07"
    assert found.expected_text(PRIORITY) == "a\nequal: ..."
    assert found.evidence == [evidence]


def test_errors_are_read_without_colors():
    traceback = ["\x1b[31m----\x1b[0m", "ValueError: no"]
    error = v4.new_output("error", ename="ValueError", evalue="no", traceback=traceback)
    assert cell(error).errors == ["----\nValueError: no"]
    assert cell(stream("stdout", "a")).errors == []


def test_stderr_is_read_as_one_text():
    outputs = [stream("stderr", "a\n"), stream("stdout", "b\n"), stream("stderr", "c\n")]
    assert cell(*outputs).stderr == "a\nc\n"
