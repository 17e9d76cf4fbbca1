"""Each right layer of our own equals the book's, with the same weights and without `check`."""

import os
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import transformer_layers as book
from evaluation.right_layers import __main__ as right_layers
from evaluation.right_layers.__main__ import chosen, judged, line, totals
from evaluation.right_layers.definitions import OWN, RIGHT, RightLayer, declared

Pairs = list[tuple[Tensor, Tensor]]

# For each of our own right layers, what it gives and what the book gives.
COMPARED: dict[str, Callable[[Any], Pairs]] = {}


def compared(*names: str) -> Callable[[Callable[[Any], Pairs]], Callable[[Any], Pairs]]:
    def add(compare: Callable[[Any], Pairs]) -> Callable[[Any], Pairs]:
        COMPARED.update(dict.fromkeys((f"own.{name}" for name in names), compare))
        return compare

    return add


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def filled(module: nn.Module) -> nn.Module:
    """The book's module in float64, with weights that are drawn, norms and biases too."""
    module.double()
    for parameter in module.parameters():
        nn.init.normal_(parameter, mean=0.3)
    return module


def loaded(module: Any, weights: dict[str, Tensor]) -> Any:
    """A candidate that has these weights, and no others."""
    module.double()
    parameters = dict(module.named_parameters())
    assert parameters.keys() == weights.keys()
    with torch.no_grad():
        for name, value in weights.items():
            parameters[name].copy_(value.reshape(parameters[name].shape))
    return module


def same(theirs: Any, ours: Any, *inputs: Any, **named: Any) -> Pairs:
    """Results in evaluation, in training without dropout, and gradients of the inputs."""
    pairs = []
    for training in (False, True):
        theirs.train(training), ours.train(training)
        results = []
        for module in (theirs, ours):
            copies = [_leaf(each) for each in inputs]
            result = module(*copies)
            result = result[0] if isinstance(result, tuple) else result
            leaves = [each for each in copies if isinstance(each, Tensor) and each.requires_grad]
            cotangent = torch.linspace(-1, 2, result.numel(), dtype=result.dtype)
            (result * cotangent.view_as(result)).sum().backward()
            results.append([result, *(each.grad for each in leaves)])
        pairs += zip(*results, strict=True)
    return pairs


def _leaf(value: Any) -> Any:
    if isinstance(value, Tensor) and value.is_floating_point():
        return value.detach().clone().requires_grad_()
    return value


def linear(name: str, weight: Tensor, bias: Tensor | None = None) -> dict[str, Tensor]:
    return {f"{name}.weight": weight} | ({} if bias is None else {f"{name}.bias": bias})


def of_linear(name: str, module: nn.Module) -> dict[str, Tensor]:
    return {f"{name}.{key}": value for key, value in module.named_parameters()}


# Activations.


@compared("gelu_of_normal_cdf", "GeluModule")
def _gelu(candidate: Any) -> Pairs:
    candidate = candidate() if isinstance(candidate, type) else candidate
    x = 3 * drawn(4, 5)
    return [(candidate(x), book.gelu(x))]


@compared("partial_gelu_tanh", "scripted_gelu_tanh")
def _gelu_tanh(candidate: Any) -> Pairs:
    x = 3 * drawn(4, 5)
    return [(candidate(x), book.gelu_tanh(x))]


# Attention.

EMPTY = torch.tensor([[True, False, True, False], [False] * 4, [True] * 4])


@compared("weights_from_logsumexp")
def _weights(candidate: Any) -> Pairs:
    pairs = []
    for mask in (None, EMPTY):
        results = []
        for function, meant in ((candidate, _blocked(mask)), (book.attention_weights, mask)):
            query, key = (each.requires_grad_() for each in (drawn_again(3), drawn_again(4)))
            weights = function(query, key, meant)
            (weights * drawn_again(4)[:3, :4]).sum().backward()
            results.append([weights, query.grad, key.grad])
        pairs += zip(*results, strict=True)
    return pairs


