"""The sixth collection: each version is wrong where it says so, and right in plain use."""

import copy
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, arange, nn, ones, randn, zeros
from torch.nn import functional

import transformer_layers as tl
from evaluation.held_out import sixth  # noqa: F401, it declares them
from evaluation.held_out.definitions import VERSIONS
from tests.evaluation.held_out.demonstrations import assert_each_is_told, assert_recorded

BF16 = torch.bfloat16
CONFIG = tl.GPT2Config(vocab_size=20, n_positions=8, n_embd=64, n_layer=2, n_head=2, dropout=0.0)
IDS = torch.tensor([[3, 1, 4, 1, 5]])


def near(a: Tensor, b: Any, atol: float = 1e-5) -> bool:
    return torch.allclose(a, torch.as_tensor(b, dtype=a.dtype), rtol=1e-5, atol=atol)


def slope(function: Callable[[Tensor], Tensor], *at: float) -> list[float]:
    x = torch.tensor(at, requires_grad=True)
    return torch.autograd.grad(function(x).sum(), x)[0].tolist()


@torch.no_grad()
def drawn(layer: Any) -> Any:
    """The layer in evaluation, with parameters that no start gives."""
    for parameter in layer.parameters():
        parameter.copy_(randn(parameter.shape) / 2)
    return layer.eval()


@torch.no_grad()
def quietly(layer: Any, *inputs: Any) -> Tensor:
    return layer(*inputs)


def refused(error: type[Exception], function: Callable[[], Any]) -> bool:
    try:
        function()
    except error:
        return True
    return False


ELEMENTWISE = {
    "erf without the root": lambda c: near(c(x := randn(5)), functional.gelu(x)),
    "rest of the vectors unmapped": lambda c: near(c(x := randn(11)), functional.gelu(x)),
    "slope taken for constant": lambda c: near(
        torch.autograd.functional.hessian(lambda x: c(x).sum(), ones(1)), 0.2419707
    ),
    "tenfold cubic term": lambda c: near(c(x := randn(5)), functional.gelu(x, approximate="tanh")),
    "number gets an axis": lambda c: c(torch.tensor(1.0)).shape == (),
    "tanh in the dtype of the input": lambda c: near(
        c(torch.tensor([-3.0], dtype=BF16)).float(), -0.003637, atol=1e-4
    ),
    "share kept for share dropped": lambda c: (c(ones(1000), 0.1) == 0).float().mean() < 0.5,
    "channels of four axes": lambda c: c(ones(2, 3, 8, 8)).flatten(2).std(-1).all(),
    "draws repeated after 1024": lambda c: (y := c(ones(2, 1024)))[0].ne(y[1]).any(),
    "mask kept for the shape": lambda c: (layer := c())(x := ones(99)).ne(layer(x)).any(),
    "drops only with gradients": lambda c: quietly(c(), ones(99)).eq(0).any(),
    "sum of means": lambda c: c([2 * ones(2, 3)]) == 12,
    "slope of one at zero": lambda c: slope(lambda w: c([w]), 0.0, 2.0, -2.0) == [0, 1, -1],
    "tied weights once": lambda c: c([w := ones(3), w]) == 6,
    "without the half": lambda c: c([2 * ones(3)]) == 6,
    "first of a generator spent": lambda c: c(ones(2) for _ in range(3)) == 3,
    "dtype of the first": lambda c: c([ones(1), ones(1).double()]).dtype == torch.float64,
    "hard threshold": lambda c: near(c(torch.tensor([3.0, -2.0, 0.5]), 1.0), [2, -1, 0]),
    "nan to zero": lambda c: c(torch.tensor([math.nan]), 1.0).isnan().all(),
    "slope of one at the threshold": lambda c: (
        slope(lambda x: c(x, 1.0), -1.0, 0.0, 1.0, 2.0) == [0, 0, 0, 1]
    ),
}


def share_of_construction(c: Any) -> bool:
    layer = c(0.5)
    layer.p = 0.0
    return layer(x := ones(99)).equal(x)


