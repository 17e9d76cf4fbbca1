"""Where the objects of an API are described: on pages that no source file has."""

import posixpath
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.builders import Builder

_BEFORE = "book_site_api_before"
_BUILDERS = {"html", "dirhtml"}
CLASSES = {"class", "exception"}


def has_pages(app: "Sphinx") -> bool:
    """Whether what is built has a page for each object: not what is one page in all."""
    return app.builder.name in _BUILDERS


def pages_of(docname: str, kinds: Mapping[str, str]) -> dict[str, str]:
    """The pages of objects, beside the one that lists them.

    Files whose names differ in case alone are one to some systems: there a function says so.

    Args:
        docname: The page that lists them.
        kinds: What each object is.

    Examples:
        >>> pages_of("reference/api", {"layers.Drop": "class", "layers.drop": "function"})
        {'layers.Drop': 'reference/layers.Drop', 'layers.drop': 'reference/layers.drop-function'}
    """
    counts = Counter(name.lower() for name in kinds)
    return {
        name: posixpath.join(
            posixpath.dirname(docname),
            f"{name}-{kind}" if counts[name.lower()] > 1 and kind not in CLASSES else name,
        )
        for name, kind in kinds.items()
    }


def owner(name: str, kinds: Mapping[str, str]) -> str:
    """The outermost class that has an object, or the object itself.

    A function may be called as a module is.

    Examples:
        >>> owner("layers.Norm.forward", {"layers.Norm": "class", "layers.Norm.forward": "method"})
        'layers.Norm'
        >>> owner("costs.of", {"costs": "function", "costs.of": "function"})
        'costs.of'
    """
    parts = name.split(".")
    heads = (".".join(parts[:length]) for length in range(1, len(parts)))
    return next((head for head in heads if kinds.get(head) in CLASSES), name)


def lead_to_pages(app: "Sphinx", builder: "Builder") -> None:
    """Lets references lead to the pages of objects, once the environment has been kept."""
    if not has_pages(app):
        return
    objects: dict[str, Any] = app.env.get_domain("py").data["objects"]
    listed = {
        name: entry
        for name, entry in objects.items()
        if entry.docname in app.config.book_site_api and entry.objtype != "module"
    }
    setattr(builder, _BEFORE, {**getattr(builder, _BEFORE, {}), **listed})
    for docname in {entry.docname for entry in listed.values()}:
        # One that has another name where it is defined has the anchor of this one.
        own = {name: entry for name, entry in listed.items() if entry.docname == docname}
        kinds = {entry.node_id: entry.objtype for entry in own.values()}
        owners = {anchor: owner(anchor, kinds) for anchor in kinds}
        pages = pages_of(docname, {name: kinds[name] for name in owners.values()})
        for name, entry in own.items():
            objects[name] = entry._replace(docname=pages[owners[entry.node_id]])


def lead_back(app: "Sphinx", exception: Exception | None) -> None:
    """Gives the environment back as it was, to be read and built again."""
    app.env.get_domain("py").data["objects"].update(getattr(app.builder, _BEFORE, {}))


def described(app: "Sphinx") -> dict[str, tuple[str, str]]:
    """The page and the kind of each object and of its members, while pages are written."""
    objects = app.env.get_domain("py").data["objects"]
    before = getattr(app.builder, _BEFORE, {})
    return {name: (objects[name].docname, objects[name].objtype) for name in before}
