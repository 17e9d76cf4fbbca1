"""The way of a reader through a book."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.environment import BuildEnvironment


def reading_order(env: "BuildEnvironment") -> Iterator[str]:
    """The pages in the order of the table of contents; those that it lacks come last."""
    seen: set[str] = set()

    def walk(docname: str) -> Iterator[str]:
        if docname in seen:
            return
        seen.add(docname)
        yield docname
        for child in env.toctree_includes.get(docname, []):
            yield from walk(child)

    yield from walk(env.config.root_doc)
    for orphan in sorted(env.found_docs):
        yield from walk(orphan)
