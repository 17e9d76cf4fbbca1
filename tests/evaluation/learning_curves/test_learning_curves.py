"""The record of the learning curves: made, gone on with, read, refused when stale, and shown."""

import sys
from pathlib import Path

import pytest

from evaluation.learning_curves import __main__ as program
from evaluation.learning_curves import (
    curves,
    recorded,
    verdict,
)
from evaluation.learning_curves import measure as measuring
from evaluation.learning_curves.measure import measure
from evaluation.learning_curves.plan import PLAN, SEEDS, Cell
from transformer_training.toy_language import ABLATIONS, kind, share_right, trained_model

KINDS = ("and", "the other")
TINY = [Cell("tiny", (1, 2), {"kinds": KINDS}, part) for part in ("", "norms")]
ROWS = list(measure(TINY, 2))


def row(seed: int, *rights: float, without: str = "", **options: float) -> dict:
    return {
        "setting": "s",
        "without": without,
        "options": {"lr": 1e-3, **options},
        "seed": seed,
        "updates": [100 * 2**i for i in range(len(rights))],
        "loss": [2.0 - right for right in rights],
        "shares": {"and": list(rights), "or": [1.0] * len(rights)},
    }


def test_a_curve_has_what_a_model_gives_after_so_many_updates():
    assert [(each["without"], each["seed"]) for each in ROWS] == [
        (part, seed) for part in ("", "norms") for seed in (0, 1)
    ]
    for i, steps in enumerate(ROWS[3]["updates"]):
        model = trained_model("norms", kinds=KINDS, steps=steps, lr_decay=False, seed=1)
        shares = {name: round(share_right(model, name), 4) for name in KINDS}
        assert {name: each[i] for name, each in ROWS[3]["shares"].items()} == shares
        losses = [model.double().loss(kind(name).texts).item() for name in KINDS]
        assert ROWS[3]["loss"][i] == pytest.approx(sum(losses) / 2, abs=1e-4)


def test_a_model_that_is_right_twice_is_asked_no_more(monkeypatch):
    given = iter([1.0, 0.5, 1.0, 1.0])
    monkeypatch.setattr(measuring, "share_right", lambda model, name: next(given))
    [found] = measure([Cell("s", (1, 2, 3, 4, 5), {"kinds": ("and",)})], 1)
    assert found["shares"] == {"and": [1.0, 0.5, 1.0, 1.0]}
    assert found["updates"] == [1, 2, 3, 4]


def test_the_program_goes_on_with_what_is_there(tmp_path: Path, monkeypatch, capsys):
    output = tmp_path / "made.json"
    monkeypatch.setattr(program, "PLAN", TINY)
    for seeds in ("1", "2"):
        monkeypatch.setattr(sys, "argv", ["curves", "--seeds", seeds, "--output", str(output)])
        program.main()
    assert recorded(output)["rows"] == ROWS
    assert "tiny" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["curves", "--only", "huge"])
    with pytest.raises(SystemExit):
        program.main()
    assert "--only: the settings are tiny" in capsys.readouterr().err


def test_rows_are_found_by_what_differs_from_the_first():
    wide = row(0, 1, n_embd=64)
    rows = [row(0, 0.5), row(1, 0.5), wide, row(0, 0.5, without="norms")]
    assert curves(rows, "s") == rows[:2]
    assert curves(rows, "s", n_embd=64) == [wide]
    with pytest.raises(ValueError, match=r"^the record has no 's' without 'soul' with \{\}$"):
        curves(rows, "s", "soul")


def test_a_verdict_counts_the_models_and_asks_whether_the_others_still_learn():
    said = verdict([row(0, 0.2, 0.96, 1, 1), row(1, 0.2, 0.3, 0.96, 1), row(2, 0.2, 0.2, 0.2, 0.3)])
    assert (said.learned, said.models, said.updates, said.best) == (2, 3, 400, 1)
    assert said.fall == pytest.approx(0.1)
    assert verdict([row(0, 1, 1)]).fall == 0


def test_the_plan_names_parts_that_there_are_and_each_cell_once():
    assert {cell.without for cell in PLAN} == {"", *ABLATIONS}
    names = [repr((cell.setting, cell.without, sorted(cell.options.items()))) for cell in PLAN]
    assert len(set(names)) == len(names)


def test_the_record_is_that_of_the_sources_and_holds_the_whole_plan():
    results = recorded()
    assert results["seeds"] == SEEDS == 10
    found = [
        (each["setting"], each["without"], sorted(map(str, each["options"].values())), each["seed"])
        for each in results["rows"]
    ]
    assert len(found) == len(PLAN) * SEEDS
    for cell in PLAN:
        sizes = {name: size for name, size in cell.options.items() if name != "kinds"}
        own = curves(results["rows"], cell.setting, cell.without, **sizes)
        assert [each["seed"] for each in own] == list(range(SEEDS))
