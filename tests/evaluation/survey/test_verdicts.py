"""The museum and the survey call the same thing by the same verdict."""

import ast
import json
import re
from pathlib import Path

import pytest

from evaluation.survey.__main__ import RESULTS, reread

REFERENCE = Path(__file__).parents[3] / "book/reference"
PAGES = ("published_bugs.md", "published_bugs_decoders.md")
TEXTS = {page: (REFERENCE / page).read_text() for page in PAGES}
ROWS = json.loads(RESULTS.read_text())["rows"]


def exhibits(text):
    """The list of a page: words, layer, wrong version, verdict."""
    (listed,) = re.findall(r"^exhibits = (\[.*?^\])", text, flags=re.MULTILINE | re.DOTALL)
    return ast.literal_eval(listed)


def called_variations(text):
    """The wrong versions that the exhibits of a page name as variations."""
    named = re.findall(r"^\*\*A variation\.\*\*(.*?)(?:: | was )", text, flags=re.MULTILINE)
    named += re.findall(r"^\*\*A variation\.\*\*(.*?) change nothing", text, flags=re.MULTILINE)
    return {name.lower() for each in named for name in re.findall(r"\*([^*]+)\*", each)}


VERDICTS = {name: verdict for text in TEXTS.values() for _, _, name, verdict in exhibits(text)}


def disagreement(row, verdicts=VERDICTS):
    """What the museum calls a layer that the survey calls otherwise, or None."""
    names = [*row["cited_for"], *row["known_as"]]
    found = {verdicts[name] for name in names if name in verdicts}
    if not found:
        return None
    if "defect" in found:
        return None if row["reading"] == "defect" else "defect"
    if row["reading"] == "variation":
        return None
    # A mistake that no exhibit shows may make a defect of it.
    beside = row["reading"] == "defect" and any(name not in verdicts for name in names)
    return None if beside else "variation"


def test_no_layer_of_the_survey_is_called_otherwise_in_the_museum():
    other = {(row["work"], row["path"]): disagreement(row) for row in ROWS}
    assert {layer: verdict for layer, verdict in other.items() if verdict} == {}


@pytest.mark.parametrize("page", PAGES)
def test_a_variation_says_so_in_its_exhibit_and_a_defect_does_not(page):
    listed = exhibits(TEXTS[page])
    variations = {name.lower() for *_, name, verdict in listed if verdict == "variation"}
    defects = {name.lower() for *_, name, verdict in listed if verdict == "defect"}
    assert len(variations) + len(defects) == len({name for *_, name, _ in listed})
    said = called_variations(TEXTS[page])
    assert variations <= said
    assert not defects & said


def test_what_exhibits_say_of_versions_outside_the_list_is_what_the_survey_says():
    said = called_variations(TEXTS["published_bugs.md"]) - {name.lower() for name in VERDICTS}
    assert "dropout ignored" in said
    for row in ROWS:
        names = set(row["cited_for"] + row["known_as"])
        if names and names <= said:
            assert row["reading"] == "variation", row["path"]


def test_what_the_survey_says_the_museum_explains_are_defects():
    text = (REFERENCE / "worlds_layers.md").read_text()
    text = text[text.index("## What the museum explains") :]
    museum = "".join(TEXTS.values())
    labels = re.findall(r"<(bug-[\w-]+)>", text)
    assert len(labels) == 4
    for label in labels:
        assert f"({label})=\n## " in museum
        exhibit = museum.split(f"({label})=")[1].split("\n## ")[1]
        first = exhibit.split("**What notices.**")[0]
        assert "**A variation.**" not in first
    recorded = {row["second"]: row["reading"] for row in ROWS if row["second"]}
    cited = set(re.findall(r'"(\w+)"', text)) & set(recorded)
    assert len(cited) == 6
    assert {recorded[name] for name in cited} == {"defect"}


def test_readings_change_without_what_was_measured():
    rows = [{**row, "reading": "?", "note": "?", "second": "?"} for row in ROWS]
    assert reread(rows) == ROWS
