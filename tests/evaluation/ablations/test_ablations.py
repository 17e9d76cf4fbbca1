"""The record of the ablations: made, read, refused when it is stale, and shown."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from book_site.figures import show
from evaluation.ablations import __main__ as program
from evaluation.ablations import dots, record, recorded, shares
from evaluation.ablations.measure import measure
from evaluation.ablations.plan import PLAN, SEEDS, Setting
from evaluation.recorded import write_results
from evaluation.sources import facts
from transformer_training.toy_language import ABLATIONS, share_right, trained_model

TINY = Setting("tiny", {"steps": 2, "kinds": ("and", "the other")}, ("norms",))
ROWS = measure([TINY], 2)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "results.json"
    write_results(file, {**facts(record.SOURCES), "seeds": 2, "rows": ROWS})
    return file


def test_each_cell_has_the_share_of_each_seed():
    cells = [(row["without"], row["kind"], row["chance"]) for row in ROWS]
    assert cells == [
        (part, kind, chance)
        for part in ("", "norms")
        for kind, chance in (("and", 1 / 2), ("the other", 1 / 6))
    ]
    for seed in (0, 1):
        model = trained_model("norms", **TINY.options, lr_decay=False, seed=seed)
        share = shares(ROWS, "tiny", "norms", "the other")[seed]
        assert share == round(share_right(model, "the other"), 4)


def test_a_cell_that_there_is_not_is_named():
    with pytest.raises(ValueError, match=r"the record has no cell of .*'soul'"):
        shares(ROWS, "tiny", "soul", "and")


def test_a_stale_record_names_what_has_changed(file: Path):
    results = json.loads(file.read_text())
    results["sources"]["src/transformer_training/toy_language/model.py"] = "another"
    write_results(file, results)
    said = r"results\.json: .* before src/transformer_training/toy_language/model\.py changed\. "
    with pytest.raises(SystemExit, match=rf"{said}Remedy: run make ablations$"):
        recorded(file)


def test_the_program_writes_what_is_read(tmp_path: Path, monkeypatch, capsys):
    output = tmp_path / "made.json"
    monkeypatch.setattr(program, "PLAN", (TINY,))
    monkeypatch.setattr(sys, "argv", ["ablations", "--seeds", "2", "--output", str(output)])
    program.main()
    assert recorded(output)["rows"] == ROWS
    assert "without norms" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["ablations", "--only", "huge"])
    with pytest.raises(SystemExit):
        program.main()
    assert "--only: the settings are tiny" in capsys.readouterr().err


def test_the_figure_has_a_dot_for_each_model_and_a_line_at_chance():
    figure = dots(ROWS, "tiny", ("and", "the other"), ("", "norms"))
    for panel, kind, chance in zip(figure.axes, ("and", "the other"), (1 / 2, 1 / 6), strict=True):
        *cells, line = panel.lines
        assert [list(cell.get_xdata()) for cell in cells] == [
            shares(ROWS, "tiny", part, kind) for part in ("", "norms")
        ]
        assert [float(x) for x in line.get_xdata()] == [chance, chance]
        assert panel.get_title() == kind
    ElementTree.fromstring(show(figure, "Dots.").data)


def test_the_plan_names_parts_that_there_are_and_each_setting_once():
    assert len({setting.name for setting in PLAN}) == len(PLAN)
    assert {part for setting in PLAN for part in setting.without} == set(ABLATIONS)


def test_the_record_is_that_of_the_sources_and_holds_the_whole_plan():
    results = recorded()
    assert results["seeds"] == SEEDS == 10
    cells = {(row["setting"], row["without"], row["kind"]) for row in results["rows"]}
    assert cells == {
        (setting.name, part, kind)
        for setting in PLAN
        for part in ("", *setting.without)
        for kind in setting.kinds
    }
    assert {len(row["shares"]) for row in results["rows"]} == {SEEDS}
