"""The true places of directives and cells on a page that MyST-NB reads.

MyST-NB cuts a page into cells, drops the empty lines at the beginning of each Markdown cell, and
counts from the line below the cell before it. In formats without lines it counts each cell from a
multiple of 10,000.
"""

from bisect import bisect_left

from sphinx.environment import BuildEnvironment

from verified_book.outputs import client, source

_PSEUDO = 10_000


def true_place(env: BuildEnvironment, path: str, line: int) -> tuple[str, int]:
    """The file and the line of a directive of the page that is being read.

    Args:
        env: The build environment.
        path: The file of the page, or one that it includes, whose lines need no mending.
        line: The line as the parser reports it, from 1.
    """
    if path != str(env.doc2path(env.docname)):
        return path, line
    notebook, text = client.notebook_in(env), source.text_of_page(env)
    if notebook is None or text is None:
        return path, line
    starts = notebook.metadata.get("source_map")
    if not starts:
        number, below = divmod(line, _PSEUDO)
        return (in_cell(path, number), max(below - 1, 1)) if number else (path, line)
    number = bisect_left(starts, line) - 1
    if number < 0 or notebook.cells[number].cell_type != "markdown":
        return path, line
    lines = text.split("\n")[starts[number] :]
    dropped = next((count for count, content in enumerate(lines) if content), 0)
    return path, line - 1 + dropped


def in_cell(path: str, number: int) -> str:
    """How messages name a cell of a file that is no text; cells count from 1."""
    return f"{path}:cell {number}"