def nothing_taken_from_the_right_token(c: Any) -> bool:
    logits, labels = randn(3, 5), arange(3)
    return near(
        c(logits, labels, 0.2), functional.cross_entropy(logits, labels, label_smoothing=0.2)
    )


def uniform_part_of_padding(c: Any) -> bool:
    logits, labels = randn(4, 5), torch.tensor([1, 0, 2, 0])
    scored = labels != 0
    alone = c(logits[scored], labels[scored], 0.2)
    return near(c(logits, labels, 0.2, padding_token=0), alone)


def others_given_a_share_of_all(c: Any) -> bool:
    return near(c(zeros(1, 4), torch.tensor([2]), 0.2, "others"), math.log(4))


def mean_of_the_means_of_sequences(c: Any) -> bool:
    logits, labels = randn(2, 3, 5), torch.tensor([[1, 2, 3], [4, 0, 0]])
    flat = c(logits.flatten(0, 1), labels.flatten(), 0.1, padding_token=0)
    return near(c(logits, labels, 0.1, padding_token=0), flat)


def padding_in_the_variance(c: Any) -> bool:
    return near(c(6)(x := randn(2, 6) + 3), functional.layer_norm(x, (6,)))


def eps_of_the_dtype(c: Any) -> bool:
    x = (randn(4, 8) / 100).to(BF16)
    return near(c(8, dtype=BF16)(x).float(), functional.layer_norm(x.float(), (8,)), atol=0.02)


def gain_of_ones_skipped(c: Any) -> bool:
    layer = c(8)
    layer(randn(3, 8)).sum().backward()
    return layer.weight.grad is not None


def eps_on_the_class(c: Any) -> bool:
    first, _ = c(8, eps=1e-6), c(8, eps=1.0)
    return near(first(x := randn(8)), functional.rms_norm(x, (8,), eps=1e-6))


def partial_for_wide_rows(c: Any) -> bool:
    return near(c(128)(x := randn(2, 128)), functional.rms_norm(x, (128,), eps=1e-6))


def root_without_gradient(c: Any) -> bool:
    x, factors = randn(8, requires_grad=True), randn(8)
    (c(8)(x) * factors).sum().backward()
    return abs(x.grad @ x) < 1e-4  # a norm does not see how long its input is


def gain_in_float32(c: Any) -> bool:
    layer, x = drawn(c(64, dtype=BF16)), randn(9, 64).to(BF16)
    rounded = functional.rms_norm(x.float(), (64,), eps=1e-6).to(BF16)
    return (layer(x) != layer.weight * rounded).float().mean() < 0.01


def one_added_in_the_dtype(c: Any) -> bool:
    layer, x = drawn(c(64, dtype=BF16)), randn(9, 64).to(BF16)
    wide = (1 + layer.weight.float()) * functional.rms_norm(x.float(), (64,), eps=1e-6)
    return (layer(x) != wide.to(BF16)).float().mean() < 0.01


def one_folded_in_at_loading(c: Any) -> bool:
    layer = c(8)
    layer.load_state_dict({"weight": 3 * ones(8)})
    return layer.weight.eq(3).all()


def tenth_for_no_momentum(c: Any) -> bool:
    layer, x = c(3, momentum=None), randn(2, 5, 3)
    for batch in x:
        layer(batch)
    return near(layer.running_mean, x.mean(dim=(0, 1)))


def buffers_replaced(c: Any) -> bool:
    layer = c(3)
    held = layer.running_mean
    layer(randn(5, 3))
    return held.any() and held.equal(layer.running_mean)


def folded_at_the_first_evaluation(c: Any) -> bool:
    layer, x = c(3).eval(), randn(5, 3)
    before = quietly(layer, x)
    layer.running_mean.fill_(2.0)
    return near(quietly(layer, x), before - 2, atol=1e-4)


def biased_running_variance(c: Any) -> bool:
    layer, x = c(3), randn(4, 3)
    layer(x)
    return near(layer.running_var, 0.9 + 0.1 * x.var(dim=0))


def evaluations_counted(c: Any) -> bool:
    layer = c(3).eval()
    layer(randn(5, 3))
    return layer.num_batches_tracked == 0


