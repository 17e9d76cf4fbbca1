"""Pages that no source file has, made for the objects of an API by another extension."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.environment import BuildEnvironment

MADE = "verified_book_api.json"  # beside the doctrees: the pages, as they were written last


def pages_of_objects(env: "BuildEnvironment") -> list[str]:
    """The names of such pages, while or after pages are written, also where none had to be."""
    objects = env.get_domain("py").get_objects()
    file = Path(env.doctreedir, MADE)
    made = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    return sorted({*made, *(entry[3] for entry in objects)} - env.found_docs)
