"""Pages that no source file has, made for the objects of an API by another extension."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.environment import BuildEnvironment


def pages_of_objects(env: "BuildEnvironment") -> list[str]:
    """The names of such pages, while or after pages are written."""
    objects = env.get_domain("py").get_objects()
    return sorted({entry[3] for entry in objects} - env.found_docs)