NORMS = {
    "eps of later models": lambda c: c(8).eps == 1e-6,
    "starts with ones": lambda c: c(8).weight.eq(0).all(),
    "channels where they fit": lambda c: near(
        c(3)(x := randn(4, 3, 3)), functional.batch_norm(x, None, None, training=True)
    ),
}


def one_tensor_for_all_calls(c: Any) -> bool:
    c(7).fill_(False)
    return c(7).any()


MASKS = {
    "without itself": lambda c: c(3).diagonal().all(),
    "cut from a triangle of 256": lambda c: c(2, past=300).shape == (2, 302),
    "window beside itself": lambda c: c(4, 2).sum(-1).tolist() == [1, 2, 2, 2],
    "window without the past": lambda c: c(1, 2, past=5).sum() == 2,
    "window no longer than the queries": lambda c: c(1, 3, past=5).sum() == 3,
    "padding at the left": lambda c: c(torch.tensor([1]), 3).tolist() == [[[True, False, False]]],
    "one less in uint8": lambda c: not c(torch.tensor([0], dtype=torch.uint8), 3).any(),
    "one row where nothing is padded": lambda c: c(torch.tensor([3, 3]), 3).shape == (2, 1, 3),
}


def default_dtype_of_the_import(c: Any) -> bool:
    torch.set_default_dtype(torch.float64)
    try:
        return c(3, 4).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def angles_kept_for_the_length(c: Any) -> bool:
    layer, x, later = c(4), randn(3, 4), arange(5, 8)
    layer(x)
    return near(layer(x, later), c(4)(x, later))


def frequencies_in_a_buffer(c: Any) -> bool:
    x, far = randn(3, 8), arange(1000, 1003)
    return near(c(8).to(BF16)(x, far), c(8)(x, far))


def frequencies_of_the_whole_head(c: Any) -> bool:
    x = randn(3, 8)
    return near(c(8, d_rotary=4)(x)[..., :4], c(4)(x[..., :4]))


def factor_of_cosines_only(c: Any) -> bool:
    scaling, x = tl.YaRNScaling(4.0, 32), randn(5, 4)
    longer = x.norm(dim=-1) * scaling.table_factor
    return near(c(4, scaling=scaling)(x).norm(dim=-1), longer)


def _turned(c: Any, place: float) -> Tensor:
    return c(4)(ones(1, 4), torch.tensor([place]))


POSITIONS = {
    "cosines first": lambda c: near(c(3, 4)[0], [0, 1, 0, 1]),
    "angles in the dtype of the result": lambda c: near(
        c(300, 4, dtype=BF16)[299, :1].float(), math.sin(299), atol=0.01
    ),
    "odd widths end with a cosine": lambda c: c(3, 5)[0, 4] == 0,
    "turned backwards": lambda c: near(
        c(2)(torch.tensor([[1.0, 0.0]]), arange(1, 2)), [[math.cos(1), math.sin(1)]]
    ),
    "fractions of positions cut": lambda c: not near(_turned(c, 0.5), _turned(c, 0.0)),
    "clamped behind the table": lambda c: not near(_turned(c, 3000.0), _turned(c, 4000.0)),
}


def scaled_by_the_root_of_the_keys(c: Any) -> bool:
    query, key = randn(2, 4), randn(3, 4)
    return near(c(query, key), (query @ key.T / 2).softmax(-1))


def maximum_of_hidden_keys(c: Any) -> bool:
    key = torch.tensor([[0.0], [1000.0]])
    return near(c(ones(1, 1), key, torch.tensor([[True, False]])), [[1, 0]])


def nan_gradient_where_all_is_hidden(c: Any) -> bool:
    query = randn(2, 4, requires_grad=True)
    c(query, randn(2, 4), torch.tensor([[True, False], [False, False]])).sum().backward()
    return query.grad.isfinite().all()


def float64_in_float32(c: Any) -> bool:
    query, key = randn(2, 2, 4, dtype=torch.float64)
    return near(c(query, key), (query @ key.T / 2).softmax(-1), atol=1e-13) and (
        (c(query, key) - (query @ key.T / 2).softmax(-1)).abs().max() < 1e-12
    )


