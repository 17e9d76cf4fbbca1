"""The published list of claims: its form, and that each claim is where the list says."""

import json
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.site.serving import ROOT
from verified_book.claims.claim import VERDICTS
from verified_book.claims.measurements import STRENGTHS
from verified_book.claims.parts import PARTS

pytestmark = pytest.mark.xdist_group("site")

MEASURED = {"type": ["number", "null"], "minimum": 0}
TEXT = {"type": "string", "minLength": 1}


def closed(**properties):
    """A JSON object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@pytest.fixture(scope="module")
def published(html):
    return json.loads((html / "claims.json").read_text(encoding="utf-8"))


def test_no_claim_vanishes(published):
    """Adding a claim adds its id to the list; a claim of the notes that disappears is noticed."""
    listed = Path(__file__).with_name("claim_ids.txt").read_text(encoding="utf-8").split()
    assert sorted(claim["id"] for claim in published["claims"]) == sorted(listed)


def test_list_has_its_form(html, published):
    config = yaml.safe_load((ROOT / "book" / "_config.yml").read_text(encoding="utf-8"))
    number = {"type": ["integer", "null"], "minimum": 1}
    strength = closed(kind={"enum": list(STRENGTHS)}, number=number, held=number)
    evidence = closed(
        part={"enum": list(PARTS)},
        label=TEXT,
        kind=TEXT,
        error=MEASURED,
        tolerance=MEASURED,
        strength=strength,
    )
    claim = closed(
        id={"type": "string", "pattern": "^[A-Z][0-9]+$"},
        number={"type": "integer", "minimum": 1},
        note={"enum": list(config["sphinx"]["config"]["verified_book_notes"])},
        verdict={"enum": list(VERDICTS)},
        text=TEXT,
        page={"type": "string", "pattern": r"^[\w/-]+\.html#[\w-]+$"},
        error=MEASURED,
        tolerance=MEASURED,
        versions={"type": "object", "required": ["python", "torch"], "additionalProperties": TEXT},
        proven={"const": True},
        stated={"type": ["string", "null"], "minLength": 1},
        conditions={"type": "array", "items": closed(name=TEXT, text=TEXT)},
        strength=strength,
        measured={"type": "array", "items": TEXT, "minItems": 1},
        evidence={"type": "array", "items": evidence},
    )
    form = closed(claims={"type": "array", "minItems": 1, "items": claim})
    jsonschema.validate(published, form, cls=jsonschema.Draft202012Validator)


def test_claims_are_counted_in_order(published):
    numbers = [claim["number"] for claim in published["claims"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert Counter(claim["id"] for claim in published["claims"]).most_common(1)[0][1] == 1


def test_each_claim_stands_on_its_page(pages, published):
    places = {}
    for claim in published["claims"]:
        page, _, anchor = claim["page"].partition("#")
        places.setdefault(page, {})[anchor] = claim["id"]
    for page, claims in places.items():
        boxes = {box["id"]: box for box in pages[page].find_all(id=list(claims))}
        for anchor, name in claims.items():
            assert name in boxes[anchor].get_text().split()


def test_each_claim_has_the_parts_of_its_verdict(published):
    for claim in published["claims"]:
        labels = {(each["part"], each["label"]) for each in claim["evidence"]}
        if claim["verdict"] == "fails":
            assert claim["stated"], claim["id"]
            assert any(part == "counterexample" for part, _ in labels), claim["id"]
        else:
            assert ("statement", "holds") in labels, claim["id"]
        if claim["verdict"] == "holds-if":
            assert claim["conditions"], claim["id"]
