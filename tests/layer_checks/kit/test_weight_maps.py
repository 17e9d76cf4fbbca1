"""The maps of weights: round trips, and equal outputs on both sides."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from layer_checks import equivalent
from layer_checks.kit.candidates import randomized
from layer_checks.kit.weight_maps import COUNTERPARTS, to_ours, to_theirs
from transformer_layers import (
    GPT2,
    BatchNorm1d,
    CausalSelfAttention,
    Conv1D,
    FeedForward,
    GPT2Block,
    GPT2Config,
    LayerNorm,
    MultiHeadAttention,
    PreNormTransformerDecoderLayer,
    PreNormTransformerEncoderLayer,
    RMSNorm,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


_WITH_A_BLOCK = ("GPT2Block", "GPT2Model", "GPT2LMHeadModel")


def _our_gpt2() -> nn.Module:
    return GPT2(GPT2Config(10, n_positions=5, n_embd=6, n_layer=2, n_head=2)).eval()


def _gpt2(part: str) -> Callable[[], nn.Module]:
    """A part of transformers' GPT-2, which takes seconds to import."""

    def make() -> nn.Module:
        from transformers import GPT2Config
        from transformers.models.gpt2 import modeling_gpt2

        config = GPT2Config(
            vocab_size=10,
            n_positions=5,
            n_embd=6,
            n_layer=2,
            n_head=2,
            n_inner=24 if part in _WITH_A_BLOCK else 8,
            attn_implementation="eager",
            bos_token_id=None,
            eos_token_id=None,
        )
        if part == "GPT2MLP":
            return modeling_gpt2.GPT2MLP(8, config)
        if part == "Conv1D":
            return modeling_gpt2.Conv1D(5, 6)
        if part == "GPT2Block":
            return modeling_gpt2.GPT2Block(config, layer_idx=0).eval()
        if part in _WITH_A_BLOCK:
            return getattr(modeling_gpt2, part)(config).eval()
        return modeling_gpt2.GPT2Attention(config, layer_idx=0)

    return make


def _self_attention(layer: nn.Module, x: Tensor) -> Tensor:
    return layer(x, x, x)


def _pytorch_attention(layer: nn.Module, x: Tensor) -> Tensor:
    return layer(x, x, x, need_weights=False)[0]


def _called(layer: nn.Module, x: Tensor) -> Tensor:
    return layer(x)


def _decoded(layer: nn.Module, x: Tensor) -> Tensor:
    return layer(x, 2 * x[:, :3].flip(1))


def _tokens(x: Tensor) -> Tensor:
    return (10 * x[..., 0].sigmoid()).long()


def _our_states(layer: Any, x: Tensor) -> Tensor:
    return layer.last_hidden_state(_tokens(x))


def _their_states(layer: nn.Module, x: Tensor) -> Tensor:
    return layer(_tokens(x)).last_hidden_state


def _our_logits(layer: nn.Module, x: Tensor) -> Tensor:
    return layer(_tokens(x))


def _their_logits(layer: nn.Module, x: Tensor) -> Tensor:
    return layer(_tokens(x)).logits


def _gpt2_block(layer: nn.Module, x: Tensor) -> Tensor:
    return layer(x, attention_mask=_added_mask(x))


def _gpt2_attention(layer: nn.Module, x: Tensor) -> Tensor:
    return layer(x, attention_mask=_added_mask(x))[0]


def _added_mask(x: Tensor) -> Tensor:
    mask = torch.zeros(1, 1, x.shape[1], x.shape[1], dtype=x.dtype)
    blocked = torch.ones_like(mask, dtype=torch.bool).triu(1)
    return mask.masked_fill(blocked, -torch.inf)


Call = Callable[[nn.Module, Tensor], Tensor]