def blocks_before_not_rescaled(c: Any) -> bool:
    query, key, value = randn(3, 1, 40, 4)
    return near(c(query, key, value), functional.scaled_dot_product_attention(query, key, value))


def nan_where_the_first_block_is_hidden(c: Any) -> bool:
    query, key, value = randn(3, 1, 20, 4)
    mask = (arange(20) >= 12).expand(20, 20)
    masked = functional.scaled_dot_product_attention(query, key, value, mask)
    return near(c(query, key, value, mask), masked)


def rows_normalized_after_dropout(c: Any) -> bool:
    return not near(c(randn(9, 4), randn(9, 4), ones(9, 1), dropout_p=0.5), ones(9, 1))


def self_where_query_is_key(c: Any) -> bool:
    layer, x, value = drawn(c(8, 2)), randn(3, 8), randn(3, 8)
    return near(layer(x, x, value), layer(x, x.clone(), value))


def hidden_rows_without_the_bias(c: Any) -> bool:
    layer, x = drawn(c(8, 2)), randn(3, 8)
    mask = zeros(3, 3, dtype=torch.bool)
    return near(layer(x, x, x, mask), layer.output_proj.bias.expand(3, 8))


def mask_skipped_by_the_first(c: Any) -> bool:
    layer, x = drawn(c(8, 2)), randn(2, 3, 8)
    short = x[1:, :1]
    masked = layer(x, x, x, tl.padding_mask(torch.tensor([3, 1]), 3))
    return near(masked[1:], layer(x[1:], short, short))


def values_before_keys(c: Any) -> bool:
    layer = drawn(c(8, 2))
    with torch.no_grad():
        layer.c_attn.weight[:, 16:] = layer.c_attn.bias[16:] = 0.0
    return near(layer(randn(3, 8)), layer.c_proj.bias.expand(3, 8))


def _in_pieces(layer: Any, heads: int, d_k: int, *sizes: int) -> bool:
    x = randn(2, sum(sizes), 8)
    cache = tl.KeyValueCache(2, heads, 9, d_k)
    pieces = [layer(piece, cache) for piece in x.split(list(sizes), dim=1)]
    return near(torch.cat(pieces, dim=1), layer(x))


def input_converted(c: Any) -> bool:
    return refused(TypeError, lambda: c(8, 2)(randn(3, 8).double()))


def heads_of_keys_tiled(c: Any) -> bool:
    layer = drawn(c(8, 4, 2))
    with torch.no_grad():
        layer.v_proj.weight[:2] = 0.0  # the first head, which the first two of queries read
        layer.o_proj.weight.copy_(torch.eye(8))
    return near(layer(randn(3, 8))[:, :4], zeros(3, 4))


def own_positions_first(c: Any) -> bool:
    layer, without, x = c(8, 4, 2, positions=tl.RotaryPositions(2)), c(8, 4, 2), randn(3, 8)
    without.load_state_dict(layer.state_dict())
    return near(layer(x, positions=lambda turned, places: turned), without(x))


def values_normed_as_keys(c: Any) -> bool:
    layer, x = c(8, 4, 2, head_norm=tl.RMSNorm), randn(3, 8)
    y = layer(x)
    with torch.no_grad():
        layer.v_proj.weight.mul_(2)
    return near(layer(x), 2 * y)


ATTENTION = {
    "starts as torchs": lambda c: c(8, 2).query_proj.bias.any(),
    "batch for a sequence": lambda c: c(8, 2)(x := randn(3, 8), x, x).shape == (3, 8),
    "mask in the state dict": lambda c: (
        set(c(8, 2).state_dict())
        == {f"{name}.{kind}" for name in ("c_attn", "c_proj") for kind in ("weight", "bias")}
    ),
    "chunks forget the past": lambda c: _in_pieces(drawn(c(8, 2)), 2, 4, 2, 3),
    "window forgotten for one token": lambda c: _in_pieces(
        drawn(c(8, 4, 2, window=2)), 2, 2, 3, 1, 1
    ),
    "output bias as the others": lambda c: c(8, 4, 2, output_bias=True).o_proj.bias is not None,
}


