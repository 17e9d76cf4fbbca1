"""Numbers the claims in reading order and resolves references to them.

Numbers depend on the whole book, so they are put in when a page is written.
"""

from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole, SphinxTranslator
from sphinx.util.nodes import make_refnode

from verified_book.records import Claim, Reference, record_of, records


class claim_number(nodes.Inline, nodes.Element):  # noqa: N801  # docutils names its nodes so
    """The place of a claim's number in its own box."""


class claim_reference(nodes.Inline, nodes.Element):  # noqa: N801  # likewise
    """The place of a link to a claim."""


class ClaimRole(SphinxRole):
    """A link to a claim by its id."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Leaves a placeholder; the claim may stand on a page that is yet to be read."""
        source, line = self.get_source_info()
        record_of(self.env).references.append(Reference(self.text, source, line))
        # The text is what titles show, in which Sphinx resolves nothing.
        return [claim_reference("", nodes.Text(f"Claim {self.text}"), claim=self.text)], []


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
    for orphan in sorted(env.found_docs):
        yield from walk(orphan)


def ordered_claims(env: BuildEnvironment) -> list[Claim]:
    """The claims of the book in reading order."""
    pages = records(env)
    return [claim for name in reading_order(env) if name in pages for claim in pages[name].claims]


def numbers(env: BuildEnvironment) -> dict[str, int]:
    """The number of each claim, by its id."""
    return {claim.id: number for number, claim in enumerate(ordered_claims(env), start=1)}


def outdated_pages(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The pages to write again because what they show of others has changed.

    Those are numbers and links of claims, the rows of an index and, in the sidebar of every page,
    the titles of all.
    """
    old_titles = getattr(env, "verified_book_titles", None)
    titles = {name: title.astext() for name, title in env.titles.items()}
    env.verified_book_titles = titles  # type: ignore[attr-defined]  # Sphinx's way to extend it
    old_links = getattr(env, "verified_book_links", {})
    old_rows = getattr(env, "verified_book_rows", None)
    claims = ordered_claims(env)
    links = {c.id: (number, c.page, c.text) for number, c in enumerate(claims, start=1)}
    rows = [(c.id, c.note, c.verdict, c.text, c.page, c.broken, *c.evidence) for c in claims]
    env.verified_book_links = links  # type: ignore[attr-defined]  # likewise
    env.verified_book_rows = rows  # type: ignore[attr-defined]  # likewise
    changed = {name for name in links | old_links if links.get(name) != old_links.get(name)}
    if titles != old_titles:
        return sorted(env.found_docs)
    return [
        name
        for name, record in records(env).items()
        if (record.has_index and rows != old_rows)
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
    for reference in list(doctree.findall(claim_reference)):
        claim = by_id.get(reference["claim"])
        text = nodes.inline("", f"Claim {number_of.get(reference['claim'], reference['claim'])}")
        if claim is None:
            reference.replace_self(text)
        else:
            link = make_refnode(app.builder, docname, claim.page, claim.anchor, text, claim.text)
            reference.replace_self(link)


def _visit(translator: SphinxTranslator, node: nodes.Element) -> None:
    """Shows a reference inside a title by its text."""


def setup(app: Sphinx) -> None:
    """Registers the role and the resolution of numbers."""
    app.add_node(claim_number)
    show_text = (_visit, _visit)
    app.add_node(claim_reference, html=show_text, latex=show_text, text=show_text)
    app.add_role("claim", ClaimRole())
    app.connect("env-updated", outdated_pages)
    app.connect("doctree-resolved", resolve)
