"""The numbers that stand for a claim."""

import pytest
from docutils import nodes

from verified_book.claims.claim import Claim, Evidence
from verified_book.claims.measurements import headline, in_words, measured, readable, summary


def claim(*evidence: Evidence, verdict: str = "holds", broken: bool = False) -> Claim:
    place = ("page", "page.md", 1)
    return Claim("A1", "book", verdict, "So.", [], *place, list(evidence), broken=broken)


EQUAL = Evidence("equal", 1e-7, 1e-6)
CLOSER = Evidence("equal", 9e-9, 1e-8)
DIFFERENT = Evidence("different", 0.25, 0.1)
FURTHER = Evidence("different", 316.2, 0.1)


def test_the_headline_is_the_error_closest_to_its_tolerance():
    assert headline(claim(EQUAL, CLOSER, EQUAL), "equal") == CLOSER
    assert headline(claim(EQUAL, Evidence("equal", 0.5, None)), "equal") == Evidence(
        "equal", 0.5, None
    )
    assert headline(claim(EQUAL, Evidence("equal", None, None)), "equal") == EQUAL
    assert headline(claim(Evidence("equal", 0.0, 0.0)), "equal") == Evidence("equal", 0.0, 0.0)


def test_the_headline_is_the_largest_difference():
    assert headline(claim(DIFFERENT, FURTHER, EQUAL), "different") == FURTHER
    assert headline(claim(EQUAL), "different") is None
    assert headline(claim(Evidence("raises", None, None)), "raises") is None


@pytest.mark.parametrize(
    ("verdict", "evidence", "found"),
    [
        ("holds", [EQUAL, DIFFERENT], EQUAL),
        ("holds-if", [DIFFERENT, EQUAL], EQUAL),
        ("holds", [DIFFERENT], DIFFERENT),
        ("fails", [EQUAL, DIFFERENT], DIFFERENT),
        ("fails", [EQUAL], EQUAL),
        ("holds", [], None),
    ],
)
def test_a_number_stands_for_a_claim(verdict, evidence, found):
    assert measured(claim(*evidence, verdict=verdict)) == found


@pytest.mark.parametrize(
    ("verdict", "evidence", "text"),
    [
        ("holds", [EQUAL], "Measured: largest error 1e-07, tolerance 1e-06."),
        ("holds", [Evidence("equal", 0.0, 0.0)], "Measured: largest error 0."),
        (
            "holds",
            [EQUAL, DIFFERENT],
            "Measured: largest error 1e-07, tolerance 1e-06; otherwise off by 0.25.",
        ),
        ("fails", [DIFFERENT], "Measured: off by 0.25."),
        (
            "holds-if",
            [EQUAL, FURTHER],
            "Measured: largest error 1e-07, tolerance 1e-06; without its conditions off by 320.",
        ),
        ("fails", [Evidence("raises", None, None)], "Proven by what the cells assert and print."),
        ("holds", [], "Proven by what the cells assert and print."),
    ],
)
def test_the_summary_of_a_claim(verdict, evidence, text):
    assert summary(claim(*evidence, verdict=verdict)) == text


def test_a_broken_claim_shows_no_number():
    assert summary(claim(EQUAL, broken=True)) == "Not proven in this build: see its log."


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (1.234e-7, "1.2e-07"),
        (99.4, "99"),
        (316.2, "320"),
        (2e7, "2e+07"),
        (-150.0, "-150"),
    ],
)
def test_numbers_are_short(number, text):
    assert readable(number) == text


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Measured: largest error 1.2e-07, tolerance 1e-06.", ["1.2e-07", "1e-06"]),
        ("Measured: off by 0.25.", []),
    ],
)
def test_no_line_ends_within_a_number(text, numbers):
    paragraph = in_words(text, classes=["claim-evidence"])
    assert paragraph.astext() == text
    assert paragraph["classes"] == ["claim-evidence"]
    inline = list(paragraph.findall(nodes.inline))
    assert [node.astext() for node in inline] == numbers
    assert all(node["classes"] == ["number"] for node in inline)
