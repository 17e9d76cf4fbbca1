"""The probes that are written once for all layers, and the mistakes that they are for."""

import functools
import random

import pytest
import torch
from torch import Tensor, nn

from layer_checks import check
from layer_checks.evidence.evidence import Evidence
from layer_checks.kit import probes
from layer_checks.kit.definitions import Candidate
from layer_checks.kit.probes import PROBES, Probing
from layer_checks.registry import LAYERS
from transformer_layers import (
    BatchNorm1d,
    LayerNorm,
    causal_mask,
    padding_mask,
)


def run(name: str, layer: str, candidate: Candidate) -> Evidence:
    """Runs one probe on a candidate."""
    (probe,) = (each for each in LAYERS[layer].checks if each.name == name and each.generic)
    return probe.run(candidate)


# Those of other modules are asked about in tests of their own.
HERE = {name for name, each in PROBES.items() if each.run.__module__ == probes.__name__}


def test_every_layer_is_asked_what_it_can_be_asked() -> None:
    asked = {
        name: {each.name for each in layer.checks if each.generic} & HERE
        for name, layer in LAYERS.items()
    }
    assert asked["CausalSelfAttention"] == HERE
    assert asked["MultiHeadAttention"] == HERE - {"values left out", "device"}
    assert asked["LayerNorm"] == HERE - {"draws of torch", "values left out", "device"}
    assert asked["causal_mask"] == {"called again", "large sizes", "values left out", "device"}
    assert "input without gradient" not in asked["GPT2"]  # whose input is whole numbers
    assert not asked["Dropout"] & {"input without gradient", "gradients in evaluation"}
    assert "reset" not in asked["Dropout"]  # which starts from nothing
    assert asked["l1_penalty"] == {
        "input unchanged",
        "layout in memory",
        "sizes of values",
        "device",
    }
    assert all(asked.values())


def test_generic_ones_come_last() -> None:
    for layer in LAYERS.values():
        for declared in (layer.checks, layer.wrong_versions):
            generic = [each.generic for each in declared]
            assert generic == sorted(generic)


def test_a_graph_is_found_in_attributes_and_elsewhere() -> None:
    held: list[Tensor] = []

    class InAnAttribute(BatchNorm1d):
        def forward(self, x: Tensor) -> Tensor:
            self.mean = x.mean()
            return super().forward(x)

    class Elsewhere(LayerNorm):
        def forward(self, x: Tensor) -> Tensor:
            held.append(super().forward(x))
            return held[-1]

    with pytest.raises(AssertionError, match=r"^not equal: mean keeps the graph of a past call$"):
        run("no graph kept", "BatchNorm1d", InAnAttribute)
    with pytest.raises(AssertionError, match=r"^not equal: something keeps the graph"):
        run("no graph kept", "LayerNorm", Elsewhere)


def test_pythons_generator_is_none_of_torchs() -> None:
    class Noisy(nn.Dropout):
        def forward(self, x: Tensor) -> Tensor:
            return x * random.random() if self.training else x

    state = random.getstate()
    with pytest.raises(AssertionError, match=r"^not equal: draw 0 with the same seed of torch$"):
        run("draws of torch", "Dropout", Noisy)
    assert random.getstate() == state


def test_numpys_generator_is_left_as_it_was() -> None:
    import numpy as np

    before = np.random.get_state()[1].tolist()
    run("draws of torch", "Dropout", nn.Dropout)
    assert np.random.get_state()[1].tolist() == before


def test_a_layer_that_is_told_little_of_is_asked_little() -> None:
    asked = Probing(
        pair=lambda candidate: (candidate, candidate),
        inputs=lambda batch, seq: (padding_mask(torch.arange(batch), seq),),
        scales=(),
        half=False,
        batched=False,
    )
    needed = [name for name, each in PROBES.items() if each.needs(LAYERS["gelu"], asked)]
    assert [name for name in needed if name in HERE] == ["input unchanged", "layout in memory"]


def test_a_right_layer_with_other_habits_passes() -> None:
    class KeepsWeights(LayerNorm):
        """Keeps something without its graph."""

        def forward(self, x: Tensor) -> Tensor:
            self.last = super().forward(x).detach()
            return super().forward(x)

    assert check("LayerNorm", KeepsWeights)


def test_devices_that_are_mixed_or_left_are_seen_and_what_has_no_values_is_not() -> None:
    def mixed(lengths: Tensor, seq: int) -> Tensor:
        return torch.arange(seq) < lengths[:, None, None]

    def left(lengths: Tensor, seq: int) -> Tensor:
        return torch.ones(len(lengths), 1, seq, dtype=torch.bool, device="cpu")

    def looks_at_values(lengths: Tensor, seq: int) -> Tensor:
        return torch.stack([torch.arange(seq) < int(length) for length in lengths])[:, None]

    with pytest.raises(AssertionError, match=r"^not equal: Tensor on device .* expected device"):
        run("device", "padding_mask", mixed)
    with pytest.raises(AssertionError, match=r"^not equal: on the device cpu against on the"):
        run("device", "padding_mask", left)
    with pytest.raises(AssertionError, match=r"^not equal: on the device cpu against on the"):
        run("device", "causal_mask", lambda seq: torch.ones(seq, seq, device="cpu").tril())
    evidence = run("device", "padding_mask", looks_at_values)
    assert evidence.text == "holds: it does not run on the meta device"


def test_what_a_function_keeps_is_found_each_time_that_it_is_asked() -> None:
    @functools.cache
    def stored(seq: int, past: int) -> Tensor:
        return causal_mask(seq, past)

    def mask(seq: int, past: int = 0, *, device: torch.device | str | None = None) -> Tensor:
        return stored(seq, past).to(device)

    reports = [check("causal_mask", mask) for _ in range(2)]
    assert [[each.name for each in report.law if not each.held] for report in reports] == [
        ["called again"],
        ["called again"],
    ]
