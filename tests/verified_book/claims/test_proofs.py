"""Proofs that can fail."""

import pytest
from nbformat.v4 import new_output

from verified_book.claims.claim import Evidence, Strength
from verified_book.claims.proofs import asserts, evidence_of
from verified_book.outputs.cells import Cell
from verified_book.outputs.rendered import Look

LOOK = Look(mime_priority=(), merge_streams=True, removed=frozenset())


@pytest.mark.parametrize(
    "code", ["assert x == 1, 'message'", "def check():\n    assert x\ncheck()"]
)
def test_an_assertion_about_a_value_can_fail(code):
    assert asserts(code)


@pytest.mark.parametrize(
    "code",
    [
        "",
        "assert 1 == 1",
        "assert (x == 1, 'message')",
        "print('assert x')",
        "%time assert x",
    ],
)
def test_what_asserts_nothing_cannot_fail(code):
    assert not asserts(code)


def cell(shows: str | None, *evidence: dict[str, object]) -> Cell:
    outputs = [
        new_output("display_data", {"text/plain": "seen"}, metadata={"evidence": item})
        for item in evidence
    ]
    options = {} if shows is None else {"shows": shows}
    return Cell(0, "page.md", 1, "", frozenset(), outputs, True, None, LOOK, options)


@pytest.mark.parametrize(
    ("shows", "part", "label"),
    [
        (None, "statement", "holds"),
        ("as printed", "counterexample", "as printed"),
    ],
)
def test_what_a_cell_has_shown_is_of_its_part(shows, part, label):
    assert evidence_of(cell(shows)) == [Evidence("checked", part=part, label=label)]
    item: dict[str, object] = {
        "kind": "equal",
        "error": 0.5,
        "tolerance": 1.0,
        "pattern": "equal: ...",
    }
    counted = item | {"strength": {"kind": "draws", "number": 3}}
    assert evidence_of(cell(shows, item, {"of": "no kind"}, counted)) == [
        Evidence("equal", 0.5, 1.0, part, label, Strength(), "equal: ..."),
        Evidence("None", None, None, part, label),
        Evidence("equal", 0.5, 1.0, part, label, Strength("draws", 3), "equal: ..."),
    ]
