"""Lays out the notebooks of a built book for work in JupyterLab, each with a link to its source."""

import os
from pathlib import Path

import nbformat
from nbformat import v4

from verified_book.commands.books import CommandError, one_line, shown
from verified_book.regular import read_regular

_COPIED = (0, 0)
"""The time of a notebook that nobody has saved since it was laid out."""


def lay_out(book: str, target: str) -> int:
    """Copies the notebooks of a book that was built; those that a reader changed stay.

    Args:
        book: The folder of the book.
        target: The folder for the notebooks.

    Returns:
        The exit status.

    Raises:
        CommandError: If the book was not built, or offers no notebooks, or they cannot be written.
    """
    sources, folder = Path(book), Path(target)
    built = sources / "_build" / "html" / "_sources"
    found = sorted(built.rglob("*.ipynb"))
    if not found:
        raise CommandError(f"{built}: there are no notebooks; build the book first")
    kept = []
    for file in found:
        name = file.relative_to(built)
        place = folder / name
        try:
            if os.path.lexists(place) and place.stat().st_mtime:
                kept.append(shown(place))
            else:
                _copy(file, sources / name, place)
        except Exception as error:  # whatever a file may hold that is no notebook
            raise CommandError(
                f"{shown(file)} cannot be copied to {shown(place)} ({one_line(error)}); "
                "remove what is damaged, and build the book again"
            ) from error
    print(f"{len(found) - len(kept)} notebooks of {shown(sources)} are in {shown(folder)}")
    if kept:
        print(f"These were changed there and stay; delete one to have it new: {', '.join(kept)}")
    return 0


def _copy(file: Path, page: Path, place: Path) -> None:
    """Copies a notebook, which then begins with a link to the page that it was made of."""
    notebook = nbformat.reads(read_regular(file).decode(), as_version=4)
    pages = [page.with_suffix(suffix) for suffix in (".md", ".rst", ".ipynb")]
    source = next((each for each in pages if each.is_file()), None)
    if source is not None:
        way = Path(os.path.relpath(source.resolve(), place.parent.resolve())).as_posix()
        text = f"Made from [{source.name}]({way}) when the book was built; changes there count."
        notebook.cells.insert(0, v4.new_markdown_cell(text, id="source"))
    place.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, place)
    os.utime(place, _COPIED)
