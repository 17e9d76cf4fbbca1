"""What stands twice in a book, what refers to nothing, and which claims a failure refutes."""

from types import SimpleNamespace

import pytest

from verified_book.claims import checks
from verified_book.claims.claim import Claim, Reference
from verified_book.records import Failure


def claim(name: str, page: str = "one", line: int = 1, *cells: int) -> Claim:
    place = (page, f"{page}.md", line)
    return Claim(name, "book", "holds", "So.", [], *place, cells=frozenset(cells))


def said(
    claims: list[Claim], unread: set[str] = frozenset(), elsewhere: str = "", **references: str
) -> list[tuple[str, int, str, str]]:
    """What contradicts in a book with these claims and these references, by page."""
    domain = SimpleNamespace(
        all_claims=lambda: claims,
        references={
            page: [Reference(name, f"{page}.md", 5) for name in names.split()]
            for page, names in references.items()
        },
        is_elsewhere=lambda app, reference, page: f"{reference.claim} on {page}" == elsewhere,
    )
    env = SimpleNamespace(found_docs={"one", *unread}, all_docs={"one": 0})
    found = checks.contradictions(SimpleNamespace(env=env), domain)
    return [(each.source, each.line, each.message, each.remedy) for each in found]


def test_each_of_two_claims_with_one_id_names_the_others():
    places = [("one", 1), ("one", 9), ("two", 1)]
    found = said([claim("A1", *place) for place in places] + [claim("A2")])
    others = ["one.md:9, two.md:1", "one.md:1, two.md:1", "one.md:1, one.md:9"]
    assert found == [
        (
            f"{page}.md",
            line,
            f"two claims with the id A1; the other is at {other}",
            "Give one of them another id.",
        )
        for (page, line), other in zip(places, others, strict=True)
    ]
    assert said([claim(""), claim("", "two")]) == []


def test_claims_of_one_page_have_addresses_of_their_own():
    message = "claim A.1 and claim A-1 have the same address, #claim-a-1"
    remedy = "Give one of them an id that differs in its letters a-z and digits."
    assert said([claim("A.1"), claim("A-1", "one", 7)]) == [("one.md", 7, message, remedy)]
    more = [claim("A.1"), claim("A-1", "one", 7), claim("A.1", "one", 9), claim("A 1", "one", 11)]
    assert said(more)[2:] == [("one.md", 7, message, remedy)]
    assert said([claim("A.1"), claim("A 1"), claim("A-1", "two")]) == []


@pytest.mark.parametrize(("ids", "known"), [("B A", "A, B"), ("", "none")])
def test_a_reference_to_no_claim_is_named_page_by_page(ids: str, known: str):
    claims = [claim(name) for name in [*ids.split(), "two words", ""]]
    remedy = f"The claims of the book are: {known}."
    assert said(claims, two="X", one=f"Y {ids}") == [
        (f"{page}.md", 5, f"a reference to the claim {name}, which does not exist", remedy)
        for page, name in (("one", "Y"), ("two", "X"))
    ]
    assert said(claims, elsewhere="X on two", two="X") == []


def test_references_are_followed_once_every_page_is_read():
    assert said([claim("A1")], unread={"two"}, one="A2") == []
    assert len(said([claim("A1"), claim("A1")], unread={"two"}, one="A2")) == 2


def test_a_failure_refutes_the_claim_whose_cell_it_names(monkeypatch: pytest.MonkeyPatch):
    claims = [claim("A1", "one", 1, 1, 2), claim("A2", "one", 9, 3), claim("B1", "two", 1, 2)]
    claims += [claim("none", "one"), claim("C1", "three", 1, 2)]
    failures = [
        Failure("one.md", 3, "differs", "Mend it.", 2, True),
        Failure("one.md", 9, "too loud", "Hush.", 3, False),
    ]
    pages = {
        "one": SimpleNamespace(failures=failures),
        "two": SimpleNamespace(failures=[]),
    }
    domain = SimpleNamespace(all_claims=lambda: claims)
    monkeypatch.setattr(checks, "claims_domain", lambda env: domain)
    monkeypatch.setattr(checks, "records", lambda env: pages)
    assert checks.refuted_claims(SimpleNamespace()) == claims[:1]
