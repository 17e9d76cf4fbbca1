"""The order of claims, and what the domain keeps, forgets and takes over."""

from types import SimpleNamespace

import pytest
from docutils import nodes

from verified_book.claims.claim import Claim, Reference
from verified_book.claims.domain import ClaimsDomain
from verified_book.claims.outdated import outdated_pages


def env(includes: dict[str, list[str]], found: set[str]) -> SimpleNamespace:
    config = SimpleNamespace(root_doc="index")
    return SimpleNamespace(
        config=config, toctree_includes=includes, found_docs=found, domaindata={}
    )


def claims(page: str, *ids: str) -> list[Claim]:
    return [Claim(name, "book", "holds", "So.", [], page, f"{page}.md", 1) for name in ids]


@pytest.fixture
def domain() -> ClaimsDomain:
    found = ClaimsDomain(env({"index": ["b", "a"]}, {"index", "a", "b", "orphan"}))
    found.claims["a"] = claims("a", "A1", "A2")
    found.claims["orphan"] = claims("orphan", "O1")
    found.claims["b"] = claims("b", "B1")
    return found


def test_claims_stand_in_reading_order(domain):
    assert [claim.id for claim in domain.ordered_claims()] == ["B1", "A1", "A2", "O1"]


def test_pages_that_show_a_claim_are_written_again_when_it_changes(domain):
    titles = dict.fromkeys(["a", "b", "orphan"], nodes.title("", "Title"))
    book = SimpleNamespace(titles=titles, get_domain=lambda name: domain)
    domain.references["links"] = [Reference("A1", "links.md", 3)]
    domain.references["others"] = [Reference("B1", "others.md", 3)]
    domain.shown.add("lines")
    domain.indexes.add("index")
    assert outdated_pages(None, book) == ["index", "lines", "links", "others"]
    assert outdated_pages(None, book) == []
    domain.claims["a"][0].text = "Not so."
    assert outdated_pages(None, book) == ["index", "lines", "links"]
    domain.claims["a"][0].verdict = "fails"  # which a chip shows
    assert outdated_pages(None, book) == ["index", "lines", "links"]
    domain.claims["a"].reverse()
    assert outdated_pages(None, book) == ["index", "lines"]