def drawn_again(rows: int) -> Tensor:
    return torch.randn(rows, 5, generator=torch.Generator().manual_seed(rows), dtype=torch.float64)


def _blocked(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else ~mask


@compared("attention_through_kernel", "attention_and_weights")
def _attention(candidate: Any) -> Pairs:
    inputs = drawn(2, 3, 5), drawn(2, 4, 5), drawn(2, 4, 6)
    keyword = "mask" if candidate.__name__ == "attention_and_weights" else "attn_mask"
    pairs = []
    for mask in (None, EMPTY):
        result = candidate(*inputs, **{keyword: mask})
        result = result[0] if isinstance(result, tuple) else result
        pairs.append((result, book.scaled_dot_product_attention(*inputs, mask)))
    return pairs


def heads_of_four(ours: Any) -> dict[str, Tensor]:
    """Weights for a module list of each projection's heads, of two features each."""
    weights = {}
    for ours_name, theirs in (("query", "queries"), ("key", "keys"), ("value", "values")):
        projection = getattr(ours, f"{ours_name}_proj")
        for head in range(3):
            rows = slice(2 * head, 2 * head + 2)
            name = f"{theirs}.{head}"
            weights |= linear(name, projection.weight[rows], projection.bias[rows])
    return weights | of_linear("out", ours.output_proj)


def packed(ours: Any) -> dict[str, Tensor]:
    projections = [ours.query_proj, ours.key_proj, ours.value_proj]
    return {
        "weight": torch.cat([each.weight for each in projections]),
        "bias": torch.cat([each.bias for each in projections]),
    }


def einsum_weights(ours: Any, prefix: str = "", heads: int = 3) -> dict[str, Tensor]:
    weights = {}
    for letter, name in (("q", "query"), ("k", "key"), ("v", "value"), ("o", "output")):
        projection = getattr(ours, f"{name}_proj")
        weights[f"{prefix}w{letter}"] = projection.weight.T
        weights[f"{prefix}b{letter}"] = projection.bias
    return weights


MASKS = (None, EMPTY, torch.stack([EMPTY, EMPTY.flip(0)]), EMPTY[:1, None].expand(2, 1, 4))


def _multi_head(make: Any, weights: Callable[[Any], dict[str, Tensor]], means: Any) -> Pairs:
    ours = filled(book.MultiHeadAttention(6, 3))
    theirs = loaded(make(6, 3), weights(ours))
    inputs = drawn(2, 3, 6), drawn(2, 4, 6), drawn(2, 4, 6)
    pairs = []
    for mask in MASKS:
        result = theirs(*inputs, means(mask))
        result = result[0] if isinstance(result, tuple) else result
        pairs.append((result, ours(*inputs, mask)))
    return pairs


@compared("MultiHeadAttentionOfHeads")
def _of_heads(candidate: Any) -> Pairs:
    return _multi_head(candidate, heads_of_four, lambda mask: mask)


@compared("PackedMultiHeadAttention")
def _packed_heads(candidate: Any) -> Pairs:
    def weights(ours: Any) -> dict[str, Tensor]:
        both = {f"in_proj_{key}": value for key, value in packed(ours).items()}
        return both | of_linear("out_proj", ours.output_proj)

    return _multi_head(candidate, weights, _blocked)


@compared("EinsumMultiHeadAttention")
def _einsum(candidate: Any) -> Pairs:
    return _multi_head(candidate, einsum_weights, lambda mask: mask)


@compared("compiled_multi_head_attention")
def _compiled(candidate: Any) -> Pairs:
    def weights(ours: Any) -> dict[str, Tensor]:
        return einsum_weights(ours, "_orig_mod.")

    return _multi_head(candidate, weights, lambda mask: mask)


def causal_weights(ours: Any, prefix: str = "") -> dict[str, Tensor]:
    return {
        **linear(f"{prefix}qkv", ours.c_attn.weight.T, ours.c_attn.bias),
        **linear(f"{prefix}proj", ours.c_proj.weight.T, ours.c_proj.bias),
    }


@compared("causal_attention_of_dataclass")
def _causal(candidate: Any) -> Pairs:
    ours = filled(book.CausalSelfAttention(6, 3, dropout=0.0))
    theirs = loaded(candidate(6, 3, 0.0), causal_weights(ours))
    return same(theirs, ours, drawn(2, 5, 6))


@compared("CausalHeads")
def _causal_heads(candidate: Any) -> Pairs:
    ours: Any = filled(book.CausalSelfAttention(6, 3, dropout=0.0))
    weights = linear("proj", ours.c_proj.weight.T, ours.c_proj.bias)
    for part, name in enumerate(("query", "key", "value")):
        for head in range(3):
            columns = slice(6 * part + 2 * head, 6 * part + 2 * head + 2)
            values = ours.c_attn.weight[:, columns].T, ours.c_attn.bias[columns]
            weights |= linear(f"heads.{head}.{name}", *values)
    return same(loaded(candidate(6, 3, 0.0), weights), ours, drawn(2, 5, 6))


@compared("RepeatedKeys")
def _repeated(candidate: Any) -> Pairs:
    ours: Any = filled(book.GroupedQueryAttention(8, 4, 2))
    weights = {f"w{each}.weight": getattr(ours, f"{each}_proj").weight for each in "qkvo"}
    return same(loaded(candidate(8, 4, 2), weights), ours, drawn(2, 5, 8))


@compared("PackedGroups")
def _groups(candidate: Any) -> Pairs:
    ours: Any = filled(book.GroupedQueryAttention(8, 4, 2))
    joined = torch.cat([ours.q_proj.weight, ours.k_proj.weight, ours.v_proj.weight])
    weights = linear("qkv_proj", joined) | linear("o_proj", ours.o_proj.weight)
    return same(loaded(candidate(8, 4, 2), weights), ours, drawn(2, 5, 8))


@compared("ProductsInTheLatents")
def _latents(candidate: Any) -> Pairs:
    sizes = (8, 3, 5, 4, 2, 6, 7)
    ours: Any = filled(book.MultiHeadLatentAttention(*sizes))
    names = {"q_a_proj": "wq_a", "q_a_layernorm": "q_norm", "q_b_proj": "wq_b"}
    names |= {"kv_a_proj_with_mqa": "wkv_a", "kv_a_layernorm": "kv_norm", "kv_b_proj": "wkv_b"}
    names |= {"o_proj": "wo"}
    weights = {f"{names[each[:-7]]}.weight": value for each, value in ours.named_parameters()}
    return same(loaded(candidate(*sizes), weights), ours, drawn(2, 5, 8))


# Masks.


@compared("blocked_future")
def _future(candidate: Any) -> Pairs:
    return [(~candidate(4), book.causal_mask(4)), (~candidate(3, 2), book.causal_mask(3, 2))]


@compared("window_of_numbers")
def _window(candidate: Any) -> Pairs:
    pairs = [(5, 2, 0), (3, 4, 2), (4, 1, 0)]
    return [(candidate(*each) == 0, book.sliding_window_mask(*each)) for each in pairs]


@compared("key_padding_mask")
def _padding(candidate: Any) -> Pairs:
    lengths = torch.tensor([2, 0, 4])
    return [(~candidate(lengths, 4)[:, None], book.padding_mask(lengths, 4))]


# Norms.


def _norm(candidate: Any, ours: Any, *names: str) -> Pairs:
    ours = filled(ours)
    weights = dict(zip(names, ours.parameters(), strict=True))
    return same(loaded(candidate(5, eps=0.1), weights), ours, 3 * drawn(2, 4, 5) + 1)


@compared("GammaBetaLayerNorm")
def _gamma_beta(candidate: Any) -> Pairs:
    return _norm(
        lambda d, eps: candidate(d, epsilon=eps), book.LayerNorm(5, eps=0.1), "gamma", "beta"
    )


@compared("HandGradientLayerNorm")
def _hand_gradient(candidate: Any) -> Pairs:
    norm = candidate(5, eps=0.1).double()
    inputs = drawn(3, 5).requires_grad_(), norm.scale, norm.shift
    assert torch.autograd.gradcheck(lambda x, *_: norm(x), inputs)
    assert torch.autograd.gradgradcheck(lambda x, *_: norm(x), inputs)
    return _norm(candidate, book.LayerNorm(5, eps=0.1), "scale", "shift")


@compared("scripted_layer_norm")
def _scripted_norm(candidate: Any) -> Pairs:
    return _norm(candidate, book.LayerNorm(5, eps=0.1), "weight", "bias")


@compared("RootMeanSquare")
def _rms(candidate: Any) -> Pairs:
    return _norm(candidate, book.RMSNorm(5, eps=0.1), "g")


@compared("TypedRMSNorm")
def _llama_rms(candidate: Any) -> Pairs:
    return [
        *_norm(candidate, book.LlamaRMSNorm(5, eps=0.1), "weight"),
        *_in_bfloat16(candidate(5), book.LlamaRMSNorm(5), "weight"),
    ]


@compared("OffsetRMSNorm")
def _gemma_rms(candidate: Any) -> Pairs:
    return [
        *_norm(candidate, book.GemmaRMSNorm(5, eps=0.1), "offset"),
        *_in_bfloat16(candidate(5), book.GemmaRMSNorm(5), "offset"),
    ]


def _in_bfloat16(theirs: Any, ours: Any, name: str) -> Pairs:
    ours = filled(ours)
    theirs = loaded(theirs, {name: ours.weight}).bfloat16()
    x = drawn(7, 5).bfloat16()
    return [(theirs(x), ours.bfloat16()(x))]


@compared("FunctionalBatchNorm")
def _batch_norm(candidate: Any) -> Pairs:
    ours: Any = filled(book.BatchNorm1d(5, eps=0.1))
    theirs = loaded(candidate(5, eps=0.1), {"gamma": ours.weight, "beta": ours.bias})
    pairs = same(theirs, ours, drawn(4, 5, 3))
    buffers = (theirs.moving_mean, ours.running_mean), (theirs.moving_var, ours.running_var)
    return [*pairs, *buffers, *same(theirs, ours, drawn(4, 5))]


# Maps of each position.


@compared("WidthOneConvolution")
def _convolution(candidate: Any) -> Pairs:
    ours: Any = filled(book.Conv1D(3, 4))
    weights = linear("conv", ours.weight.T, ours.bias)
    return same(loaded(candidate(3, 4), weights), ours, drawn(2, 5, 3))


def _position(theirs: Any, name1: str, name2: str, ours: Any) -> Pairs:
    weights = of_linear(name1, ours.linear1) | of_linear(name2, ours.linear2)
    return same(loaded(theirs, weights), ours, drawn(2, 5, 3))


@compared("ConvolvedFeedForward")
def _convolved(candidate: Any) -> Pairs:
    ours = filled(book.PositionwiseFeedForward(3, 4, dropout=0.0))
    return _position(candidate(3, 4, 0.0), "w_1", "w_2", ours)


@compared("lazy_feed_forward")
def _lazy(candidate: Any) -> Pairs:
    ours = filled(book.PositionwiseFeedForward(3, 4, dropout=0.0))
    theirs = candidate(3, 4, 0.0)
    theirs(torch.zeros(1, 3))
    return _position(theirs, "0", "2", ours)


@compared("WeightNormFeedForward")
def _weight_norm(candidate: Any) -> Pairs:
    ours: Any = filled(book.PositionwiseFeedForward(3, 4, dropout=0.0))
    theirs = candidate(3, 4, 0.0).double()
    with torch.no_grad():
        for map_of_theirs, of_ours in ((theirs.up, ours.linear1), (theirs.down, ours.linear2)):
            map_of_theirs.weight = of_ours.weight.detach()
            map_of_theirs.bias.copy_(of_ours.bias)
    return same(theirs, ours, drawn(2, 5, 3))


@compared("SequentialFeedForward")
def _sequential(candidate: Any) -> Pairs:
    ours: Any = filled(book.FeedForward(3, 4, dropout=0.0))
    weights = linear("0", ours.c_fc.weight.T, ours.c_fc.bias)
    weights |= linear("2", ours.c_proj.weight.T, ours.c_proj.bias)
    return same(loaded(candidate(3, 4, 0.0), weights), ours, drawn(2, 5, 3))


@compared("SwiGLU")
def _swiglu(candidate: Any) -> Pairs:
    ours: Any = filled(book.GatedFeedForward(3, 4))
    maps = {"w1": ours.gate_proj, "w2": ours.down_proj, "w3": ours.up_proj}
    weights = {f"{name}.weight": each.weight for name, each in maps.items()}
    return same(loaded(candidate(dim=3, hidden_dim=4), weights), ours, drawn(2, 5, 3))


@compared("SplitGate")
def _split_gate(candidate: Any) -> Pairs:
    ours: Any = filled(book.PackedGatedFeedForward(3, 4))
    weights = {"w12": ours.gate_up_proj.weight, "w3": ours.down_proj.weight}
    return same(loaded(candidate(3, 4), weights), ours, drawn(2, 5, 3))


# Whole layers.

SEEN = torch.tensor([[True, False, True, False], [False] * 4, [True] * 4, [False, True] * 2])


def _feed(name: str, ours: Any) -> dict[str, Tensor]:
    inner = ours.feed_forward
    return of_linear(f"{name}.0", inner.linear1) | of_linear(f"{name}.2", inner.linear2)


def _self_attention(name: str, ours: Any) -> dict[str, Tensor]:
    joined = {f"{name}.to_qkv.{key}": value for key, value in packed(ours.self_attention).items()}
    return joined | of_linear(f"{name}.to_out", ours.self_attention.output_proj)


@compared("PackedEncoderLayer")
def _packed_encoder(candidate: Any) -> Pairs:
    ours: Any = filled(book.TransformerEncoderLayer(6, 3, 8, dropout=0.0))
    weights = _self_attention("attn", ours) | _feed("ffn", ours)
    weights |= of_linear("ln_attn", ours.norm1) | of_linear("ln_ffn", ours.norm2)
    theirs, x = loaded(candidate(6, 3, 8, 0.0), weights), drawn(2, 4, 6)
    return [*same(theirs, ours, x), (theirs(x, ~SEEN), ours(x, SEEN))]


@compared("EncoderLayerOfTorch")
def _encoder_of_torch(candidate: Any) -> Pairs:
    ours: Any = filled(book.TransformerEncoderLayer(6, 3, 8, dropout=0.0))
    weights = {f"self_attn.in_proj_{key}": v for key, v in packed(ours.self_attention).items()}
    weights |= of_linear("self_attn.out_proj", ours.self_attention.output_proj)
    for name in ("linear1", "linear2"):
        weights |= of_linear(name, getattr(ours.feed_forward, name))
    weights |= of_linear("norm1", ours.norm1) | of_linear("norm2", ours.norm2)
    theirs, x = loaded(candidate(6, 3, 8, 0.0), weights), drawn(2, 4, 6)
    lengths = torch.tensor([3, 0])
    padding = book.padding_mask(lengths, 4)
    return [
        *same(theirs, ours, x),
        (theirs(x, ~SEEN), ours(x, SEEN)),
        (theirs(x, None, ~padding[:, 0]), ours(x, padding)),
    ]


@compared("PreNormWithBias")
def _pre_norm_bias(candidate: Any) -> Pairs:
    ours: Any = filled(book.PreNormTransformerEncoderLayer(6, 3, 8, dropout=0.0))
    weights = _self_attention("parts.attention", ours) | _feed("parts.feed", ours)
    weights |= of_linear("parts.norm_a", ours.norm1) | of_linear("parts.norm_f", ours.norm2)
    theirs, x = loaded(candidate(6, 3, 8, 0.0), weights), drawn(2, 4, 6)
    bias = torch.zeros(4, 4).masked_fill(~SEEN, -torch.inf)
    return [*same(theirs, ours, x), (theirs(x, bias), ours(x, SEEN))]


def _decoder(candidate: Any, ours: Any, memory_mask_first: bool) -> Pairs:
    ours = filled(ours)
    weights = einsum_weights(ours.self_attention, "self_attn.")
    weights |= einsum_weights(ours.cross_attention, "src_attn.")
    weights |= of_linear("w_1", ours.feed_forward.linear1)
    weights |= of_linear("w_2", ours.feed_forward.linear2)
    for number, norm in enumerate((ours.norm1, ours.norm2, ours.norm3)):
        weights |= of_linear(f"sublayer.{number}.norm", norm)
    theirs = loaded(candidate(6, 3, 8, 0.0), weights)
    x, memory, found = drawn(2, 4, 6), drawn(2, 3, 6), SEEN[:, :3]
    masks = (found, SEEN) if memory_mask_first else (SEEN, found)
    return [
        *same(theirs, ours, x, memory),
        (theirs(x, memory, *masks), ours(x, memory, SEEN, found)),
    ]


@compared("SublayersAfter")
def _after(candidate: Any) -> Pairs:
    return _decoder(candidate, book.TransformerDecoderLayer(6, 3, 8, dropout=0.0), False)


@compared("SublayersBefore")
def _before(candidate: Any) -> Pairs:
    return _decoder(candidate, book.PreNormTransformerDecoderLayer(6, 3, 8, dropout=0.0), True)


def block_weights(ours: Any, prefix: str = "") -> dict[str, Tensor]:
    weights = causal_weights(ours.attn, f"{prefix}attention.")
    weights |= of_linear(f"{prefix}attn_norm", ours.ln_1)
    weights |= of_linear(f"{prefix}mlp_norm", ours.ln_2)
    weights |= linear(f"{prefix}fc", ours.mlp.c_fc.weight.T, ours.mlp.c_fc.bias)
    return weights | linear(f"{prefix}out", ours.mlp.c_proj.weight.T, ours.mlp.c_proj.bias)


@compared("LinearBlock")
def _block(candidate: Any) -> Pairs:
    ours = filled(book.GPT2Block(6, 3, dropout=0.0, eps=0.1))
    theirs = loaded(candidate(6, 3, 0.0, eps=0.1), block_weights(ours))
    return same(theirs, ours, drawn(2, 5, 6))


@compared("gpt_of_our_config")
def _gpt(candidate: Any) -> Pairs:
    sizes = {"vocab_size": 11, "n_positions": 7, "n_embd": 6, "n_layer": 2, "n_head": 3}
    config = book.GPT2Config(**sizes, dropout=0.0, layer_norm_epsilon=0.1)
    ours: Any = filled(book.GPT2(config))
    weights = {"token.weight": ours.wte.weight, "place.weight": ours.wpe.weight}
    for number, block in enumerate(ours.h):
        weights |= block_weights(block, f"blocks.{number}.")
    theirs = loaded(candidate(config), weights | of_linear("norm", ours.ln_f))
    ids = torch.tensor([[1, 10, 3, 3, 0], [2, 5, 7, 9, 4]])
    return same(theirs, ours, ids)


# Dropout, losses and penalties: dropout by what each element becomes, and how often.


@compared("bernoulli_dropout", "RateDropout")
def _dropout(candidate: Any) -> Pairs:
    x = torch.full((100_000,), 2.0)
    x[0] = torch.inf
    if isinstance(candidate, type):
        off = candidate(0.25).eval()(x)
        kept, all_dropped = candidate(0.25)(x), candidate(1.0)(x)
    else:
        off = candidate(x, 0.25, False)
        kept, all_dropped = candidate(x, 0.25), candidate(x, 1.0)
    share = (kept == 0).double().mean()
    return [
        (off, x),
        (kept[kept != 0][1:], torch.full_like(kept[kept != 0][1:], 2 / 0.75)),
        (all_dropped, torch.zeros_like(x)),
        ((share - 0.25).abs() < 0.01, torch.tensor(True)),
    ]


@compared("loss_of_log_softmax")
def _loss(candidate: Any) -> Pairs:
    logits, labels = drawn(2, 3, 7), torch.tensor([[1, 6, 0], [0, 2, 2]])
    return [
        (candidate(logits, labels, 0.1), book.smoothed_cross_entropy(logits, labels, 0.1)),
        (
            candidate(logits, labels, 0.3, 0),
            book.smoothed_cross_entropy(logits, labels, 0.3, padding_token=0),
        ),
    ]


@compared("sum_of_absolutes")
def _l1(candidate: Any) -> Pairs:
    return _penalty(candidate, book.l1_penalty)


@compared("half_square_of_vector")
def _l2(candidate: Any) -> Pairs:
    return _penalty(candidate, book.l2_penalty)


def _penalty(candidate: Any, ours: Any) -> Pairs:
    results = []
    values = [drawn(2, 3), drawn(4)]
    values[0][0, 0] = 0.0
    for function in (candidate, ours):
        parameters = [each.clone().requires_grad_() for each in values]
        result = function(iter(parameters))
        result.backward()
        results.append([result, *(each.grad for each in parameters)])
    return list(zip(*results, strict=True))


@compared("shrink")
def _shrink(candidate: Any) -> Pairs:
    x = 3 * drawn(50)
    return [(candidate(x, each), book.soft_threshold(x, each)) for each in (0.0, 0.7)]


# Positions.


@compared("table_of_buffer")
def _table(candidate: Any) -> Pairs:
    return [(candidate(*each), book.sinusoidal_positions(*each)) for each in ((9, 6), (9, 5))]


@compared("RotatedHalves")
def _rotary(candidate: Any) -> Pairs:
    x, places = drawn(2, 5, 6), torch.tensor([0, 3, 100, 7, 9000])
    ours = book.RotaryPositions(6, 500.0)
    return [(candidate(6, 500.0)(x), ours(x)), (candidate(6, 500.0)(x, places), ours(x, places))]


def assert_same(name: str, candidate: Any) -> None:
    torch.manual_seed(0)
    for theirs, ours in COMPARED[name](candidate):
        torch.testing.assert_close(theirs.detach(), ours.detach())


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@pytest.mark.parametrize("name", [each.name for each in RIGHT.values() if each.work == OWN])
def test_equals_the_book(name: str) -> None:
    assert_same(name, RIGHT[name].build())


@pytest.mark.parametrize("name", ["own.RootMeanSquare", "own.PackedGroups", "own.shrink"])
def test_the_comparison_can_fail(name: str) -> None:
    built = RIGHT[name].build()

    def halved(*args: Any, **named: Any) -> Any:
        result = built(*args, **named)
        if isinstance(result, Tensor):
            return result / 2
        result.register_forward_hook(lambda module, inputs, output: output / 2)
        return result

    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        assert_same(name, halved)


def test_every_layer_has_one_of_our_own_and_there_are_a_hundred() -> None:
    layers = {entry.layer for entry in RIGHT.values()}
    assert layers == {entry.layer for entry in RIGHT.values() if entry.work == OWN}
    assert all(hasattr(book, layer) for layer in layers)
    ours = [entry for entry in RIGHT.values() if entry.work == OWN]
    assert len(ours) >= 40
    assert len(RIGHT) - len(ours) >= 60


@pytest.mark.parametrize("entry", RIGHT.values(), ids=lambda entry: entry.name)
def test_a_style_is_one_sentence(entry: RightLayer) -> None:
    assert re.fullmatch(r"[A-Z][^\n]*[a-z0-9]\.", entry.style)


def test_a_name_stands_once() -> None:
    entry = RIGHT["own.shrink"]
    with pytest.raises(ValueError, match=r"'own\.shrink' is declared already"):
        declared(entry)


def test_only_takes_a_name_a_package_or_a_layer() -> None:
    assert [each.name for each in chosen("own.shrink")] == ["own.shrink"]
    assert {each.work for each in chosen("litgpt")} == {"litgpt"}
    assert {each.layer for each in chosen("BatchNorm1d")} == {"BatchNorm1d"}


def _report(*results: tuple[str, str], not_run: int = 0, word: str = "failed") -> SimpleNamespace:
    failed = [
        SimpleNamespace(kind=kind, name=name, text="off", word=word) for kind, name in results
    ]
    return SimpleNamespace(
        failed=failed,
        headline="",
        behaves_like=None,
        notes=(),
        matching="",
        not_run=not_run,
    )


@pytest.mark.parametrize(
    ("report", "verdict"),
    [
        (_report(), "clean"),
        (_report(("start", "reset")), "contract"),
        (_report(("law", "window"), word="unasked"), "clean"),
        (_report(("contract", "arguments"), ("law", "values")), "false law"),
        (_report(("law", "Layer(d_model)"), not_run=20), "could not be judged"),
    ],
)
def test_a_report_has_a_verdict(report: Any, verdict: str) -> None:
    assert judged(report)["verdict"] == verdict


def test_totals_count_verdicts_and_lines() -> None:
    reports = [_report(("law", "values"), ("contract", "dtype")), _report(("start", "reset"))]
    rows = [judged(each) for each in [*reports, _report()]]
    assert totals(rows) == {
        "layers": 3,
        "false laws": 1,
        "could not be judged": 0,
        "crashed": 0,
        "contract lines": 1,
        "names lines": 0,
        "start lines": 1,
        "names or contract only": 1,
        "clean": 1,
        "not here": 0,
    }
    about = {"layer": "LayerNorm", "name": "own.mine"}
    assert line({**about, **rows[0]}) == "LayerNorm, own.mine: LAW FAILING: law values: off"
    assert line({**about, **rows[1]}) == "LayerNorm, own.mine: law holds; start reset: off"
    assert line({**about, **rows[2]}) == "LayerNorm, own.mine: clean"


def _missing() -> Any:
    raise ModuleNotFoundError("No module named 'elsewhere'")


def _broken() -> Any:
    raise RuntimeError("broken")


@pytest.mark.parametrize(
    ("build", "verdict"),
    [(_missing, "not here"), (_broken, "crashed"), (lambda: torch.special.ndtr, "false law")],
)
def test_a_layer_is_examined(build: Any, verdict: str) -> None:
    row = right_layers.examined(RightLayer("test.gelu", "gelu", "For this test.", "test", build))
    assert row["verdict"] == verdict


def test_a_process_that_ends_takes_one_layer_with_it() -> None:
    dying = RightLayer("test.dying", "gelu", "For this test.", "test", lambda: os._exit(1))
    living = RightLayer("test.gelu", "gelu", "For this test.", "test", _missing)
    first, second = right_layers.in_a_process([dying, living])
    assert (first["verdict"], first["text"]) == ("crashed", "the process ended")
    assert second["verdict"] == "not here"


def test_it_prints_and_writes(tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    file = tmp_path / "right.json"
    arguments = ["right_layers", "--only", "own.shrink", "--output", str(file)]
    monkeypatch.setattr("sys.argv", arguments)
    right_layers.main()
    assert "layers: 1, false laws: 0" in capsys.readouterr().out
    assert '"style": "Two ReLUs, one for each sign."' in file.read_text()
