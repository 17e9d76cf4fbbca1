"""Pages of MyST Markdown that a book has jupytext read, by `nb_custom_formats`.

jupytext cuts a page into cells as MyST-NB does, but knows no colon fences: a cell may stand in one.
It does not say where the cells stand, so MyST-NB could name no line of such a page.
"""

from collections.abc import Callable
from functools import wraps
from types import ModuleType

from nbformat import NotebookNode

_CELL = "{code-cell}"


def parser() -> ModuleType | None:
    """The part of jupytext that knows MyST Markdown; None where it is not installed."""
    try:
        from jupytext import myst  # type: ignore[import-untyped]
    except ImportError:
        return None
    return myst


def as_notebook(text: str) -> NotebookNode | None:
    """What jupytext makes of a text, with the lines of its cells; None if it has no code cell."""
    myst = parser()
    if myst is None or _CELL not in text:
        return None
    try:
        found: NotebookNode = myst.myst_to_notebook(text, add_source_map=True)
    except Exception:  # whatever it raises: what reads the page says so
        return None
    return found


def is_read_so(notebook: NotebookNode, text: str) -> bool:
    """Whether the cells of a notebook are those that jupytext finds in a text."""
    own = as_notebook(text)
    return own is not None and _cells(own) == _cells(notebook)


def with_lines(read: Callable[[str], NotebookNode]) -> Callable[[str], NotebookNode]:
    """A reader that tells MyST-NB the lines of the cells, if it reads as jupytext does."""

    @wraps(read)
    def read_with_lines(text: str) -> NotebookNode:
        notebook = read(text)
        own = as_notebook(text)
        if own is not None and _cells(own) == _cells(notebook):
            notebook.metadata.setdefault("source_map", own.metadata["source_map"])
        return notebook

    return read_with_lines


def _cells(notebook: NotebookNode) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in notebook.cells]
