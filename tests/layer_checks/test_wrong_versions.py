"""The checks are checked: each catches something, together they catch all, and nothing else."""

import os
from functools import cache

import pytest
from torch import nn

from layer_checks import (
    DetectionTable,
    Report,
    check,
    detection_table,
    wrong_version,
    wrong_versions,
)
from layer_checks.detection import table
from layer_checks.diagnosis import diagnosis, mistake_matching
from layer_checks.diagnosis.running import Result, run
from layer_checks.evidence.comparison import _in_single
from layer_checks.kit.candidates import _match, _witness
from layer_checks.kit.definitions import Candidate, Check, WrongVersion
from layer_checks.kit.mistakes import probe_for
from layer_checks.registry import LAYERS, right_version

pytestmark = pytest.mark.usefixtures("as_users_run_it", "run_once")
_run_once = cache(run)


@pytest.fixture
def run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a check that is run again on the same version with the same seed give what it gave."""

    def kept(one: Check, candidate: Candidate, seed: int = 0) -> Result:
        otherwise = any(context.get() for context in (_match, _witness, _in_single))
        return (run if otherwise else _run_once)(one, candidate, seed)

    for module in (table, diagnosis, mistake_matching):
        monkeypatch.setattr(module, "run", kept)


def grouped(layer: str, *more: object, name: str = "") -> object:
    """A case that runs in the process that already knows how the layer's mistakes behave."""
    group = pytest.mark.xdist_group(f"mistakes of {layer}")
    return pytest.param(layer, *more, id=name or layer, marks=group)


EACH_LAYER = [grouped(layer) for layer in LAYERS]
VERSIONS = [
    grouped(layer, version, name=f"{layer}-{version.name}")
    for layer in LAYERS
    for version in wrong_versions(layer)
]
OWN = [case for case in VERSIONS if not case.values[1].generic]
GENERIC = [case for case in VERSIONS if case.values[1].generic]
# What any layer can get wrong is made alike in all functions, and alike in all modules: it is named
# on the first of each.
FIRST = {
    (case.values[1].name, isinstance(right_version(case.values[0]), type)): case
    for case in reversed(GENERIC)
}
# Of random weights and inputs. The nightly run has 200, which take an hour.
SEEDS = int(os.environ.get("SEEDS", "1"))


@cache
def report_of(layer: str, version: WrongVersion) -> Report:
    """What `check` says of a wrong version, with the seed of the tables."""
    return check(layer, version.layer)


@cache
def table_of(layer: str) -> DetectionTable:
    """The table that the book shows of a layer, with the results of the reports."""
    for version in wrong_versions(layer):
        if not version.generic:
            report_of(layer, version)
    return detection_table(layer)


@pytest.mark.parametrize("layer", EACH_LAYER)
def test_the_right_layer_is_never_flagged(layer: str) -> None:
    for seed in range(SEEDS):
        report = check(layer, right_version(layer), seed)
        assert not report.failed, f"seed {seed}\n{report}"


@pytest.mark.parametrize(
    "layer", [grouped(name) for name, known in LAYERS.items() if known.right_ones]
)
def test_what_wrong_versions_derive_from_is_right(layer: str) -> None:
    for right in LAYERS[layer].right_ones:
        for seed in range(SEEDS):
            report = check(layer, right, seed)
            assert not report.failed, f"{right.__name__}, seed {seed}\n{report}"


def test_a_wrong_version_derives_from_a_right_or_a_wrong_one() -> None:
    versions = [one.layer for each in LAYERS.values() for one in each.wrong_versions]
    known = {one for each in LAYERS.values() for one in each.right_ones}
    known |= {right_version(each) for each in LAYERS} | {nn.Module, *versions}
    for version in versions:
        if isinstance(version, type):
            undeclared = [base.__name__ for base in version.__bases__ if base not in known]
            assert undeclared == [], f"declare with right_otherwise in {version.__module__}"


@pytest.mark.parametrize(("layer", "version"), [*OWN, *FIRST.values()])
def test_every_wrong_version_is_caught_and_named(layer: str, version: WrongVersion) -> None:
    report = report_of(layer, version)
    assert report.failed
    assert report.behaves_like is version, report


@pytest.mark.parametrize("layer", EACH_LAYER)
def test_what_any_layer_can_get_wrong_is_caught_by_the_probe_for_it(layer: str) -> None:
    probes = {each.name: each for each in LAYERS[layer].checks}
    for version in wrong_versions(layer):
        if version.generic:
            assert not _run_once(probes[probe_for(version)], version.layer).held, version.name


@pytest.mark.parametrize("layer", EACH_LAYER)
def test_every_check_catches_something(layer: str) -> None:
    table = table_of(layer)
    assert table.not_caught == ()
    generic = [version for version in wrong_versions(layer) if version.generic]
    probes = {probe_for(version) for version in generic}
    for each in LAYERS[layer].checks:
        if each.weak or each.name in probes or table.totals.get(each.name):
            continue
        assert any(not _run_once(each, version.layer).held for version in generic), each.name


@pytest.mark.parametrize("layer", EACH_LAYER)
def test_weak_checks_are_weak(layer: str) -> None:
    table = table_of(layer)
    for each in table.checks:
        assert not each.weak or table.totals[each.name] < len(table.wrong_versions)


@pytest.mark.parametrize("layer", EACH_LAYER)
def test_names_are_unique_and_sentences_end(layer: str) -> None:
    known = LAYERS[layer]
    for named in (known.checks, known.wrong_versions):
        names = [each.name for each in named]
        assert len(set(names)) == len(names)
    assert all(each.law.endswith(".") for each in known.checks)
    assert all(version.advice.endswith(".") for version in known.wrong_versions)
    assert all(version.layer.__doc__ for version in known.wrong_versions)


def test_what_the_popular_checks_of_layer_norm_catch() -> None:
    nine = {
        "variance not biased",
        "eps outside the root",
        "no eps",
        "E[x²] - E[x]²",
        "wrong axis",
        "variance detached",
        "no gain",
        "no bias",
        "bias before the gain",
    }
    table = table_of("LayerNorm")
    rows = [
        row
        for version, row in zip(table.wrong_versions, table.caught, strict=True)
        if version.name in nine
    ]
    assert len(rows) == 9
    weak = [sum(row[column] for row in rows) for column in range(4)]
    assert weak == [0, 1, 1, 2]
    assert sum(any(row[4:]) for row in rows) == 9


def test_a_wrong_version_is_found_by_its_name() -> None:
    assert wrong_version("gelu", "ReLU") is wrong_versions("gelu")[2]
    assert repr(wrong_version("gelu", "ReLU")) == (
        "ReLU - multiply x by Φ(x), not by the step function."
    )
    with pytest.raises(
        ValueError, match="no wrong version 'GELU' of gelu; there are: tanh form, s"
    ):
        wrong_version("gelu", "GELU")


def test_an_unknown_layer_is_refused_with_those_there_are() -> None:
    for function in (wrong_versions, detection_table, right_version):
        with pytest.raises(
            ValueError, match="no layer 'Gelu'; there are checks for gelu, gelu_tanh, a"
        ):
            function("Gelu")
    with pytest.raises(ValueError, match="no layer 'Gelu'"):
        check("Gelu", print)
