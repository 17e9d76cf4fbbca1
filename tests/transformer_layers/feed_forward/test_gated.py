"""Gated feed-forward layers: against two authorities, by their laws, and their errors."""

import pytest
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaMLP

from tests.transformer_layers.comparisons import (
    assert_same,
    values_and_gradients,
    with_random_weights,
)
from transformer_layers import GatedFeedForward, PackedGatedFeedForward


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("bias", [False, True])
def test_values_and_gradients_equal_those_of_llama_in_transformers(bias):
    ours = with_random_weights(GatedFeedForward(32, 10, bias=bias)).double()
    theirs = LlamaMLP(LlamaConfig(hidden_size=32, intermediate_size=10, mlp_bias=bias)).double()
    theirs.load_state_dict(ours.state_dict())
    x = random(2, 3, 32)
    found = values_and_gradients(ours, [x], list(ours.parameters()))
    assert_same(found, values_and_gradients(theirs, [x], list(theirs.parameters())))


def test_packed_weights_compute_the_same():
    activation = torch.relu
    apart = with_random_weights(GatedFeedForward(4, 6, activation, bias=True)).double()
    packed = PackedGatedFeedForward(4, 6, activation, bias=True).double()
    gate, up = apart.gate_proj, apart.up_proj
    packed.load_state_dict(
        {
            "gate_up_proj.weight": torch.cat([gate.weight, up.weight]),
            "gate_up_proj.bias": torch.cat([gate.bias, up.bias]),
            "down_proj.weight": apart.down_proj.weight,
            "down_proj.bias": apart.down_proj.bias,
        }
    )
    x = random(3, 4)
    assert_same([packed(x)], [apart(x)])


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("kind", [GatedFeedForward, PackedGatedFeedForward])
def test_what_it_cannot_map_is_refused(kind):
    with pytest.raises(ValueError, match="d_ff must be at least 1, got 0"):
        kind(4, 0)
    with pytest.raises(TypeError, match=r"^activation must be a function .*; got 'silu' of type"):
        kind(4, 6, "silu")
    with pytest.raises(ValueError, match="x must have a last axis of d_model = 4, got"):
        kind(4, 6)(torch.ones(2, 3))
    with pytest.raises(TypeError, match=r"x is torch\.float64 but the layer's parameters are"):
        kind(4, 6)(torch.ones(2, 4).double())
