"""Runs cells as the interactive interpreter does; a script, so that it runs beside the pages.

Reads a list of documents from stdin, each a list of the sources of its cells, and writes for each
cell its statements, what it showed, the exception that it raised and its stderr, as JSON.
"""

import ast
import contextlib
import io
import json
import sys
import traceback
from typing import Any


def statements(source: str) -> list[str]:
    """The source of each statement of a cell."""
    lines = source.split("\n")
    return ["\n".join(lines[s.lineno - 1 : s.end_lineno]) for s in ast.parse(source).body]


def interpret(source: str, names: dict[str, Any]) -> dict[str, Any]:
    """Runs a cell; all that it shows must come from its last statement.

    Args:
        source: Its code.
        names: The namespace of the document.
    """
    parts = statements(source)
    text, error = "", ""
    complaints = io.StringIO()
    for number, part in enumerate(parts):
        stream = io.StringIO()
        try:
            with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(complaints):
                exec(compile(part + "\n", "<cell>", "single"), names)
        except Exception as caught:
            error = traceback.format_exception_only(caught)[-1].strip()
        text = stream.getvalue()
        if number < len(parts) - 1 and (text or error):
            raise ValueError(f"shows something before its last statement: {part!r}: {text}{error}")
    return {"statements": parts, "text": text, "error": error, "stderr": complaints.getvalue()}


def main() -> None:
    """Reads, runs, writes."""
    results = []
    for document in json.load(sys.stdin):
        names: dict[str, Any] = {}
        results.append([interpret(source, names) for source in document])
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