def transpose_of_the_first_evaluation(c: Any) -> bool:
    layer, x = c(8, 4).eval(), randn(3, 8)
    quietly(layer, x)
    nn.init.ones_(layer.weight)
    return near(quietly(layer, x), x.sum(-1, keepdim=True).expand(3, 4))


def rest_of_the_chunks_lost(c: Any) -> bool:
    layer, x = drawn(c(8, 16)), randn(1, 40, 8)
    return near(layer(x)[:, 32:], layer(x[:, 32:]))


def activation_ignored(c: Any) -> bool:
    layer, x = drawn(c(8, 16, activation=torch.tanh)), randn(3, 8)
    return near(layer(x), layer.linear2(layer.linear1(x).tanh()))


def activation_squared(c: Any) -> bool:
    layer, x = drawn(c(8, 16)), randn(3, 8)
    return near(layer(x), layer.linear2(layer.linear1(x).relu()))


def exact_gelu_in_evaluation(c: Any) -> bool:
    layer, x = drawn(c(8, dtype=torch.float64)), randn(3, 8).double()
    inner = functional.gelu(layer.c_fc(x), approximate="tanh")
    return (layer(x) - layer.c_proj(inner)).abs().max() < 1e-9


def results_in_one_buffer(c: Any) -> bool:
    layer, x = c(8).eval(), randn(3, 8)
    first = quietly(layer, x)
    kept = first.clone()
    quietly(layer, x + 1)
    return first.equal(kept)


def _gated(c: Any, scale: float) -> bool:
    layer, x = drawn(c(8, 16)), scale * randn(3, 8)
    product = functional.silu(layer.gate_proj(x)) * layer.up_proj(x)
    return near(layer(x), layer.down_proj(product), atol=1e-3)


def reset_forgets_the_up(c: Any) -> bool:
    layer = c(8, 16)
    before = layer.up_proj.weight.clone()
    layer.reset_parameters()
    return layer.up_proj.weight.ne(before).any()


def _packed(c: Any) -> bool:
    layer, x = drawn(c(8, 16)), randn(3, 8)
    gate, up = layer.gate_up_proj(x).chunk(2, -1)
    return near(layer(x), layer.down_proj(functional.silu(gate) * up))


FEED_FORWARD = {
    "view of the leading axes": lambda c: (
        not refused(RuntimeError, lambda: c(8, 4)(randn(2, 3, 8).transpose(0, 1)))
    ),
    "bias starts as that of linear": lambda c: not c(8, 4).bias.any(),
    "activation on the up": lambda c: _gated(c, 1.0),
    "gate clamped at seven": lambda c: _gated(c, 20.0),
    "rows interleaved": _packed,
    "second half gates": _packed,
    "down without bias": lambda c: c(8, 16, bias=True).down_proj.bias is not None,
}


def relu_on_the_fast_path(c: Any) -> bool:
    layer, x = drawn(c(8, 2, 16, activation=torch.tanh)), randn(3, 8)
    return near(quietly(layer, x), layer(x))


def norm_of_the_sub_layer_alone(c: Any) -> bool:
    return near(c(8, 2, 16)(randn(3, 8)).square().mean(-1), ones(3), atol=1e-3)


def closure_over_itself(c: Any) -> bool:
    other = copy.deepcopy(c(8, 2, 16).eval())
    for parameter in other.parameters():
        nn.init.zeros_(parameter)
    return near(other(x := randn(3, 8)), x)


def both_sublayers_at_once(c: Any) -> bool:
    layer, x = drawn(c(8, 2, 16)), randn(3, 8)
    h = x + layer.self_attention(n := layer.norm1(x), n, n)
    return near(layer(x), h + layer.feed_forward(layer.norm2(h)))


def own_mask_for_the_memory_where_it_fits(c: Any) -> bool:
    layer, x, memory = drawn(c(8, 2, 16)), *randn(2, 5, 8)
    before = layer(x, memory, tl.causal_mask(5))[0]
    memory[4] += 1
    return not near(layer(x, memory, tl.causal_mask(5))[0], before)


