"""Sphinx extension: who points at a chip sees the claim, its strength and its conditions.

So does who reaches it by keyboard, or taps it on a phone. What is shown stands at the end of the
page, once for each claim, in an element `claim-popup` that the browser shows above all others.
"""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator

from book_site import __version__
from verified_book.claims.chips import claim_chip
from verified_book.claims.claim import Claim
from verified_book.claims.domain import claims_domain
from verified_book.claims.measurements import in_words, lines
from verified_book.claims.tables import STATES, copied, said, verdict
from verified_book.static_files import offer_static_files


class claim_popup(nodes.container):  # noqa: N801  # docutils names its nodes so
    """What is shown of a claim."""


class AddPopups(SphinxPostTransform):
    """Adds a popup for each claim whose chip a page has, before Sphinx resolves references."""

    default_priority = 4
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        """Adds them to a page that is about to be written."""
        claims = {claim.id: claim for claim in claims_domain(self.env).all_claims()}
        shown: dict[str, claim_popup] = {}
        for chip in self.document.findall(claim_chip):
            claim, denied = claims[chip["claim"]], chip["denied"]
            name = f"chip-{claim.anchor}" + "-denied" * denied
            chip["aria"]["aria-describedby"] = name
            del chip["reftitle"]  # which would be shown beside the popup
            shown[name] = shown.get(name) or self._popup(claim, denied, name)
        self.document += list(shown.values())

    def _popup(self, claim: Claim, denied: bool, name: str) -> claim_popup:
        docname = self.env.docname
        to = (docname, claim.page, claim.anchor)
        link = make_refnode(self.app.builder, *to, nodes.inline("", claim.title))
        sentences = said(claim, docname)
        believed = sentences[:0]
        sign = verdict(claim)
        if denied:  # what is so, as the sentence before the chip says, with its evidence; then
            sentences, believed = sentences[1:], sentences[:1]  # what is believed
            sign = nodes.inline("", STATES["holds"], classes=["claim-verdict", "claim-holds"])
        head = nodes.paragraph("", "", sign, nodes.Text(" "), link)
        more = copied(claim.condition_nodes, docname)
        more["ids"] = [name]
        more += in_words(lines(claim)[0], classes=["claim-evidence"])
        return claim_popup("", head, *sentences, more, *believed)


def open_popup(self: HTML5Translator, node: claim_popup) -> None:
    """Begins a popup."""
    self.body.append(self.starttag(node, "claim-popup", popover="auto"))


def close_popup(self: HTML5Translator, node: claim_popup) -> None:
    """Ends a popup."""
    self.body.append("</claim-popup>\n")


def add_script(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document
) -> None:
    """Loads the script on the pages that have chips."""
    if doctree and next(doctree.findall(claim_chip), None) is not None:
        app.add_js_file("book_site_chips.js", loading_method="defer")
        app.add_css_file("book_site_chips.css")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Registers the popups."""
    app.setup_extension("verified_book.claims")
    app.add_node(claim_popup, html=(open_popup, close_popup))
    app.add_post_transform(AddPopups)
    app.connect("html-page-context", add_script)
    offer_static_files(app, __file__)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
