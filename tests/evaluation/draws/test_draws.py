"""Luck is found, and nothing else."""

import json
from pathlib import Path

import pytest

from evaluation.draws.__main__ import runs
from evaluation.draws.chapter import Cell, cells_of, luck

SEEDED = Cell(0, "import torch\ntorch.manual_seed(0)\nx = torch.rand(1000)", False, [])
CHECKS = "from layer_checks import equivalent, holds, different\n"


def found(*codes: str, pattern: str = "", raises: bool = False, shift: int = 1) -> list[str]:
    cells = [
        Cell(place, CHECKS + code, raises, [pattern] if pattern else [])
        for place, code in enumerate(codes, start=1)
    ]
    return [each.what for each in luck([SEEDED, *cells], shift)]


def test_the_draw_of_one_seed_is_luck():
    code = "equivalent(x[0], 0.4962565898895264)"
    assert found(code, shift=0) == []
    (what,) = found(code)
    assert what.startswith("AssertionError: not equal: largest difference")


def test_evidence_that_says_something_else_is_luck():
    code = "holds(True, f'the first is {x[0]:.4f}')"
    assert found(code, pattern="holds: the first is 0.4963", shift=0) == []
    (what,) = found(code, pattern="holds: the first is 0.4963")
    assert "in place of 'holds: the first is 0.4963'" in what


def test_printed_tensors_may_differ_and_errors_may_be_meant():
    assert found("x[:3]") == []
    assert found("raise ValueError('meant')", raises=True) == []


def test_a_magic_that_is_not_reached_is_no_error():
    assert found("install = False\nif install:\n    %pip install torch") == []


def test_cells_of_a_built_notebook(tmp_path: Path):
    evidence = {"metadata": {"evidence": {"pattern": "holds: so"}}, "output_type": "execute_result"}
    cells = [
        {"cell_type": "markdown", "source": ["# A"], "metadata": {}},
        {
            "cell_type": "code",
            "source": ["a\n", "b"],
            "metadata": {"tags": ["raises-exception"]},
            "outputs": [evidence, {"output_type": "stream", "text": "x"}],
        },
    ]
    notebook = tmp_path / "page.ipynb"
    notebook.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert cells_of(notebook) == [Cell(1, "a\nb", True, ["holds: so"])]


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_each_run_is_a_process_of_its_own(tmp_path: Path):
    codes = {
        "luck": "import torch\ntorch.manual_seed(0)\nassert torch.rand(()) > 0.496",
        "dies": "import os\nos._exit(3)",
        "law": "import torch\nassert torch.rand(()) < 1\nprint('so')",
    }
    for name, code in codes.items():
        cell = {"cell_type": "code", "source": code, "metadata": {}, "outputs": []}
        (tmp_path / f"{name}.ipynb").write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    jobs = [(tmp_path / f"{name}.ipynb", shift) for name in codes for shift in (0, 1)]
    ended = {
        (notebook.stem, shift): (error, len(found))
        for notebook, shift, error, found in runs(jobs, 2)
    }
    assert ended == {
        ("luck", 0): ("", 0),
        ("luck", 1): ("", 1),
        ("dies", 0): ("exit status 3", 0),
        ("dies", 1): ("exit status 3", 0),
        ("law", 0): ("", 0),
        ("law", 1): ("", 0),
    }
