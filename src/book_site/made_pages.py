"""Pages that no source file has, made for the objects of an API by another extension."""

from pathlib import Path
from typing import TYPE_CHECKING

from verified_book.sealed import read_sealed

if TYPE_CHECKING:
    from sphinx.environment import BuildEnvironment

MADE = "book_site_api.json"  # beside the doctrees: the pages, as they were written last


def pages_of_objects(env: "BuildEnvironment") -> list[str]:
    """The names of such pages, while or after pages are written, also where none had to be."""
    objects = env.get_domain("py").get_objects()
    made = made_before(env) or set()
    return sorted({*made, *(entry[3] for entry in objects)} - env.found_docs)


def made_before(env: "BuildEnvironment") -> set[str] | None:
    """The names of such pages as they were written last; None where nobody knows any more."""
    file = Path(env.doctreedir, MADE)
    try:
        return {str(name) for name in read_sealed(file)}
    except (OSError, ValueError, TypeError):
        return None
