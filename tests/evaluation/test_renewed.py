"""A record that is stale gets new digests where a part that is run again says the same."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from evaluation.experiments import record as experiments
from evaluation.experiments import recorded
from evaluation.experiments.record import renewed
from evaluation.learning_curves.measure import again
from evaluation.learning_curves.plan import PLAN
from evaluation.recorded import write_results
from evaluation.renewed import CLOSE
from evaluation.sources import digests

SOURCES = ("evaluation/sources.py",)
STALE = {"evaluation/sources.py": "0"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A record of two seeds that is stale."""
    file = tmp_path / "made.json"
    result = {"seeds": 2, "shares": [0.5, 0.75], "rows": [{"name": "a", "loss": [1.25, 3]}]}
    write_results(file, {"date": "2026-01-01", "sources": STALE, "result": result})
    return file


def experiment(monkeypatch, **parts) -> SimpleNamespace:
    made_up = SimpleNamespace(SOURCES=SOURCES, SEEDS=2, **parts)
    monkeypatch.setattr(experiments, "_module", lambda name: made_up)
    monkeypatch.setattr(experiments, "sources", lambda name: SOURCES)
    return made_up


def test_the_first_seed_renews_a_record(file, monkeypatch):
    def measure() -> dict:
        seeds = made_up.SEEDS
        rows = [{"name": "a", "loss": [1.25 * (1 + CLOSE / 2), 3][:seeds]}]
        return {"seeds": seeds, "shares": [0.5, 0.75][:seeds], "rows": rows}

    made_up = experiment(monkeypatch, measure=measure)
    with pytest.raises(SystemExit, match="before"):
        recorded("made", file.parent)
    before = json.loads(file.read_text())
    renewed("made", file.parent)
    assert recorded("made", file.parent) == before["result"]
    after = json.loads(file.read_text())
    assert after["date"] == before["date"] < after["renewed"]
    assert made_up.SEEDS == 2


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"shares": [0.5 + 2 * CLOSE]}, r"shares\[0\] is 0\.504, recorded is 0\.5\. Remedy: run"),
        ({"rows": [{"name": "b"}]}, r"rows\[0\]\.name is b, recorded is a"),
        ({"shares": [0.5, 0.75, 1.0]}, "shares has 3 entries, recorded are 2"),
        ({"shares": [float("nan")]}, r"shares\[0\] is nan"),
    ],
)
def test_another_number_renews_nothing(now, said, file, monkeypatch):
    before = file.read_text()
    experiment(monkeypatch, measure=lambda: now)
    with pytest.raises(SystemExit, match=said):
        renewed("made", file.parent)
    assert file.read_text() == before


def test_first_steps_are_run_where_there_is_one_seed(file, monkeypatch):
    experiment(monkeypatch, first_steps=lambda: {"shares": [0.5]})
    renewed("made", file.parent)
    assert recorded("made", file.parent)


def test_curves_are_held_against_the_shortest_without_each_part():
    cell = next(each for each in PLAN if each.setting == "verbs, 8 blocks" and not each.without)
    row = {"setting": cell.setting, "without": "", "options": dict(cell.options), "seed": 3}
    tiny = {**row, "updates": [100], "loss": [0.7], "shares": {}}
    longer = {**row, "seed": 4, "updates": [100, 200], "loss": [0.7, 0.7], "shares": {}}
    with pytest.MonkeyPatch.context() as patch:
        asked = []
        patch.setattr(
            "evaluation.learning_curves.measure._curve",
            lambda cell, seed: asked.append((cell, seed)) or {"loss": [0.5]},
        )
        now, before = again({"rows": [longer, tiny]})
    assert asked == [(cell, 3)]
    assert before == [tiny]
    assert now == [{**tiny, "loss": [0.5]}]


def test_the_code_that_made_the_record_is_run_beside_it(file, monkeypatch, tmp_path):
    checkout = tmp_path / "checkout"
    there = checkout / "evaluation" / "experiments"
    there.mkdir(parents=True)
    (checkout / "evaluation" / "sources.py").write_text("")
    program = "SEEDS = 2\n\ndef measure():\n    return {'shares': [0.125, 0.25][:SEEDS]}\n"
    (there / "made.py").write_text(program)
    experiment(monkeypatch, measure=lambda: {"shares": [0.125]})
    with pytest.raises(SystemExit, match=r"evaluation/sources\.py did not make the record of made"):
        renewed("made", file.parent, checkout)
    write_results(file, json.loads(file.read_text()) | {"sources": digests(SOURCES, checkout)})
    renewed("made", file.parent, checkout)
    assert json.loads(file.read_text())["sources"] == digests(SOURCES)
