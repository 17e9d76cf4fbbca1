"""The lines that a claim's box shows, and how strong its evidence is."""

from dataclasses import replace

import pytest

from verified_book.claims.claim import Claim, Evidence, Strength
from verified_book.claims.measurements import (
    STRENGTHS,
    claim_strength,
    in_count,
    lines,
    nearest,
    readable,
    strength,
)

DRAWS, ALL, COUNTED = Strength("draws", 200), Strength("all", 63488), Strength("count")


def claim(
    *evidence: Evidence, verdict: str = "holds", broken: bool = False, derived: bool = False
) -> Claim:
    place = ("page", "page.md", 1)
    found = Claim("A1", "book", verdict, "So.", [], *place, list(evidence), broken=broken)
    found.derived = derived
    return found


EQUAL = Evidence("equal", 1e-7, 1e-6, label="holds")
CLOSER = Evidence("equal", 9e-9, 1e-8, label="holds")
DIFFERENT = Evidence("different", 0.25, 0.1, label="holds")
FURTHER = Evidence("different", 316.2, 0.1, "condition", "without a bias")
PRINTED = Evidence("raises", part="counterexample", label="as printed", text="NameError: name 'x'")
OFF = Evidence("different", 2.0, 1.0, "counterexample", "as stated")
ONE = "one input; largest error 1e-07, 1e-06 allowed"
ALONE = "only what was stated is shown to fail"
INSTEAD = Evidence("equal", 0.0, 0.0, "instead", "instead")


def law(text: str, **options: Strength) -> Evidence:
    return Evidence("holds", label="holds", text=f"holds: {text}", **options)


@pytest.mark.parametrize(
    ("verdict", "evidence", "text"),
    [
        ("holds", [EQUAL], [ONE]),
        (
            "holds-if",
            [replace(EQUAL, strength=DRAWS), FURTHER, INSTEAD],
            [
                "200 draws; largest error 1e-07, 1e-06 allowed",
                "instead: no difference",
                "without a bias: off by 320",
            ],
        ),
        ("fails", [PRINTED, OFF], [ALONE, "as printed: raises NameError", "as stated: off by 2"]),
        (
            "holds",
            [law("rows sum to 1, over 200 draws", strength=DRAWS)],
            ["200 draws; rows sum to 1"],
        ),
        ("holds", [law("3 counted, 3 expected", strength=COUNTED)], ["3 counted, 3 expected"]),
        (
            "fails",
            [replace(EQUAL, strength=DRAWS), replace(INSTEAD, strength=DRAWS), OFF],
            ["200 draws; largest error 1e-07, 1e-06 allowed", "as stated: off by 2"],
        ),
    ],
)
def test_each_part_of_a_claim_has_a_line(verdict, evidence, text):
    assert lines(claim(*evidence, verdict=verdict)) == text


def test_a_derivation_is_said_of_the_statement():
    found = claim(EQUAL, FURTHER, verdict="holds-if", derived=True)
    assert lines(found) == [f"derived; {ONE}", "without a bias: off by 320"]
    assert claim_strength(found) == Strength("derived")


def test_a_part_is_as_strong_as_its_weakest_evidence():
    drawn, exhausted = replace(EQUAL, strength=DRAWS), replace(EQUAL, strength=ALL)
    assert strength([exhausted, drawn]) == DRAWS
    assert strength([exhausted, EQUAL]) == Strength()
    assert strength([exhausted, Evidence("checked"), Evidence("raises")]) == ALL
    assert strength([]) == Strength()
    assert claim_strength(claim(drawn, FURTHER)) == DRAWS
    assert claim_strength(claim(drawn, OFF, verdict="fails")) == Strength()


def test_seeds_are_as_strong_as_the_fewest_that_show_it():
    most, all_ten = (
        Evidence(
            "holds", strength=Strength("seeds", 10, held), text=f"holds: so, {held} of 10 seeds"
        )
        for held in (7, 10)
    )
    assert strength([most, all_ten]) == strength([all_ten, most]) == Strength("seeds", 10, 7)
    assert strength([all_ten, replace(EQUAL, strength=DRAWS)]) == Strength("seeds", 10, 10)
    assert lines(claim(all_ten)) == ["measured: 10 of 10 seeds; so"]
    assert lines(claim(all_ten, derived=True)) == ["derived; measured: 10 of 10 seeds; so"]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (ALL, "all 63,488 values"),
        (DRAWS, "over 200 draws"),
        *((Strength(kind), "") for kind in STRENGTHS),
    ],
)
def test_a_strength_is_said_with_its_number_or_not_at_all(found, text):
    assert in_count(found) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "an unknown amount"),
        (316.2, "320"),
        (2e7, "2e+07"),
    ],
)
def test_numbers_are_short(number, text):
    assert readable(number) == text


def test_the_error_closest_to_its_tolerance_counts():
    assert nearest([EQUAL, CLOSER, EQUAL]) == CLOSER
    assert nearest([EQUAL, Evidence("equal", 0.5, None)]) == Evidence("equal", 0.5, None)
    assert nearest([EQUAL, Evidence("equal", None, None)]) == EQUAL
    assert nearest([Evidence("equal", 0.0, 0.0)]) == Evidence("equal", 0.0, 0.0)
    assert nearest([DIFFERENT]) is None
