"""What each verdict needs, and which part of a claim a cell serves."""

from verified_book.claims.claim import Claim, Condition
from verified_book.claims.parts import wanting

STATEMENT = ("statement", "holds")


def claim(verdict: str, stated: str = "", *conditions: str) -> Claim:
    found = Claim("A1", "book", verdict, "So.", [], "page", "page.md", 1)
    found.stated, found.conditions = stated, [Condition(name, "It is.") for name in conditions]
    return found


def test_all_that_a_claim_lacks_is_said_in_order():
    found = claim("fails", "", "with b", "without a")
    shown = [STATEMENT, ("condition", "with d"), ("condition", "with c")]
    assert [said for said, _ in wanting(found, shown)] == [
        "claim A1 fails, and does not say what was stated",
        "claim A1 fails without a counterexample",
        "claim A1 never drops its condition, without a",
        "claim A1 never drops its condition, with b",
        "claim A1 has no condition for the cell that shows 'with c'",
        "claim A1 has no condition for the cell that shows 'with d'",
    ]