def memory_kept_for_the_shape(c: Any) -> bool:
    layer, x, memory = drawn(c(8, 2, 16)), *randn(2, 5, 8)
    quietly(layer, x, memory)
    return near(quietly(layer, x, memory + 1), layer(x, memory + 1))


def memory_first(c: Any) -> bool:
    layer, x, memory = drawn(c(8, 2, 16)), *randn(2, 5, 8)
    a = layer.norm1(x + layer.self_attention(x, x, x))
    b = layer.norm2(a + layer.cross_attention(a, memory, memory))
    return near(layer(x, memory), layer.norm3(b + layer.feed_forward(b)))


def memory_normed_too(c: Any) -> bool:
    layer, x, memory = drawn(c(8, 2, 16)), *randn(2, 5, 8)
    a = x + layer.self_attention(n := layer.norm1(x), n, n)
    b = a + layer.cross_attention(layer.norm2(a), memory, memory)
    return near(layer(x, memory), b + layer.feed_forward(layer.norm3(b)))


def reset_forgets_the_third_norm(c: Any) -> bool:
    layer = drawn(c(8, 2, 16))
    layer.reset_parameters()
    return layer.norm3.weight.eq(1).all()


def masks_in_the_other_order(c: Any) -> bool:
    layer, x, memory = drawn(c(8, 2, 16)), *randn(2, 5, 8)
    mask = tl.causal_mask(5)
    return near(layer(x, memory, mask), layer(x, memory, mask=mask))


def feed_forward_drops_a_tenth(c: Any) -> bool:
    layer, x = c(8, 2, dropout=0.0), randn(9, 8)
    return layer(x).equal(layer(x))


def submodules_without_hooks(c: Any) -> bool:
    layer, seen = c(8, 2), []
    for part in (layer.ln_1, layer.attn, layer.ln_2, layer.mlp):
        part.register_forward_hook(lambda *call: seen.append(call))
    layer(randn(3, 8))
    return len(seen) == 4


def norms_in_each_others_place(c: Any) -> bool:
    layer, x = drawn(c(8, 2)), randn(3, 8)
    h = x + layer.attn(layer.ln_1(x))
    return near(layer(x), h + layer.mlp(layer.ln_2(h)))


def residual_scaled_by_blocks(c: Any) -> bool:
    return near(c(CONFIG).h[1].mlp.c_proj.weight.std(), 0.01, atol=1e-3)


def positions_start_at_a_hundredth(c: Any) -> bool:
    return near(c(CONFIG).wpe.weight.std(), 0.02, atol=3e-3)


def embedding_without_gradient(c: Any) -> bool:
    layer = c(CONFIG)
    layer.last_hidden_state(IDS).square().sum().backward()
    return layer.wte.weight.grad is not None


def positions_not_dropped(c: Any) -> bool:
    config = tl.GPT2Config(20, 8, 64, 2, 2, dropout=1.0)
    return not c(config).last_hidden_state(IDS).any()


def positions_from_one(c: Any) -> bool:
    layer = c(CONFIG)
    layer(IDS).square().sum().backward()
    return layer.wpe.weight.grad.any(-1).tolist() == [True] * 5 + [False] * 3


TABLES = (ELEMENTWISE, NORMS, MASKS, POSITIONS, ATTENTION, FEED_FORWARD)
SHOWN: dict[str, Callable[[Any], Any]] = {
    name: shows for table in TABLES for name, shows in table.items()
}
NAMES = [name for name, each in VERSIONS.items() if each.collection == "sixth"]
SHOWN |= {n: globals()[n.replace(" ", "_")] for n in NAMES if n.replace(" ", "_") in globals()}

