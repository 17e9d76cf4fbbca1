"""The pages that a change to a claim elsewhere has outdated: those that link to it or list it."""

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from verified_book.claims.domain import claims_domain


def outdated_pages(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The pages to write again: links of claims, or the rows of an index, are others.

    An index shows the titles of chapters as well.
    """
    domain = claims_domain(env)
    claims, old_rows = domain.ordered_claims(), domain.data["rows"]
    titles = {claim.page: env.titles[claim.page].astext() for claim in claims}
    rows = [
        (
            *(c.id, c.note, c.verdict, c.text, c.stated, c.page, titles[c.page], c.broken),
            *(c.derived, *((d.name, d.text) for d in c.conditions), *c.evidence),
        )
        for c in claims
    ]
    domain.data["rows"] = rows
    changed = {row[0] for row in {*rows}.symmetric_difference(old_rows)}  # a chip shows all
    pages = {
        docname
        for docname, references in domain.references.items()
        if any(reference.claim in changed for reference in references)
    }
    return sorted(pages | domain.indexes | domain.shown if rows != old_rows else pages)


def setup(app: Sphinx) -> None:
    """Hooks into the writing of pages."""
    app.connect("env-updated", outdated_pages)
