"""What a reader sees below a cell, as text that a block can be held against."""

from base64 import b64encode

import pytest
from nbformat import NotebookNode, v4

from verified_book.outputs.rendered import (
    Look,
    Piece,
    pattern_of,
    pieces,
    plain,
    text_of,
)

PRIORITY = (
    "application/vnd.jupyter.widget-view+json",
    "application/javascript",
    "text/html",
    "image/svg+xml",
    "image/png",
    "text/markdown",
    "text/latex",
    "text/plain",
)


def stream(text: str, name: str = "stdout") -> NotebookNode:
    return v4.new_output("stream", name=name, text=text)


def result(metadata: dict[str, object] | None = None, **data: str) -> NotebookNode:
    named = {name.replace("_", "/"): value for name, value in data.items()}
    return v4.new_output("execute_result", named, metadata=metadata or {})


def error(name: str, message: str, *traceback: str) -> NotebookNode:
    return v4.new_output("error", ename=name, evalue=message, traceback=list(traceback))


def shown(*outputs: NotebookNode, merge: bool = False, removed: str = "") -> list[tuple[str, str]]:
    look = Look(PRIORITY, merge, frozenset(removed.split()))
    return [(piece.kind, piece.text) for piece in pieces(list(outputs), look)]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (stream("a log\n", "stderr"), ("stderr", "a log")),
        (result(text_plain="<b>", text_html="<b>bold</b>"), ("html", "bold")),
        (
            result(text_plain="n", text_html="<table><tr><td>1<td>2</table>"),
            ("table", "1  2"),
        ),
        (
            v4.new_output("display_data", {"image/svg+xml": "<svg viewBox='0 0 4 3'/>"}),
            ("image", "image/svg+xml 4 x 3"),
        ),
        (
            v4.new_output("display_data", {"image/png": b64encode(b"no image").decode()}),
            ("image", "image/png"),
        ),
        (
            v4.new_output("display_data", {"application/javascript": "f()", "text/plain": "js"}),
            ("other", "application/javascript"),
        ),
    ],
)
def test_a_piece_has_its_kind_and_its_text(output, expected):
    assert shown(output) == [expected]


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (error("ValueError", "no", "----\nValueError", "", "ValueError: no"), "ValueError: no"),
        (
            error(
                "ExceptionGroup",
                "a\nb (1 sub-exception)",
                "  + Exception Group Traceback (most recent call last):\n"
                "  | ExceptionGroup: a\n  | b (1 sub-exception)\n"
                "  +-+---------------- 1 ----------------\n    | ValueError: c\n"
                "    +------------------------------------\n",
            ),
            "ExceptionGroup: a\nb (1 sub-exception)",
        ),
        # The message names a file that the page does not show.
        (
            error(
                "SyntaxError",
                "invalid syntax (123.py, line 1)",
                "  Cell In[1], line 1\n    x y\n      ^\nSyntaxError: invalid syntax\n",
            ),
            "SyntaxError: invalid syntax",
        ),
    ],
)
def test_a_traceback_is_checked_by_its_end(output, text):
    assert shown(output) == [("traceback", text)]


def test_a_line_that_was_written_over_is_not_seen_where_the_page_merges():
    assert shown(stream("10 %\r100 %\n"), merge=True) == [("text", "100 %")]
    assert shown(stream("10 %\r100 %\n")) == [("text", "10 %\n100 %")]


@pytest.mark.parametrize(
    ("removed", "merge", "kinds"),
    [
        ("outputs", False, []),
        ("stdout stderr", False, ["text"]),
    ],
)
def test_what_the_page_leaves_out_is_not_compared(removed, merge, kinds):
    outputs = [stream("a"), stream("b", "stderr"), result(text_plain="1")]
    assert [kind for kind, _ in shown(*outputs, merge=merge, removed=removed)] == kinds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n\n  a\n\n b \n\n", "  a\n\n b "),
        ("a\u2028b\u2029c\x85d\x0be\x0cf", "a\nb\nc\nd\ne\nf"),
        ("\x1b[1;31mred\x1b[0m \x1b[38:5:1mx\x1b[K", "red x"),
        ("half \ud800 of a pair", "half \ufffd of a pair"),
    ],
)
def test_text_is_such_that_a_source_file_can_hold_it(text, expected):
    assert plain(text) == expected
    assert plain(plain(text)) == plain(text)
    plain(text).encode("utf-8")


EVIDENCE = {"kind": "equal", "error": 1e-7, "pattern": "equal: ..."}


def test_evidence_has_a_pattern_of_its_own():
    outputs = [stream("a...\n"), result({"evidence": EVIDENCE}, text_plain="equal: 1e-07")]
    found = pieces(outputs, Look(PRIORITY, False, frozenset()))
    assert text_of(found) == "a...\nequal: 1e-07"
    assert pattern_of(found, (), lambda text: text.replace("...", r"\...")) == "a\\...\nequal: ..."


def test_text_takes_part_without_being_asked_and_the_rest_where_a_block_asks():
    assert Piece("text", "a").takes_part(())
    for kind, word in [("image", "digest"), ("html", "html"), ("stderr", "stderr")]:
        assert not Piece(kind, "a").takes_part(("exact",))
        assert Piece(kind, "a").takes_part(("exact", word))
