"""Where the objects of an API are described: on pages that no source file has."""

import posixpath
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.builders import Builder

_BEFORE = "verified_book_api_before"
_BUILDERS = {"html", "dirhtml"}


def has_pages(app: "Sphinx") -> bool:
    """Whether what is built has a page for each object: not what is one page in all."""
    return app.builder.name in _BUILDERS


def page_of(docname: str, name: str) -> str:
    """The page of an object, beside the one that lists it.

    Examples:
        >>> page_of("reference/api", "layers.Norm")
        'reference/layers.Norm'
    """
    return posixpath.join(posixpath.dirname(docname), name)


def owner(name: str, names: Collection[str]) -> str:
    """The outermost of some objects that has another.

    Examples:
        >>> owner("layers.Norm.forward", {"layers.Norm", "layers.Norm.forward"})
        'layers.Norm'
    """
    parts = name.split(".")
    heads = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return next(head for head in heads if head in names)


def lead_to_pages(app: "Sphinx", builder: "Builder") -> None:
    """Lets references lead to the pages of objects, once the environment has been kept."""
    if not has_pages(app):
        return
    objects: dict[str, Any] = app.env.get_domain("py").data["objects"]
    listed = {
        name: entry
        for name, entry in objects.items()
        if entry.docname in app.config.verified_book_api and entry.objtype != "module"
    }
    setattr(builder, _BEFORE, {**getattr(builder, _BEFORE, {}), **listed})
    for name, entry in listed.items():
        objects[name] = entry._replace(docname=page_of(entry.docname, owner(name, listed)))


def lead_back(app: "Sphinx", exception: Exception | None) -> None:
    """Gives the environment back as it was, to be read and built again."""
    app.env.get_domain("py").data["objects"].update(getattr(app.builder, _BEFORE, {}))


def described(app: "Sphinx") -> dict[str, tuple[str, str]]:
    """The page and the kind of each object that has a page, while pages are written."""
    objects = app.env.get_domain("py").data["objects"]
    before = getattr(app.builder, _BEFORE, {})
    found = {name: (objects[name].docname, objects[name].objtype) for name in before}
    return {name: of for name, of in found.items() if of[0].endswith(name)}
