"""The order of claims, and what the domain keeps, forgets and takes over."""

from types import SimpleNamespace

import pytest
from docutils import nodes

from verified_book.claims.claim import Claim, Reference
from verified_book.claims.domain import ClaimsDomain
from verified_book.claims.outdated import outdated_pages
from verified_book.toc_order import reading_order


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


def test_pages_are_read_in_the_order_of_the_table_of_contents():
    includes = {"index": ["b", "a"], "b": ["b/2", "b/1"], "b/1": ["index"]}
    book = env(includes, {"index", "a", "b", "b/1", "b/2"})
    assert list(reading_order(book)) == ["index", "b", "b/2", "b/1", "a"]


def test_pages_outside_the_table_of_contents_come_last():
    book = env({"index": ["c"]}, {"index", "c", "b", "a"})
    assert list(reading_order(book)) == ["index", "c", "a", "b"]


def test_claims_stand_in_reading_order(domain):
    assert [claim.id for claim in domain.ordered_claims()] == ["B1", "A1", "A2", "O1"]


def test_other_books_find_claims_by_id(domain):
    domain.claims["orphan"] += claims("orphan", "", "two words")
    assert list(domain.get_objects()) == [
        ("B1", "Claim B1", "claim", "b", "claim-b1", 1),
        ("A1", "Claim A1", "claim", "a", "claim-a1", 1),
        ("A2", "Claim A2", "claim", "a", "claim-a2", 1),
        ("O1", "Claim O1", "claim", "orphan", "claim-o1", 1),
    ]


def test_a_page_that_goes_is_forgotten(domain):
    domain.references["a"] = domain.references["b"] = [Reference("A1", "a.md", 3)]
    domain.shown.update(["a", "b"])
    domain.indexes.update("ab")
    domain.clear_doc("a")
    domain.clear_doc("unknown")
    assert set(domain.claims) == {"b", "orphan"}
    assert (set(domain.references), domain.shown, domain.indexes) == ({"b"}, {"b"}, {"b"})
    assert [claim.id for claim in domain.all_claims()] == ["O1", "B1"]


def test_pages_of_another_process_are_taken_over(domain):
    other = ClaimsDomain(env({}, set()))
    for name in ("a", "new"):  # it has read "new" and "b" only
        other.claims[name] = claims(name, "other")
        other.references[name] = [Reference("A1", f"{name}.md", 3)]
        other.shown.add(name)
        other.indexes.add(name)
    domain.indexes.add("b")
    domain.merge_domaindata({"new", "b"}, other.data)
    assert {name: [claim.id for claim in found] for name, found in domain.claims.items()} == {
        "a": ["A1", "A2"],
        "orphan": ["O1"],
        "b": ["B1"],
        "new": ["other"],
    }
    assert domain.references == {"new": [Reference("A1", "new.md", 3)]}
    assert domain.shown == {"new"}
    assert domain.indexes == {"b", "new"}


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
