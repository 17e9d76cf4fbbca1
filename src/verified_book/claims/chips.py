"""The `chip` role: the verdict of a claim as a sign, where the claim and its proof stand elsewhere.

It links to the claim; its title says how strong that is. "not A1" denies a claim that fails.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode
from sphinx.writers.html5 import HTML5Translator

from verified_book.claims.claim import Claim
from verified_book.claims.domain import claims_domain, remember_reference
from verified_book.claims.measurements import lines
from verified_book.claims.tables import STATES, state

SIGNS = {"holds": "✓", "holds-if": "≈", "fails": "✗"}
WORDS = {**STATES, "fails": "believed, and false"}


class chip_place(nodes.inline):  # noqa: N801  # docutils names its nodes so
    """Where a chip shall stand."""


class claim_chip(nodes.reference):  # noqa: N801
    """The sign of a claim, with its id in print. Other extensions may add to its `aria`."""


class ChipRole(SphinxRole):
    """A chip for a claim by its id."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Leaves its place, since the claim may stand on a page yet to be read."""
        claim = self.text.removeprefix("not ")
        denies = claim != self.text
        remember_reference(self, claim, True, denies)
        return [chip_place(claim=claim, denies=denies)], []


class FillChips(SphinxPostTransform):
    """Gives each chip of a page that is written its sign and its link."""

    default_priority = 3

    def run(self, **kwargs: object) -> None:
        """Replaces the places of chips; one without a claim is a failure of the build already."""
        claims = {claim.id: claim for claim in claims_domain(self.env).all_claims()}
        for place in list(self.document.findall(chip_place)):
            name = place["claim"]
            chip = name in claims and self._chip(claims[name], place["denies"])
            place.replace_self(chip or nodes.Text(name))

    def _chip(self, claim: Claim, denies: bool) -> claim_chip:
        needs = [f"{each.name}: {each.text}" for each in claim.conditions]
        title = ". ".join(each.rstrip(".") for each in [lines(claim)[0], *needs]) + "."
        to = (self.env.docname, claim.page, claim.anchor)
        link = make_refnode(self.app.builder, *to, nodes.inline(), title)
        shown = "holds" if denies and state(claim) == "fails" else state(claim)
        text = claim.text if denies else claim.stated or claim.text
        name = f"{WORDS.get(shown)}: {claim.title}, {text}"
        number = nodes.inline("", f" {claim.id}", classes=["claim-number"])
        chip = claim_chip("", SIGNS.get(shown, "!"), number, **link.attributes)
        denied = shown != state(claim)
        chip.update_all_atts({"claim": claim.id, "denied": denied, "aria": {"aria-label": name}})
        chip["classes"] += ["claim-chip", f"claim-{shown}"]
        return chip


def open_chip(self: HTML5Translator, node: claim_chip) -> None:
    """Begins a chip."""
    self.visit_reference(node)
    aria = " ".join(f'{name}="{self.attval(text)}"' for name, text in node["aria"].items())
    self.body[-1] = self.body[-1].replace("<a ", f"<a {aria} ", 1)


def setup(app: Sphinx) -> None:
    """Registers the role by both of its names, and the node."""
    app.add_role("chip", ChipRole())
    app.add_role_to_domain("claims", "chip", ChipRole())
    app.add_node(chip_place)
    app.add_node(claim_chip, html=(open_chip, HTML5Translator.depart_reference))
    app.add_post_transform(FillChips)
