"""What a cell raised, also where the kernel sends no error among its outputs.

IPython prints exception groups, and what is raised while one is handled, to stderr, as it does with
the wrong use of a magic. Only the kernel's reply says then that the cell has raised.
"""

import re
from collections.abc import Mapping
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

_BEGIN = re.compile(r"^(?:  \+ Exception Group )?Traceback \(most recent call last\):$", re.M)
_CHAINED = re.compile(
    r"\n(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):\n\n\Z"
)


def note_error(cell: NotebookNode, execute_reply: Mapping[str, Any] | None, **_: object) -> None:
    r"""Gives a cell the error that its kernel's reply names, if it is not among its outputs.

    Args:
        cell: The cell that has run. A traceback that stands on its stderr becomes the error's.
        execute_reply: The kernel's message; None if none came in time.

    Examples:
        >>> from nbformat.v4 import new_code_cell
        >>> cell = new_code_cell(outputs=[new_output("stream", name="stderr", text="E: no\n")])
        >>> note_error(cell, {"content": {"status": "error", "ename": "E", "evalue": "no"}})
        >>> [(output.output_type, output.ename, output.traceback) for output in cell.outputs]
        [('error', 'E', ['E: no'])]
    """
    content = execute_reply["content"] if execute_reply else {}
    if content.get("status") != "error":
        return
    name, message = content.get("ename", "Error"), content.get("evalue", "")
    if any(found["output_type"] == "error" and found["ename"] == name for found in cell.outputs):
        return
    said = f"{name}: {message}"
    printed = _take_from_stderr(cell, said)
    sent = content.get("traceback") or []
    if name not in "".join(sent):  # it may be that of an earlier cell
        sent = [said]
    traceback = [printed] if printed else sent
    cell.outputs.append(new_output("error", ename=name, evalue=message, traceback=traceback))


def _take_from_stderr(cell: NotebookNode, said: str) -> str:
    """Takes what was printed in place of an error out of a cell's outputs, without its last break.

    A kernel flushes by the clock, so that it may stand in several of them.
    """
    streams = [
        output
        for output in cell.outputs
        if output["output_type"] == "stream" and output["name"] == "stderr"
    ]
    text = "".join(output["text"] for output in streams)
    start = _start_of_error(text, said)
    left = start
    for output in streams:
        output["text"], left = output["text"][:left], max(left - len(output["text"]), 0)
    cell.outputs = [output for output in cell.outputs if output not in streams or output["text"]]
    return text[start:].rstrip("\n")


def _start_of_error(text: str, said: str) -> int:
    """Where the error that was printed last begins; the end of the text if there is none."""
    starts = [match.start() for match in _BEGIN.finditer(text)]
    first = [start for start in starts if not _CHAINED.search(text[:start])]
    if first:
        return first[-1]
    begin = len(text.rstrip("\n")) - len(said)
    at_line = begin == 0 or text[begin - 1 : begin] == "\n"
    return begin if begin >= 0 and at_line and text.startswith(said, begin) else len(text)
