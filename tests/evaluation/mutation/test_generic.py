"""Which tests a module's mutants are held against, and what is said of those that survive."""

import subprocess
import sys

import pytest

from evaluation.mutation import generic
from evaluation.mutation.accepted import Accepted
from evaluation.mutation.generic import Against, held_against, modules_named
from evaluation.mutation.mutants import Mutant
from evaluation.mutation.processes import Result
from evaluation.mutation.wrongs import ROOT

HEADS = "transformer_layers/attention/heads"
MUTANT = Mutant(HEADS, "merge_heads", "number", 49, "f(1)", "f(2)", "")

# The whole command on a module of one line, held against tests of which one hangs on a mutant.
SOURCE = "def twice(x, limit=3):\n    while x > limit:\n        x = x - 1\n    return x + x\n"
TESTS = """
from pairs.doubles import twice

def test_twice():
    assert twice(1) == 2

def test_limit():
    assert twice(9) == 6
"""
SCRIPT = """
import sys
from pathlib import Path
from evaluation.mutation import __main__, generic, mutants, trials, wrongs
folder = Path(sys.argv[1])
for module in (generic, mutants, trials, wrongs):
    module.SOURCE = folder / "src"
generic.TESTS = trials.TESTS = folder / "tests" / "transformer_layers"
generic.LEAST_SECONDS = 1
generic.ACCEPTED = ()
__main__.prepare = lambda: None
sys.path.insert(0, str(folder / "src"))
sys.exit(__main__.main(["--generic", "pairs"]))
"""


def test_the_tests_are_those_of_the_same_name_and_those_whose_table_changes_the_module():
    assert held_against("transformer_layers/positions/sinusoidal") == [
        Against("positions/sinusoidal")
    ]
    assert Against("generation/sampling") in held_against("transformer_layers/generation/sampling")
    norm, *others = held_against("transformer_layers/norms/layer_norm")
    assert norm == Against("norms/layer_norm")
    (machinery,) = (each for each in others if each.name == "machinery")
    assert machinery.select.startswith("(LayerNorm and ")
    assert held_against("verified_book/claims/parts") == [Against("../verified_book/claims/parts")]


def test_a_module_without_tests_has_those_of_what_imports_it(monkeypatch):
    monkeypatch.setattr(generic, "CHANGES", {})
    assert [each.name for each in held_against("transformer_layers/generation/loss")] == [
        "models/gpt2/model",
    ]
    monkeypatch.setattr(generic, "importers_of", lambda module: [])
    with pytest.raises(
        ValueError, match=r"^no tests of transformer_layers/generation/loss\.py, or of"
    ):
        held_against("transformer_layers/generation/loss")


def test_modules_and_folders_are_named_from_src_or_from_the_layers():
    for name in ("attention/heads", HEADS, f"src/{HEADS}.py"):
        assert modules_named([name]) == [HEADS]
    files = modules_named(["checkpoints", "checkpoints/weights"])
    assert "transformer_layers/checkpoints/weights" in files
    assert len(set(files)) == len(files) > 3
    with pytest.raises(ValueError, match=r"^there is no module or folder 'heads' below "):
        modules_named(["heads"])


@pytest.fixture
def outcome(monkeypatch):
    """What the tests make of the only mutant; they pass on the right package."""
    outcomes = {"right": Result({"test_a": "passed"}), "mutant": Result({"test_a": "passed"})}
    monkeypatch.setattr(generic, "mutants_of", lambda module: (MUTANT,))
    monkeypatch.setattr(generic, "ACCEPTED", ())
    monkeypatch.setattr(
        generic,
        "results_of",
        lambda trials, seconds=0: [
            outcomes["mutant" if each.wrong else "right"] for each in trials
        ],
    )
    generic.on_the_right_package.cache_clear()
    yield outcomes
    generic.on_the_right_package.cache_clear()


def test_a_survivor_is_shown_with_file_line_function_and_lines(outcome, capsys):
    assert generic.run([HEADS]) == 1
    shown = capsys.readouterr().out
    place = "src/transformer_layers/attention/heads.py:49: merge_heads, number"
    assert f"survived: {place}\n  - f(1)\n  + f(2)\n" in shown
    assert "1 mutants of 1 modules: 0 noticed, 0 accepted, 1 survived" in shown


@pytest.mark.parametrize(
    "result",
    [
        Result({"test_a": "failed"}),
        Result({"test_a": "passed", "test_b": "not raised"}),
        Result({"test_a": "unfit"}),
        Result({}, "no test was run"),
    ],
)
def test_a_mutant_that_a_test_fails_on_or_that_cannot_be_imported_is_noticed(
    outcome, capsys, result
):
    outcome["mutant"] = result
    assert generic.run([HEADS]) == 0
    assert "1 noticed, 0 accepted, 0 survived" in capsys.readouterr().out


def test_an_accepted_survivor_is_shown_with_its_reason(outcome, capsys, monkeypatch):
    one = Accepted(f"{HEADS}:merge_heads", "number", "(1", "(2", "both are the last axis")
    monkeypatch.setattr(generic, "ACCEPTED", (one,))
    monkeypatch.setattr(generic, "stale", lambda accepted: [])
    assert generic.run([HEADS]) == 0
    shown = capsys.readouterr().out
    assert "merge_heads, number (accepted: both are the last axis)\n" in shown
    assert "0 noticed, 1 accepted, 0 survived" in shown


def test_an_accepted_mutant_that_there_is_not_is_a_problem(outcome, capsys, monkeypatch):
    outcome["mutant"] = Result({"test_a": "failed"})
    one = Accepted(f"{HEADS}:merge_heads", "number", "no such text", "", "a reason")
    monkeypatch.setattr(generic, "ACCEPTED", (one,))
    assert generic.run([HEADS]) == 1
    assert f"problem: {HEADS}:merge_heads: number: no mutant has" in capsys.readouterr().out


def test_tests_that_the_right_package_does_not_pass_are_a_problem(outcome, capsys):
    outcome["right"] = Result({"test_a": "failed"})
    assert generic.run([HEADS]) == 1
    problem = "attention/test_heads.py does not pass on the package as it is: test_a"
    assert f"problem: {problem}\n" in capsys.readouterr().out


def test_a_sample_is_the_same_for_the_same_seed(outcome, capsys, monkeypatch):
    many = tuple(
        Mutant(HEADS, "f", "number", line, f"f({line})", "f()", "") for line in range(100, 200)
    )
    monkeypatch.setattr(generic, "mutants_of", lambda module: many)
    drawn = []
    for seed in (1, 1, 2):
        generic.run([HEADS], sample=5, seed=seed)
        drawn.append([each for each in capsys.readouterr().out.splitlines() if "  - " in each])
    assert len(drawn[0]) == 5
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.nightly
def test_the_command_on_a_module_of_a_few_lines(tmp_path):
    for path, text in (("src/pairs/doubles", SOURCE), ("tests/pairs/test_doubles", TESTS)):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / f"{path}.py").write_text(text)
    (tmp_path / "tests/transformer_layers").mkdir()
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    survived = [line for line in ended.stdout.splitlines() if line.startswith(("  - ", "  + "))]
    assert survived == ["  - x = x - 1", "  + x = x - 2"], ended.stdout
