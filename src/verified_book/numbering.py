"""Numbers the claims in reading order and resolves references to them.

Numbers depend on the whole book, so they are put in when a page is written.
"""

from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

from verified_book.records import Claim, Reference, record_of, records


class claim_number(nodes.Inline, nodes.Element):  # noqa: N801  # docutils names its nodes so
    """The place of a claim's number in its own box."""


class claim_reference(nodes.Inline, nodes.Element):  # noqa: N801
    """The place of a link to a claim."""


class ClaimRole(SphinxRole):
    """A link to a claim by its id."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Leaves a placeholder; the claim may stand on a page that is yet to be read."""
        source, line = self.get_source_info()
        record_of(self.env).references.append(Reference(self.text, source, line))
        return [claim_reference(claim=self.text)], []


def reading_order(env: BuildEnvironment) -> Iterator[str]:
    """The pages in the order of the table of contents."""
    seen: set[str] = set()

    def walk(docname: str) -> Iterator[str]:
        if docname in seen:
            return
        seen.add(docname)
        yield docname
        for child in env.toctree_includes.get(docname, []):
            yield from walk(child)

    yield from walk(env.config.root_doc)


def ordered_claims(env: BuildEnvironment) -> list[Claim]:
    """The claims of the book in reading order."""
    pages = records(env)
    return [claim for name in reading_order(env) if name in pages for claim in pages[name].claims]


def numbers(env: BuildEnvironment) -> dict[str, int]:
    """The number of each claim, by its id."""
    return {claim.id: number for number, claim in enumerate(ordered_claims(env), start=1)}


def outdated_pages(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The pages to write again because numbers, or what an index shows, have changed."""
    old_numbers = getattr(env, "verified_book_numbers", {})
    old_shown = getattr(env, "verified_book_shown", None)
    new_numbers = numbers(env)
    shown = [
        (c.id, c.note, c.verdict, c.text, c.page, c.broken, tuple(c.evidence))
        for c in ordered_claims(env)
    ]
    env.verified_book_numbers = new_numbers  # type: ignore[attr-defined]  # Sphinx's way
    env.verified_book_shown = shown  # type: ignore[attr-defined]
    changed = {i for i in new_numbers | old_numbers if new_numbers.get(i) != old_numbers.get(i)}
    return [
        name
        for name, record in records(env).items()
        if (record.has_index and shown != old_shown)
        or any(claim.id in changed for claim in record.claims)
        or any(reference.claim in changed for reference in record.references)
    ]


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Puts the numbers and links into a page that is about to be written."""
    by_id = {claim.id: claim for claim in ordered_claims(app.env)}
    number_of = numbers(app.env)
    for place in list(doctree.findall(claim_number)):
        number = f"Claim {number_of.get(place['claim'], '?')}"
        link = nodes.reference(
            "", number, refid=nodes.make_id(f"claim-{place['claim']}"), classes=place["classes"]
        )
        place.replace_self(link)
    for place in list(doctree.findall(claim_reference)):
        claim = by_id.get(place["claim"])
        text = nodes.inline("", f"claim {number_of.get(place['claim'], place['claim'])}")
        if claim is not None:
            place.replace_self(
                make_refnode(app.builder, docname, claim.page, claim.anchor, text, claim.text)
            )
        else:
            place.replace_self(text)


def setup(app: Sphinx) -> None:
    """Registers the role and the resolution of numbers."""
    app.add_node(claim_number)
    app.add_node(claim_reference)
    app.add_role("claim", ClaimRole())
    app.connect("env-updated", outdated_pages)
    app.connect("doctree-resolved", resolve)
