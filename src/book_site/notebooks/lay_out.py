"""Lays out the notebooks of a built book for work in JupyterLab, each with a link to its source."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from verified_book.commands.books import CommandError, one_line, shown
from verified_book.regular import digest_of, discard, read_regular

_COPIED = ".copied.json"
_MOST = 2**28  # bytes of a notebook


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
    try:
        return _lay_out(Path(book), Path(target))
    except OSError as error:
        raise CommandError(f"{error.filename or target}: {error.strerror or error}") from error


def _lay_out(sources: Path, folder: Path) -> int:
    built = sources / "_build" / "html" / "_sources"
    found = sorted(built.rglob("*.ipynb"))
    if not found:
        raise CommandError(f"{built}: there are no notebooks; build the book first")
    record = folder / _COPIED
    copied = _copied(record)
    kept = []
    for file in found:
        name = file.relative_to(built)
        place = folder / name
        if os.path.lexists(place) and not _is(place, copied.get(name.as_posix())):
            kept.append(shown(place))
            continue
        text = json.dumps(_with_source(file, sources / name, place), indent=1, ensure_ascii=False)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        copied[name.as_posix()] = digest_of(place)
    if os.path.lexists(record) and not record.is_file():
        discard(record)
    record.write_text(json.dumps(copied), encoding="utf-8")
    print(f"{len(found) - len(kept)} notebooks of {shown(sources)} are in {shown(folder)}")
    if kept:
        print(f"These were changed there and stay; delete one to have it new: {', '.join(kept)}")
    return 0


def _copied(record: Path) -> dict[str, str]:
    """The digest of each notebook as it was laid out."""
    if not os.path.lexists(record):
        return {}
    try:
        return {str(name): str(digest) for name, digest in json.loads(read_regular(record)).items()}
    except (OSError, ValueError, AttributeError, RecursionError):
        print(f"{shown(record)} was damaged: which notebooks were changed is not known")
        return {}


def _is(place: Path, digest: str | None) -> bool:
    """Whether a notebook is as it was laid out."""
    try:
        return hashlib.sha256(read_regular(place, _MOST)).hexdigest() == digest
    except OSError:  # something else is there now, or more than a notebook
        return False


def _with_source(file: Path, page: Path, place: Path) -> dict[str, Any]:
    """A notebook that begins with a link to the page that it was made of."""
    try:
        notebook: dict[str, Any] = json.loads(read_regular(file, _MOST))
        cells: list[Any] = notebook["cells"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CommandError(
            f"{shown(file)}: this is no notebook ({one_line(error)}); remove it and build the book"
        ) from error
    pages = [page.with_suffix(suffix) for suffix in (".md", ".rst", ".ipynb")]
    source = next((each for each in pages if each.is_file()), None)
    if source is not None:
        way = Path(os.path.relpath(source.resolve(), place.parent.resolve())).as_posix()
        text = f"Made from [{source.name}]({way}) when the book was built; changes there count."
        first = {"cell_type": "markdown", "id": "source", "metadata": {}, "source": text}
        cells.insert(0, first)
    return notebook
