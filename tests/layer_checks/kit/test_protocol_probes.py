"""The probes of how a layer gets on with torch: what they see, and what they leave alone."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from layer_checks.evidence.evidence import Evidence
from layer_checks.kit import protocol_probes
from layer_checks.kit.definitions import Candidate
from layer_checks.kit.probes import PROBES
from layer_checks.registry import LAYERS
from transformer_layers import (
    Conv1D,
    LayerNorm,
    gelu,
)

HERE = {name for name, each in PROBES.items() if each.run.__module__ == protocol_probes.__name__}


def run(name: str, layer: str, candidate: Candidate) -> Evidence:
    """Runs one probe on a candidate."""
    (probe,) = (each for each in LAYERS[layer].checks if each.name == name and each.generic)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return probe.run(candidate)


def test_every_layer_is_asked_what_it_can_be_asked() -> None:
    asked = {
        name: {each.name for each in layer.checks if each.generic} & HERE
        for name, layer in LAYERS.items()
    }
    of_functions = {"input of another layer", "gradient of the gradient", "zeros"}
    of_functions |= {"mapped over an axis", "autocast"}
    assert asked["MultiHeadAttention"] == HERE - {"zeros", "fewer and more axes"}
    assert asked["LayerNorm"] == HERE - {"zeros", "one tensor for several", "parts called"}
    assert asked["CausalSelfAttention"] == HERE - {"zeros", "one tensor for several", "moved"}
    assert asked["gelu"] == of_functions | {"fewer and more axes"}
    assert "fewer and more axes" not in asked["BatchNorm1d"]  # whose second axis are the features
    assert asked["attention_weights"] == of_functions | {"one tensor for several"}
    assert asked["l1_penalty"] == {
        "input of another layer",
        "one tensor for several",
        "gradient of the gradient",
    }
    # Its input is whole numbers; it knows the device of what it makes.
    assert asked["GPT2"] == {
        "mapped over an axis",
        "autocast",
        "parts called",
        "weights put in place",
        "pickled",
        "parameters kept",
    }
    assert asked["smoothed_cross_entropy"] == {"input of another layer", "gradient of the gradient"}
    assert asked["padding_mask"] == asked["causal_mask"] == set()


class _Once(torch.autograd.Function):
    """GELU, which refuses to be differentiated twice."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return gelu(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        cumulative = 0.5 * (1 + torch.erf(x / 2**0.5))
        density = torch.exp(-0.5 * x.square()) / (2 * torch.pi) ** 0.5
        return gradient * (cumulative + x * density)


def test_a_layer_may_refuse_to_be_differentiated_twice() -> None:
    evidence = run("gradient of the gradient", "gelu", lambda x: _Once.apply(x))
    assert evidence.text == "holds: it refuses to be differentiated twice"


def test_the_parts_of_torchs_modules_are_torchs() -> None:
    class Wrapped(nn.Module):
        """Holds `nn.MultiheadAttention`, which uses the weight of its `out_proj` by itself."""

        def __init__(self, d_model: int, num_heads: int, **_: Any) -> None:
            super().__init__()
            self.inner = nn.MultiheadAttention(d_model, num_heads, batch_first=True)

        def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Tensor:
            return self.inner(query, key, value)[0]

    evidence = run("parts called", "MultiHeadAttention", Wrapped)
    assert evidence.text == "holds: 1 parts are called"


def test_a_class_may_be_defined_anywhere_and_what_it_holds_must_be_picklable() -> None:
    class Local(LayerNorm):
        """As it is."""

    class Locked(LayerNorm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.lock = threading.Lock()

    run("pickled", "LayerNorm", Local)
    with pytest.raises(AssertionError, match=r"^not equal: cannot pickle .*lock"):
        run("pickled", "LayerNorm", Locked)


def test_what_torch_itself_does_not_pickle_is_left_to_torch() -> None:
    class Normed(Conv1D):
        def __init__(self, in_features: int, out_features: int) -> None:
            super().__init__(in_features, out_features)
            nn.utils.parametrizations.weight_norm(self)

    evidence = run("pickled", "Conv1D", Normed)
    assert evidence.text == "holds: torch itself pickles no parametrized module"


def _holding(change: Callable[[Tensor, Tensor], Tensor]) -> Candidate:
    class Holding(LayerNorm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.tables = {"ones": torch.ones(1)}

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(change(x, self.tables["ones"]))

    return Holding


def test_a_tensor_that_is_moved_in_each_call_is_not_left_behind() -> None:
    run("moved", "LayerNorm", _holding(lambda x, ones: x * ones.to(x)))
    with pytest.raises(AssertionError, match=r"^not equal: .*device"):
        run("moved", "LayerNorm", _holding(lambda x, ones: x * ones))
