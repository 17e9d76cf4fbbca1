"""The command line, the assertion for tests, and the report as a page shows it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from layer_checks import assert_layer, check
from layer_checks.__main__ import main
from verified_book.outputs.visible_html import visible_text

MODULE = """
import os
import time

import torch
from torch import nn


class Gain(nn.Module):
    def __init__(self, n, eps=1e-5):
        super().__init__()
        self.g, self.s = nn.Parameter(torch.ones(n)), nn.Parameter(torch.zeros(n))
        self.eps = eps

    def forward(self, x):
        return nn.functional.layer_norm(x, x.shape[-1:], self.g, self.s, self.eps)


right = nn.functional.gelu


def wrong(x):
    print("noise")
    return 1.01 * right(x)


def needs(x, y):
    return x


def ends(x):
    os._exit(3)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "theirs.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    source = Path(check.__code__.co_filename).parent.parent
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(source)]))
    return tmp_path


def test_a_right_and_a_wrong_layer(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gelu", "theirs:right"]) == 0
    assert capsys.readouterr().out.startswith("gelu: the law holds, ")
    assert main(["gelu", "theirs:wrong", "--seed", "1"]) == 1
    assert "noise" not in capsys.readouterr().out


def test_names_and_json(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--names", "weight=g", "--names", "bias=s"]
    main(["LayerNorm", "theirs:Gain", "--json", *given])
    report = json.loads(capsys.readouterr().out)
    assert report["weights"] == "names=: g <- weight, s <- bias"
    assert {result["name"] for result in report["results"] if result["result"] == "held"} > {
        "values",
        "gradients",
    }
    assert report["behaves_like"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["gelu", "theirs:missing"],
            "cannot find theirs:missing: module 'theirs' has no attribute",
        ),
        (["gelu", "theirs:ends"], "theirs:ends: its process ended with status 3"),
        (["Gelu", "theirs:right"], "no layer 'Gelu'; there are checks for gelu, "),
        (["gelu", "theirs:right", "--names", "a"], "--names takes ours=theirs, got 'a'"),
        (["theirs:right"], "give one layer, and one place such as mypackage.norms:MyNorm"),
    ],
)
def test_what_cannot_be_checked(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(message)


def test_a_layer_that_cannot_be_called(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gelu", "theirs:needs"]) == 2
    assert "gelu: the law could not be judged" in capsys.readouterr().out


def test_the_module_runs(place: Path) -> None:
    command = [sys.executable, "-m", "layer_checks", "gelu", "theirs:right"]
    plain = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (plain.returncode, plain.stderr) == (0, "")
    assert "\x1b" not in plain.stdout


class Doubled(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class TestAssertLayer:
    def test_it_returns_the_report_or_raises_it(self) -> None:
        assert assert_layer("LayerNorm", nn.LayerNorm)
        with pytest.raises(AssertionError, match=r"^LayerNorm: the law fails, \d+ of \d") as caught:
            assert_layer("LayerNorm", Doubled)
        assert "failed  values: largest difference" in str(caught.value)
        assert "look first at" in str(caught.value)

    def test_contract_and_start_where_they_are_asked_for(self) -> None:
        class Tuple(nn.LayerNorm):
            def forward(self, x: Tensor) -> tuple[Tensor, None]:
                return super().forward(x), None

        assert assert_layer("LayerNorm", Tuple, start=True)
        with pytest.raises(AssertionError, match="the contract fails"):
            assert_layer("LayerNorm", Tuple, contract=True)


class TestHTML:
    def test_it_shows_each_result_with_its_statement(self) -> None:
        report = check("gelu", torch.nn.functional.silu)
        shown, has_table = visible_text(report._repr_html_())
        assert has_table
        assert shown.startswith(report.headline)
        assert report.failed
        for result in report.results:
            assert re.search(rf"{re.escape(result.name)}\b.*: {re.escape(result.text)}", shown)
            assert (f"{result.name}: {result.law}" in shown) is not result.held
        assert "It differs at index (" in shown

    def test_everything_is_escaped(self) -> None:
        def bad(x: Tensor) -> Tensor:
            raise ValueError("<script>&")

        html = check("gelu", bad)._repr_html_()
        assert "<script>" not in html
        assert "&lt;script&gt;&amp;" in html


@pytest.mark.parametrize("option", ["--seed", "--timeout"])
@pytest.mark.parametrize("value", ["-1", "nan"])
def test_numbers_that_are_refused(option, value, capsys, monkeypatch):
    monkeypatch.setattr("subprocess.run", None)  # nothing is begun
    with pytest.raises(SystemExit) as raised:
        main(["gelu", "theirs:right", f"{option}={value}"])
    assert raised.value.code == 2
    assert f"argument {option}: " in capsys.readouterr().err
