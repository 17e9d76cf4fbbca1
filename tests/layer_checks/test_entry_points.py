"""Layers of other distributions are known by their entry points, and what is broken is said."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from layer_checks import check, detection_table, registry, wrong_versions
from layer_checks.detection import command

A_LAYER = """
from layer_checks.kit.definitions import Layer

{name} = Layer("{name}", "{name}(x)", lambda candidate: candidate(1), lambda candidate: [], {right})
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python where the distributions in a folder are installed."""
    source = Path(check.__code__.co_filename).parents[2]
    path = os.pathsep.join([str(folder), str(source)])
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )


def test_the_layer_of_another_distribution_is_checked(gated: Path) -> None:
    known = wrong_versions("Gated")
    assert [each.name for each in known if not each.generic] == [
        "activation on the wrong half",
        "activation on the product",
    ]
    assert check("Gated", registry.right_version("Gated"))
    for version in known:
        report = check("Gated", version.layer)
        assert report.failed
        assert version in (report.behaves_like, *report.fails_like)


def test_it_has_a_detection_table(gated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = detection_table("Gated")
    assert len(table.wrong_versions) == 2
    assert table.not_caught == ()
    assert command.main(["Gated"]) == 0
    assert capsys.readouterr().out.startswith("Gated\n\n")


def test_the_command_knows_it(gated: Path) -> None:
    done = run(gated, "-m", "layer_checks", "Gated", "gated_layers:Gated")
    assert (done.returncode, done.stderr) == (0, "")
    laws = sum(each.kind == "law" for each in registry.layer_named("Gated").checks)
    assert done.stdout.startswith(f"Gated: the law holds, {laws} of {laws}\n")


def test_the_package_can_be_imported_first(gated: Path) -> None:
    done = run(
        gated,
        *("-c", "import gated_layers, layer_checks as c; print(c.wrong_versions('Gated')[0].name)"),
    )
    assert (done.stdout, done.stderr) == ("activation on the wrong half\n", "")


def test_a_broken_entry_point_is_said_once_and_the_others_go_on(distribution, gated: Path) -> None:
    distribution("broken", "layers = broken_layers", broken_layers="raise KeyError('no file')")
    distribution("gone", "layers = no_such_module")
    with pytest.warns(UserWarning, match="names") as said:
        assert wrong_versions("Gated")
    assert sorted(str(each.message) for each in said) == [
        "the distribution broken names broken_layers for its layers, which cannot be used: "
        "KeyError: 'no file'",
        "the distribution gone names no_such_module for its layers, which cannot be used: "
        "ModuleNotFoundError: No module named 'no_such_module'",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wrong_versions("Gated")


@pytest.mark.parametrize(
    ("point", "module", "error"),
    [
        (
            "layers = some_layers",
            A_LAYER.format(name="gelu", right="right=abs"),
            "ValueError: there is a layer 'gelu' already: give it another name",
        ),
        (
            "layers = some_layers",
            A_LAYER.format(name="halved", right=""),
            "ValueError: the layer 'halved' does not tell its right version: give right=",
        ),
        (
            "layers = some_layers",
            "x = 1",
            "ValueError: it declares no layer_checks.kit.definitions.Layer",
        ),
    ],
)
def test_what_cannot_be_registered_is_refused(distribution, point, module, error) -> None:
    distribution("some", point, some_layers=module)
    before = dict(registry.LAYERS)
    with pytest.warns(UserWarning, match="the distribution some names some_layers") as said:
        registry.layers()
    assert str(said[0].message).endswith(f"which cannot be used: {error}")
    assert before == registry.LAYERS


def test_a_name_that_is_taken_does_not_keep_out_another(distribution) -> None:
    both = A_LAYER.format(name="gelu", right="right=abs") + A_LAYER.format(
        name="magnitude", right="right=abs"
    )
    distribution("some", "layers = some_layers", some_layers=both)
    with pytest.warns(UserWarning, match="there is a layer 'gelu' already"):
        assert registry.right_version("magnitude") is abs
    assert registry.right_version("gelu") is not abs