X, MEMORY = randn(2, 2, 5, 8, generator=torch.Generator().manual_seed(1))
PLAIN: dict[str, tuple[Any, ...]] = {  # the arguments of the constructor, if any, and of the call
    **dict.fromkeys(("gelu", "gelu_tanh"), ((), (X[0, 0, :5],))),
    "dropout": ((), (X, 0.3)),
    "Dropout": ((0.3,), (X,)),
    **dict.fromkeys(("l1_penalty", "l2_penalty"), ((), ([X[0], MEMORY],))),
    "soft_threshold": ((), (X, 0.5)),
    "smoothed_cross_entropy": ((), (X[0], arange(5), 0.1)),
    **dict.fromkeys(("LayerNorm", "RMSNorm", "LlamaRMSNorm", "GemmaRMSNorm"), ((8,), (X,))),
    "BatchNorm1d": ((5,), (X,)),
    "causal_mask": ((), (5,)),
    "sliding_window_mask": ((), (5, 2)),
    "padding_mask": ((), (torch.tensor([5, 2, 3]), 5)),
    "sinusoidal_positions": ((), (5, 8)),
    "RotaryPositions": ((8,), (X,)),
    "attention_weights": ((), (X, MEMORY)),
    "scaled_dot_product_attention": ((), (X, MEMORY, X)),
    "MultiHeadAttention": ((8, 2), (X, MEMORY, MEMORY)),
    "CausalSelfAttention": ((8, 2), (X,)),
    "GroupedQueryAttention": ((8, 4, 2), (X,)),
    "Conv1D": ((8, 4), (X,)),
    "FeedForward": ((8,), (X,)),
    "GPT2Block": ((8, 2), (X,)),
    "GPT2": ((CONFIG,), (IDS,)),
    **dict.fromkeys(
        ("PositionwiseFeedForward", "GatedFeedForward", "PackedGatedFeedForward"), ((8, 16), (X,))
    ),
    **dict.fromkeys(
        ("TransformerEncoderLayer", "PreNormTransformerEncoderLayer"), ((8, 2, 16), (X,))
    ),
    **dict.fromkeys(
        ("TransformerDecoderLayer", "PreNormTransformerDecoderLayer"), ((8, 2, 16), (X, MEMORY))
    ),
}
AT_ONCE = {  # the plain mistakes: no special situation is needed
    "erf without the root",
    "tenfold cubic term",
    "share kept for share dropped",
    "sum of means",
    "without the half",
    "hard threshold",
    "nothing taken from the right token",
    "without itself",
    "window beside itself",
    "padding at the left",
    "cosines first",
    "turned backwards",
    "scaled by the root of the keys",
    "values before keys",
    "heads of keys tiled",
    "activation squared",
    "activation on the up",
    "rows interleaved",
    "second half gates",
    "norm of the sub layer alone",
    "both sublayers at once",
    "memory first",
    "memory normed too",
    "norms in each others place",
    "exact gelu in evaluation",
    "positions from one",
}


def plain_use(candidate: Any, right: Any, constructor: tuple[Any, ...], call: tuple[Any, ...]):
    torch.manual_seed(0)
    if constructor:
        layer, candidate = drawn(right(*constructor)), candidate(*constructor)
        for mine, parameter in zip(candidate.parameters(), layer.parameters(), strict=True):
            mine.data.copy_(parameter)
        candidate.train(isinstance(candidate, tl.Dropout | tl.BatchNorm1d))
    torch.manual_seed(0)
    return candidate(*call).float()


def test_each_is_told() -> None:
    assert_each_is_told("sixth", [SimpleNamespace(__name__=name) for name in SHOWN])
    assert {VERSIONS[name].layer for name in NAMES} == set(PLAIN)
    assert set(NAMES) >= AT_ONCE


@pytest.mark.parametrize("name", NAMES)
def test_only_the_right_layer_does_it(name: str) -> None:
    version = VERSIONS[name]
    torch.manual_seed(0)
    assert SHOWN[name](getattr(tl, version.layer))
    torch.manual_seed(0)
    assert not SHOWN[name](version.candidate)


@pytest.mark.parametrize("name", NAMES)
def test_plain_use_tells_the_plain_mistakes_alone(name: str) -> None:
    version = VERSIONS[name]
    right = getattr(tl, version.layer)
    used = [plain_use(each, right, *PLAIN[version.layer]) for each in (version.candidate, right)]
    assert torch.allclose(*used, rtol=1e-4, atol=1e-5) == (name not in AT_ONCE)


def test_the_record_is_of_these() -> None:
    assert_recorded("sixth", 115)
