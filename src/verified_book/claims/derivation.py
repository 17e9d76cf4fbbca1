"""The `derivation` directive: a proof in words and formulas, where a cell can only test."""

from docutils import nodes
from sphinx.application import Sphinx

from verified_book.claims.domain import ClaimsDomain
from verified_book.directives import CheckedDirective


class DerivationDirective(CheckedDirective):
    """Stands among the cells of a claim, whose statement it derives."""

    def run(self) -> list[nodes.Node]:
        """Makes its box."""
        self.check_options()
        if not self.content:
            self.fail("derivation: it is empty", "Write the derivation as its body.")
        box = nodes.container(classes=["claim-derivation"])
        self.set_source_info(box)
        self.state.nested_parse(self.content, self.content_offset, box)
        return [box]


def is_derivation(node: nodes.Node) -> bool:
    """Whether a doctree node is the box of a derivation."""
    return isinstance(node, nodes.container) and "claim-derivation" in node["classes"]


def setup(app: Sphinx) -> None:
    """Registers the directive by both of its names."""
    app.add_directive("derivation", DerivationDirective)
    app.add_directive_to_domain(ClaimsDomain.name, "derivation", DerivationDirective)