PAIRS: dict[str, tuple[str, Callable[[], nn.Module], Callable[[], nn.Module], Call, Call]] = {
    "LayerNorm": (
        "nn.LayerNorm",
        lambda: LayerNorm(6),
        lambda: nn.LayerNorm(6),
        _called,
        _called,
    ),
    "LayerNorm without bias": (
        "nn.LayerNorm",
        lambda: LayerNorm(6, bias=False),
        lambda: nn.LayerNorm(6, bias=False),
        _called,
        _called,
    ),
    "RMSNorm": (
        "nn.RMSNorm",
        lambda: RMSNorm(6),
        lambda: nn.RMSNorm(6, eps=1e-6),
        _called,
        _called,
    ),
    "BatchNorm1d": (
        "nn.BatchNorm1d",
        lambda: BatchNorm1d(4).eval(),
        lambda: nn.BatchNorm1d(4).eval(),
        _called,
        _called,
    ),
    "Conv1D as Linear": (
        "nn.Linear",
        lambda: Conv1D(6, 5),
        lambda: nn.Linear(6, 5),
        _called,
        _called,
    ),
    "MultiHeadAttention": (
        "nn.MultiheadAttention",
        lambda: MultiHeadAttention(6, 2),
        lambda: nn.MultiheadAttention(6, 2, batch_first=True),
        _self_attention,
        _pytorch_attention,
    ),
    "MultiHeadAttention without bias": (
        "nn.MultiheadAttention",
        lambda: MultiHeadAttention(6, 2, bias=False),
        lambda: nn.MultiheadAttention(6, 2, bias=False, batch_first=True),
        _self_attention,
        _pytorch_attention,
    ),
    "TransformerEncoderLayer": (
        "nn.TransformerEncoderLayer",
        lambda: TransformerEncoderLayer(6, 2, 7, dropout=0.0),
        lambda: nn.TransformerEncoderLayer(6, 2, 7, dropout=0.0, batch_first=True),
        _called,
        _called,
    ),
    "PreNormTransformerEncoderLayer": (
        "nn.TransformerEncoderLayer",
        lambda: PreNormTransformerEncoderLayer(6, 2, 7, dropout=0.0),
        lambda: nn.TransformerEncoderLayer(6, 2, 7, dropout=0.0, batch_first=True, norm_first=True),
        _called,
        _called,
    ),
    "TransformerDecoderLayer": (
        "nn.TransformerDecoderLayer",
        lambda: TransformerDecoderLayer(6, 2, 7, dropout=0.0),
        lambda: nn.TransformerDecoderLayer(6, 2, 7, dropout=0.0, batch_first=True),
        _decoded,
        _decoded,
    ),
    "PreNormTransformerDecoderLayer": (
        "nn.TransformerDecoderLayer",
        lambda: PreNormTransformerDecoderLayer(6, 2, 7, dropout=0.0),
        lambda: nn.TransformerDecoderLayer(6, 2, 7, dropout=0.0, batch_first=True, norm_first=True),
        _decoded,
        _decoded,
    ),
    "Conv1D": (
        "transformers.Conv1D",
        lambda: Conv1D(6, 5),
        _gpt2("Conv1D"),
        _called,
        _called,
    ),
    "CausalSelfAttention": (
        "transformers.GPT2Attention",
        lambda: CausalSelfAttention(6, 2).eval(),
        lambda: _gpt2("GPT2Attention")().eval(),
        _called,
        _gpt2_attention,
    ),
    "FeedForward": (
        "transformers.GPT2MLP",
        lambda: FeedForward(6, 8).eval(),
        lambda: _gpt2("GPT2MLP")().eval(),
        _called,
        _called,
    ),
    "GPT2Block": (
        "transformers.GPT2Block",
        lambda: GPT2Block(6, 2).eval(),
        _gpt2("GPT2Block"),
        _called,
        _gpt2_block,
    ),
    "GPT2 without its head": (
        "transformers.GPT2Model",
        _our_gpt2,
        _gpt2("GPT2Model"),
        _our_states,
        _their_states,
    ),
    "GPT2": (
        "transformers.GPT2LMHeadModel",
        _our_gpt2,
        _gpt2("GPT2LMHeadModel"),
        _our_logits,
        _their_logits,
    ),
}


def test_every_counterpart_is_tested() -> None:
    assert {pair[0] for pair in PAIRS.values()} == set(COUNTERPARTS)


@pytest.mark.parametrize("pair", PAIRS)
def test_both_sides_compute_the_same_with_mapped_weights(pair: str) -> None:
    counterpart, make_ours, make_theirs, call_ours, call_theirs = PAIRS[pair]
    x = torch.randn(3, 4, 6, dtype=torch.float64)
    ours, theirs = make_ours().double(), randomized(make_theirs().double())
    ours.load_state_dict(to_ours(counterpart, theirs.state_dict()))
    equivalent(call_ours(ours, x), call_theirs(theirs, x), atol=1e-12)
    theirs.load_state_dict(to_theirs(counterpart, randomized(ours).state_dict()))
    equivalent(call_theirs(theirs, x), call_ours(ours, x), atol=1e-12)


def test_an_unknown_counterpart_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        ValueError, match=r"no counterpart 'nn.GRU'; there are nn.LayerNorm, nn.RMSN"
    ):
        to_ours("nn.GRU", {})


@pytest.mark.parametrize(
    ("counterpart", "weights", "message"),
    [
        (
            "nn.MultiheadAttention",
            {"in_proj_weight": 1, "bias_k": 2},
            r"missing \['out_proj.weight'\], unknown \['bias_k'\]",
        ),
        (
            "transformers.GPT2Model",
            {"wte.weight": 1, "ln_f.weight": 1, "ln_f.bias": 1, "h.0.ln_3.weight": 1},
            r"missing \['h.0.attn.c_attn.bias', .*'wpe.weight'\], unknown \['h.0.ln_3.weight'\]",
        ),
        (
            "transformers.GPT2LMHeadModel",
            {"lm_head.weight": 1, "wte.weight": 1},
            r"missing \['transformer.h.0.attn.c_attn.bias', .*\], unknown \['wte.weight'\]",
        ),
    ],
)
def test_weights_that_do_not_fit_are_named(
    counterpart: str, weights: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        to_ours(counterpart, weights)
    with pytest.raises(ValueError, match="these weights do not fit: missing"):
        to_theirs(counterpart, {**weights, "other": torch.ones(2)})


def test_a_head_of_its_own_is_refused() -> None:
    weights = to_theirs("transformers.GPT2LMHeadModel", _our_gpt2().state_dict())
    weights["lm_head.weight"] = weights["lm_head.weight"] + 1
    with pytest.raises(ValueError, match=r"lm_head\.weight differs from wte\.weight: our head is"):
        to_ours("transformers.GPT2LMHeadModel", weights)
    del weights["lm_head.weight"]  # as in a file that stores tied weights once
    _assert_same(to_ours("transformers.GPT2LMHeadModel", weights), _our_gpt2_weights(weights))


def _our_gpt2_weights(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix("transformer."): weight for name, weight in weights.items()}


def _assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert set(found) == set(expected)
    for name, weight in expected.items():
        assert torch.equal(found[name], weight), name
