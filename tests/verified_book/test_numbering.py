"""The order in which claims are numbered."""

from types import SimpleNamespace

from verified_book.numbering import numbers, ordered_claims, reading_order
from verified_book.records import Claim, record_of


def book(includes: dict[str, list[str]], found: set[str]) -> SimpleNamespace:
    config = SimpleNamespace(root_doc="index")
    return SimpleNamespace(config=config, toctree_includes=includes, found_docs=found)


def add(env: SimpleNamespace, page: str, *ids: str) -> None:
    claims = [Claim(name, "book", "holds", "So.", [], page, f"{page}.md", 1) for name in ids]
    record_of(env, page).claims.extend(claims)


def test_pages_are_read_in_the_order_of_the_table_of_contents():
    includes = {"index": ["b", "a"], "b": ["b/2", "b/1"], "b/1": ["index"]}
    env = book(includes, {"index", "a", "b", "b/1", "b/2"})
    assert list(reading_order(env)) == ["index", "b", "b/2", "b/1", "a"]


def test_pages_outside_the_table_of_contents_come_last():
    env = book({"index": ["c"]}, {"index", "c", "b", "a"})
    assert list(reading_order(env)) == ["index", "c", "a", "b"]


def test_claims_are_numbered_in_reading_order():
    env = book({"index": ["b", "a"]}, {"index", "a", "b", "orphan"})
    add(env, "a", "A1", "A2")
    add(env, "orphan", "O1")
    add(env, "b", "B1")
    assert [claim.id for claim in ordered_claims(env)] == ["B1", "A1", "A2", "O1"]
    assert numbers(env) == {"B1": 1, "A1": 2, "A2": 3, "O1": 4}
