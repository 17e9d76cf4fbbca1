"""What each verdict needs, and which part of a claim a cell serves."""

import pytest

from verified_book.claims.claim import Claim, Condition
from verified_book.claims.parts import HOW, part_of, wanting

STATEMENT = ("statement", "holds")
PRINTED = ("counterexample", "as printed")
ILLUSTRATION = ("illustration", "illustration")


def claim(verdict: str, stated: str = "", *conditions: str) -> Claim:
    found = Claim("A1", "book", verdict, "So.", [], "page", "page.md", 1)
    found.stated, found.conditions = stated, [Condition(name, "It is.") for name in conditions]
    return found


@pytest.mark.parametrize(
    ("shows", "part"),
    [
        ("without a bias", ("condition", "without a bias")),
        ("as printed", PRINTED),
        ("instead", ("instead", "instead")),
        ("illustration", ILLUSTRATION),
        ("as", None),
    ],
)
def test_the_words_of_a_cell_name_a_part(shows, part):
    assert part_of(shows) == part


def test_what_a_claim_lacks_is_said_with_a_remedy():
    assert wanting(claim("holds"), [ILLUSTRATION]) == [
        (
            "claim A1 has no evidence for its statement",
            f"Let a cell of it show the statement. {HOW}",
        )
    ]
    assert wanting(claim("holds-if"), [STATEMENT]) == [
        (
            "claim A1 holds if something is so, and does not name it",
            "Add a field for each condition, `:with NAME: ...` or `:without NAME: ...`.",
        )
    ]


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
