"""The descriptions of objects on a page, as autodoc writes them."""

from collections.abc import Iterator
from dataclasses import dataclass

from docutils import nodes
from sphinx import addnodes

_METHODS = {"method", "classmethod", "staticmethod", "property"}


@dataclass(frozen=True)
class Entry:
    """An object that is described.

    Attributes:
        node: All of its description.
        signature: What stands above it.
        content: What is said of it.
    """

    node: addnodes.desc
    signature: nodes.Element
    content: nodes.Element

    @property
    def name(self) -> str:
        """Its name with its module, which is its anchor, too."""
        return str(self.signature["ids"][0])

    @property
    def module(self) -> str:
        """Where it is imported from."""
        return str(self.signature.get("module") or "")

    @property
    def title(self) -> str:
        """Its name in its module."""
        return str(self.signature.get("fullname") or self.name)

    @property
    def methods(self) -> list["Entry"]:
        """The methods that are described within it."""
        within = (node for node in self.content if isinstance(node, addnodes.desc))
        found = (_entry(node) for node in within if node.get("objtype") in _METHODS)
        return [entry for entry in found if entry]


def entries(tree: nodes.Node) -> Iterator[Entry]:
    """The objects of Python that a page describes, without those within another."""
    for node in tree.findall(addnodes.desc):
        within = node.parent
        while within is not None and not isinstance(within, addnodes.desc):
            within = within.parent
        entry = None if within is not None else _entry(node)
        if entry:
            yield entry


def _entry(node: addnodes.desc) -> Entry | None:
    signature, content = node[0], node[-1]
    if not isinstance(signature, nodes.Element) or not isinstance(content, nodes.Element):
        return None
    is_object = node.get("domain") == "py" and signature.get("ids")
    return Entry(node, signature, content) if is_object else None
