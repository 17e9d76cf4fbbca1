"""Puts the numbers of claims into their boxes, and finds the pages that others have outdated.

Numbers depend on the whole book, so they are put in when a page is written.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from verified_book.claims.domain import claims_domain


class claim_number(nodes.Inline, nodes.Element):  # noqa: N801  # docutils names its nodes so
    """The place of a claim's number in its own box."""


def outdated_pages(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The pages to write again: numbers and links of claims, or the rows of an index, are others.

    An index shows the titles of chapters as well.
    """
    domain = claims_domain(env)
    claims, old_links, old_rows = domain.ordered_claims(), domain.data["links"], domain.data["rows"]
    links = {c.id: (number, c.page, c.text) for number, c in enumerate(claims, start=1)}
    titles = {claim.page: env.titles[claim.page].astext() for claim in claims}
    rows = [
        (c.id, c.note, c.verdict, c.text, c.page, titles[c.page], c.broken, *c.evidence)
        for c in claims
    ]
    domain.data["links"], domain.data["rows"] = links, rows
    changed = {name for name in links | old_links if links.get(name) != old_links.get(name)}
    pages = {claim.page for claim in claims if claim.id in changed}
    for docname, references in domain.references.items():
        if any(reference.claim in changed for reference in references):
            pages.add(docname)
    return sorted(pages | domain.indexes if rows != old_rows else pages)


def number_boxes(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Puts the numbers into a page that is about to be written."""
    places = list(doctree.findall(claim_number))
    numbers = claims_domain(app.env).numbers() if places else {}
    for place in places:
        number = f"Claim {numbers.get(place['claim'], '?')}"
        link = nodes.reference(
            "", number, refid=nodes.make_id(f"claim-{place['claim']}"), classes=place["classes"]
        )
        place.replace_self(link)


def setup(app: Sphinx) -> None:
    """Hooks into the writing of pages."""
    app.add_node(claim_number)
    app.connect("env-updated", outdated_pages)
    app.connect("doctree-resolved", number_boxes)
