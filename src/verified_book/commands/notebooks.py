"""Lays out the notebooks of a built book for work in JupyterLab, each with a link to its source."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from verified_book.commands.books import CommandError, shown

_COPIED = ".copied.json"


def lay_out(book: str, target: str) -> int:
    """Copies the notebooks of a book that was built; those that a reader changed stay.

    Args:
        book: The folder of the book.
        target: The folder for the notebooks.

    Returns:
        The exit status.

    Raises:
        CommandError: If the book was not built, or offers no notebooks.
    """
    sources, folder = Path(book), Path(target)
    built = sources / "_build" / "html" / "_sources"
    found = sorted(built.rglob("*.ipynb"))
    if not found:
        raise CommandError(f"{built}: there are no notebooks; build the book first")
    record = folder / _COPIED
    copied: dict[str, str] = json.loads(record.read_text("utf-8")) if record.is_file() else {}
    kept = []
    for file in found:
        name = file.relative_to(built)
        place = folder / name
        if place.is_file() and _digest(place.read_bytes()) != copied.get(name.as_posix()):
            kept.append(shown(place))
            continue
        text = json.dumps(_with_source(file, sources / name, place), indent=1, ensure_ascii=False)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        copied[name.as_posix()] = _digest(place.read_bytes())
    record.write_text(json.dumps(copied), encoding="utf-8")
    print(f"{len(found) - len(kept)} notebooks of {shown(sources)} are in {shown(folder)}")
    if kept:
        print(f"These were changed there and stay; delete one to have it new: {', '.join(kept)}")
    return 0


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _with_source(file: Path, page: Path, place: Path) -> dict[str, Any]:
    """A notebook that begins with a link to the page that it was made of."""
    notebook: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    pages = [page.with_suffix(suffix) for suffix in (".md", ".rst", ".ipynb")]
    source = next((each for each in pages if each.is_file()), None)
    if source is not None:
        way = Path(os.path.relpath(source.resolve(), place.parent.resolve())).as_posix()
        text = f"Made from [{source.name}]({way}) when the book was built; changes there count."
        first = {"cell_type": "markdown", "id": "source", "metadata": {}, "source": text}
        notebook["cells"].insert(0, first)
    return notebook
