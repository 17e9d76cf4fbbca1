"""What each verdict needs, and which part of a claim a cell serves."""

import pytest

from verified_book.claims.claim import Claim, Condition
from verified_book.claims.parts import part_of, wanting

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
        ("", STATEMENT),
        ("without a bias", ("condition", "without a bias")),
        ("with  two\nwords", ("condition", "with two words")),
        ("as printed", PRINTED),
        ("as the post has it", ("counterexample", "as the post has it")),
        ("instead", ("instead", "instead")),
        ("illustration", ILLUSTRATION),
        ("without", None),
        ("as", None),
        ("withhold a bias", None),
        ("illustrations", None),
    ],
)
def test_the_words_of_a_cell_name_a_part(shows, part):
    assert part_of(shows) == part


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        (claim("holds"), [STATEMENT]),
        (claim("holds", "Not so."), [STATEMENT, PRINTED]),
        (claim("fails", "Not so."), [PRINTED]),
        (claim("holds-if", "", "with a bias"), [STATEMENT, ("condition", "without a bias")]),
        (claim("holds", "", "without ties"), [STATEMENT, ("condition", "with ties")]),
    ],
)
def test_a_claim_that_has_what_it_needs(found, shown):
    assert wanting(found, shown) == []


@pytest.mark.parametrize(
    ("found", "shown", "message", "remedy"),
    [
        (claim("holds"), [ILLUSTRATION], "has no evidence for its statement", ":shows:"),
        (
            claim("holds-if", "", "with a bias"),
            [STATEMENT],
            "never drops its condition, with a bias",
            ":shows: without a bias",
        ),
        (claim("holds-if"), [STATEMENT], "does not name it", ":with NAME: ..."),
        (claim("fails", "Not so."), [STATEMENT], "fails without a counterexample", "as printed"),
        (claim("fails"), [PRINTED], "does not say what was stated", ":stated:"),
        (
            claim("holds"),
            [STATEMENT, ("condition", "with ties")],
            "has no condition for the cell that shows 'with ties'",
            ":without ties: ...",
        ),
    ],
)
def test_what_a_claim_lacks_is_said_with_a_remedy(found, shown, message, remedy):
    ((said, advice),) = wanting(found, shown)
    assert said.startswith("claim A1 ")
    assert message in said
    assert remedy in advice
