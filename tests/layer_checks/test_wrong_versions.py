"""The checks are checked: each catches something, together they catch all, and nothing else."""

import os
from collections.abc import Iterable

import pytest
from torch import nn

from layer_checks import check, detection_table, wrong_version, wrong_versions
from layer_checks.diagnosis import diagnosis, kept_results
from layer_checks.diagnosis.mistake_matching import _alike
from layer_checks.kit.definitions import Check, WrongVersion
from layer_checks.kit.mistakes import probe_for
from layer_checks.registry import LAYERS, right_version

pytestmark = pytest.mark.usefixtures("run_once")
Version = tuple[str, WrongVersion]


@pytest.fixture
def run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a check that is run again on the same version with the same seed give what it gave."""
    monkeypatch.setattr(diagnosis, "run", kept_results.run)


def grouped(layer: str, *more: object, name: str = "", nightly: bool = False) -> object:
    """A case that runs in the process that already knows how the layer's mistakes behave."""
    marks = [pytest.mark.xdist_group(f"mistakes of {layer}")]
    marks += [pytest.mark.nightly] * nightly
    return pytest.param(layer, *more, id=name or layer, marks=marks)


EACH_LAYER = [grouped(layer) for layer in LAYERS]
OWN = [
    (layer, version) for layer in LAYERS for version in wrong_versions(layer) if not version.generic
]
GENERIC = [
    (layer, version) for layer in LAYERS for version in wrong_versions(layer) if version.generic
]
# What any layer can get wrong is made alike in all functions, and alike in all modules: the first
# of each kind are enough in every run.
FIRST = {
    (version.name, isinstance(right_version(layer), type)): (layer, version)
    for layer, version in reversed(GENERIC)
}
NAMED = {version.name: (layer, version) for layer, version in FIRST.values()}
# Of random weights and inputs. The nightly run has 200, which take an hour.
SEEDS = int(os.environ.get("SEEDS", "1"))


def cases(pairs: Iterable[Version], *, often: Iterable[Version] | None = None) -> list[object]:
    """A case of each version; only in the nightly run, of those that need not be asked often."""
    pairs = list(pairs)
    here = pairs if often is None else list(often)
    return [
        grouped(*each, name=f"{each[0]}-{each[1].name}", nightly=each not in here) for each in pairs
    ]


def caught(one: Check, version: WrongVersion) -> bool:
    """Whether a check fails for a wrong version, with the seed of the tables."""
    return not kept_results.run(one, version.layer).held


def told_by_values(layer: str, version: WrongVersion) -> bool:
    """Whether no other version, and not the right one, computes the same on the probe."""
    known = LAYERS[layer]
    found = kept_results.fingerprint(known, version.layer)
    others = [each.layer for each in wrong_versions(layer) if each is not version]
    others.append(right_version(layer))
    return not any(_alike(kept_results.fingerprint(known, each), found) for each in others)


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


@pytest.mark.parametrize(("layer", "version"), cases([*OWN, *NAMED.values()]))
def test_every_wrong_version_is_caught_and_told_from_the_others(
    layer: str, version: WrongVersion
) -> None:
    """By the values that it alone has, or else by its report; the nightly run has all reports."""
    if told_by_values(layer, version):
        checks = LAYERS[layer].checks
        assert any(caught(each, version) for each in checks if not each.weak)
    else:
        test_every_wrong_version_is_named(layer, version)


FIRST_OF_EACH = list({layer: (layer, version) for layer, version in reversed(OWN)}.values())


@pytest.mark.parametrize(("layer", "version"), cases([*OWN, *FIRST.values()], often=FIRST_OF_EACH))
def test_every_wrong_version_is_named(layer: str, version: WrongVersion) -> None:
    report = check(layer, version.layer)
    assert report.failed
    assert report.behaves_like is version, report


@pytest.mark.parametrize(("layer", "version"), cases(GENERIC, often=FIRST.values()))
def test_what_any_layer_can_get_wrong_is_caught_by_the_probe_for_it(
    layer: str, version: WrongVersion
) -> None:
    (probe,) = (each for each in LAYERS[layer].checks if each.name == probe_for(version))
    assert caught(probe, version)


@pytest.mark.parametrize("layer", EACH_LAYER)
def test_every_check_catches_something(layer: str) -> None:
    versions = wrong_versions(layer)
    probes = {probe_for(version) for version in versions if version.generic}
    for each in LAYERS[layer].checks:
        if not each.weak and each.name not in probes:
            assert any(caught(each, version) for version in versions), each.name


@pytest.mark.parametrize("layer", EACH_LAYER)
def test_weak_checks_are_weak(layer: str) -> None:
    for each in LAYERS[layer].checks:
        own = [version for version in wrong_versions(layer) if not version.generic]
        assert not each.weak or not all(caught(each, version) for version in own), each.name


@pytest.mark.parametrize("layer", EACH_LAYER)
def test_names_are_unique_and_sentences_end(layer: str) -> None:
    known = LAYERS[layer]
    for named in (known.checks, known.wrong_versions):
        names = [each.name for each in named]
        assert len(set(names)) == len(names)
    assert all(each.law.endswith(".") for each in known.checks)
    assert all(version.advice.endswith(".") for version in known.wrong_versions)
    assert all(version.layer.__doc__ for version in known.wrong_versions)


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
