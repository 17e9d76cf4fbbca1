"""Sphinx extension: an index of terms and names, which the build writes.

The directive `{general-index}` lists the terms of the glossaries, each with the sections whose
titles and the claims whose statements have it, and the names of the API. A term that is in many
claims lists none: there the index of claims with its filter is the better list.
"""

from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from verified_book.directives import CheckedDirective
from verified_book.headings import level_below

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment
    from sphinx.util.typing import ExtensionMetadata

_SHOWN = "book_site_general_index"


class general_index(nodes.General, nodes.Element):  # noqa: N801  # docutils names its nodes so
    """The place of the index; filled when the page is written."""


class GeneralIndexDirective(CheckedDirective):
    """Shows the terms and names of the book, and where each is spoken of."""

    def run(self) -> list[nodes.Node]:
        """Leaves a placeholder."""
        self.check_options()
        if self.content:
            self.fail("general-index: it has no content", "Remove what stands in it.")
        self.env.metadata[self.env.docname][_SHOWN] = []
        return [general_index()]


class FillGeneralIndex(SphinxPostTransform):
    """Replaces the placeholder by letters and what begins with them."""

    default_priority = 3  # before Sphinx resolves the references of a page

    def run(self, **kwargs: object) -> None:
        """Fills each placeholder of a page that is about to be written."""
        from book_site.general_index.entries import entries
        from book_site.general_index.listing import listing

        for place in list(self.document.findall(general_index)):
            page, level = self.env.docname, level_below(place)
            place.replace_self(listing(self.app, page, level, entries(self.env)))


def outdated_pages(app: "Sphinx", env: "BuildEnvironment") -> list[str]:
    """The pages to write again: their lines are others."""
    from book_site.general_index.entries import entries

    pages = [name for name in env.found_docs if _SHOWN in env.metadata[name]]
    now = entries(env) if pages else []
    outdated = [name for name in pages if env.metadata[name][_SHOWN] != now]
    for name in outdated:
        env.metadata[name][_SHOWN] = now
    return outdated


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Registers the directive."""
    from book_site import __version__
    from verified_book.static_files import offer_static_files

    app.setup_extension("verified_book")
    app.add_node(general_index)
    app.add_directive("general-index", GeneralIndexDirective)
    app.add_post_transform(FillGeneralIndex)
    app.connect("env-updated", outdated_pages)
    app.add_css_file("book_site_general_index.css")
    offer_static_files(app, __file__)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
