"""The true lines of directives on a page that MyST-NB reads.

MyST-NB cuts a page into cells, drops the empty lines at the beginning of each Markdown cell, and
counts from the line below the cell before it.
"""

from bisect import bisect_left

from sphinx.environment import BuildEnvironment

from verified_book.outputs import client, source


def true_line(env: BuildEnvironment, line: int) -> int:
    """The line of a directive of the page that is being read.

    Args:
        env: The build environment.
        line: The line as the parser reports it, from 1.
    """
    notebook, page = client.notebook_in(env), source.page_in(env)
    starts = notebook.metadata.get("source_map") if notebook is not None else None
    if not starts or page is None:
        return line
    number = bisect_left(starts, line) - 1
    if number < 0 or notebook is None or notebook.cells[number].cell_type != "markdown":
        return line
    lines = page.text.split("\n")[starts[number] :]
    dropped = next((count for count, text in enumerate(lines) if text), 0)
    return line - 1 + dropped
