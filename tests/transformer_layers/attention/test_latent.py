"""Latent attention: against `transformers`, both forms, their laws, with caches, and errors."""

import itertools
import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import DeepseekV3Config, DynamicCache
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as reference

from tests.transformer_layers.comparisons import (
    assert_same,
    values_and_gradients,
    with_random_weights,
)
from tests.transformer_layers.models.llama.families import in_float64
from transformer_layers import (
    KeyValueCache,
    LatentCache,
    MultiHeadLatentAttention,
    RotaryPositions,
    YaRNScaling,
)
from transformer_layers.attention.context import context_of, context_of_pass

D_MODEL, HEADS, KV_RANK, D_NOPE, D_ROPE, D_V, Q_RANK = 6, 4, 5, 3, 8, 7, 9
SIZES = (D_MODEL, HEADS, KV_RANK, D_NOPE, D_ROPE, D_V)


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def layer_of(*sizes, **options):
    layer = MultiHeadLatentAttention(*(sizes or SIZES), **options)
    return with_random_weights(layer, std=0.6).double()


def cache_for(layer, batch=2, max_seq=9, **options):
    sizes = (batch, max_seq, layer.kv_rank, layer.d_rope)
    return LatentCache(*sizes, dtype=torch.float64, **options)


def of_transformers(layer, layout="neighbours", bias=False):
    """`DeepseekV3Attention` with the weights of a layer of ours."""
    config = DeepseekV3Config(
        hidden_size=layer.d_model,
        num_attention_heads=layer.num_heads,
        num_key_value_heads=layer.num_heads,
        kv_lora_rank=layer.kv_rank,
        q_lora_rank=layer.q_rank,
        qk_nope_head_dim=layer.d_nope,
        qk_rope_head_dim=layer.d_rope,
        v_head_dim=layer.d_v,
        rope_interleave=layout == "neighbours",
        attention_bias=bias,
        num_hidden_layers=1,
    )
    config._attn_implementation = "eager"
    theirs = reference.DeepseekV3Attention(config, layer_idx=0).double()
    theirs.load_state_dict(layer.state_dict())
    return theirs


def as_called(theirs, frequencies, past=None, first=0):
    """Theirs, called with an input alone."""

    def call(x):
        seq = x.shape[1]
        angles = torch.arange(first, first + seq)[:, None] * frequencies.repeat(2)
        allowed = torch.ones(seq, first + seq, dtype=torch.bool).tril(first)
        mask = torch.zeros(allowed.shape, dtype=x.dtype).masked_fill(~allowed, -math.inf)
        with in_float64(reference):
            output, _ = theirs(x, (angles.cos()[None], angles.sin()[None]), mask[None, None], past)
        return output

    return call


def both_forms(layer, x):
    """What a layer computes of a whole sequence, naive and absorbed."""
    context = context_of(None, x.shape[-2], x.device)
    query, rows = layer._queries(x, context), layer._rows(x, context)
    return layer.naive(query, rows, context), layer.absorbed(query, rows, context)


@pytest.mark.parametrize(
    ("layout", "q_rank", "bias"),
    [("neighbours", None, False), ("halves", Q_RANK, True)],
)
def test_values_and_gradients_equal_those_of_transformers(layout, q_rank, bias):
    positions = RotaryPositions(D_ROPE, layout=layout)
    layer = layer_of(q_rank=q_rank, positions=positions, bias=bias)
    theirs, x = of_transformers(layer, layout, bias), random(2, 11, D_MODEL)
    names = [name for name, _ in layer.named_parameters()]
    found = values_and_gradients(layer, [x], [layer.get_parameter(name) for name in names])
    call = as_called(theirs, positions.frequencies())
    expected = values_and_gradients(call, [x], [theirs.get_parameter(name) for name in names])
    assert_same(found, expected)


def test_with_a_cache_it_is_transformers_with_theirs():
    pieces = [5, 1, 3]
    layer, x = layer_of(q_rank=Q_RANK), random(2, 9, D_MODEL)
    theirs, past, cache = of_transformers(layer), DynamicCache(), cache_for(layer)
    firsts = itertools.accumulate(pieces, initial=0)
    for part, first in zip(x.split(pieces, dim=1), firsts, strict=False):
        call = as_called(theirs, layer.positions.frequencies(), past, first)
        assert_same([layer(part, cache)], [call(part)])


def test_a_scale_that_is_given_stands_in_the_place_of_the_root():
    # As in models whose positions were scaled by YaRN, of which the scale has a factor.
    layer = layer_of(scale=0.31, positions=RotaryPositions(D_ROPE, scaling=YaRNScaling(4.0, 16)))
    theirs, x = of_transformers(layer, "halves"), random(2, 9, D_MODEL)
    theirs.scaling = 0.31
    angles = layer.positions.scaling
    call = as_called(theirs, layer.positions.frequencies())
    layer.positions.scaling = _WithoutFactor(angles)
    assert_same([layer(x)], [call(x)])
    assert_same(both_forms(layer, x)[:1], both_forms(layer, x)[1:])


class _WithoutFactor:
    """The frequencies of a scaling, and no factor of the sines."""

    table_factor = 1.0

    def __init__(self, scaling):
        self.frequencies = scaling.frequencies


def test_naive_and_absorbed_are_equal_in_values_and_gradients():
    layer, x = layer_of(q_rank=Q_RANK), random(2, 7, D_MODEL)
    parameters = [each for name, each in layer.named_parameters() if not name.startswith("o_")]
    naive, absorbed = (
        values_and_gradients(lambda x, form=form: both_forms(layer, x)[form], [x], parameters)
        for form in (0, 1)
    )
    assert_same(absorbed, naive)


def test_of_few_positions_behind_many_no_keys_are_made(monkeypatch):
    layer, x = layer_of(D_MODEL, HEADS, 32, 8, 2), random(2, 30, D_MODEL)
    forms = []
    for name in ("naive", "absorbed"):
        form = getattr(layer, name)
        monkeypatch.setattr(
            layer, name, lambda *given, form=form, name=name: forms.append(name) or form(*given)
        )
    cache = cache_for(layer, max_seq=30)
    found = [layer(part, cache) for part in x.split([8, 16, 1, 2, 3], dim=1)]
    # 16 behind 8: 16 * 24 * 48 products more in scores, 8 * 32 * 16 fewer in keys and values.
    assert forms == ["naive", "naive", "absorbed", "absorbed", "absorbed"]
    assert_same([torch.cat(found, dim=1)], [layer(x)])


@pytest.mark.parametrize("pieces", [[1] * 9, [2, 0, 7]], ids=str)
def test_with_a_cache_it_is_that_of_the_whole(pieces):
    layer, x = layer_of(), random(2, 9, D_MODEL)
    cache = cache_for(layer)
    found = [layer(piece, cache) for piece in x.split(pieces, dim=1)]
    assert_same([torch.cat(found, dim=1)], [layer(x)])


def test_each_sequence_behind_its_own_padding_is_as_alone():
    layer, x = layer_of(), random(3, 9, D_MODEL)
    padding = torch.tensor([0, 4, 2])
    cache = cache_for(layer, 3, padding=padding)
    found = torch.cat([layer(piece, cache) for piece in x.split([5, 1, 1, 2], dim=1)], dim=1)
    for each, given_x, begin in zip(found, x, padding.tolist(), strict=True):
        assert_same([each[begin:]], [layer(given_x[None, begin:])[0]])


@pytest.mark.parametrize("past", [0, 6])
def test_a_models_context_brings_rotation_mask_and_takes_weights(past):
    layer, x = layer_of(), random(2, 8, D_MODEL)
    expected, places = layer(x), torch.arange(8)
    layer.positions = None
    rotary, weights, found = RotaryPositions(D_ROPE, layout="neighbours"), [], []
    cache = cache_for(layer)
    for part in x.split([past, 8 - past] if past else [8], dim=1):
        context = context_of_pass(part.shape[1], [cache], x.device)
        turn = rotary.at(places[cache.length : cache.length + part.shape[1]], x.dtype)
        found.append(layer(part, context._replace(rotation=turn, weights=weights)))
    assert_same([torch.cat(found, dim=1)], [expected])
    assert weights[-1].shape == (2, HEADS, 8 - past, 8)
    assert_same([weights[-1].sum(-1)], [torch.ones(2, HEADS, 8 - past, dtype=torch.float64)])


def test_what_a_mask_hides_is_not_seen():
    layer, x = layer_of(), random(2, 6, D_MODEL)
    mask = torch.ones(2, 6, dtype=torch.bool)
    mask[0, :2] = False
    cache = cache_for(layer)
    steps = []
    for first, last in ((0, 4), (4, 6)):
        context = context_of_pass(last - first, [cache], x.device, mask[:, :last])
        steps.append(layer(x[:, first:last], context))
    places = torch.arange(2, 6)
    alone = layer(x[:1, 2:], context_of(None, 4, x.device)._replace(position_ids=places))
    assert_same([torch.cat(steps, dim=1)[0, 2:]], [alone[0]])


def test_where_keys_are_made_by_another_module_than_a_linear_one_it_is_called():
    layer, x = layer_of(), random(2, 9, D_MODEL)
    cache, expected = cache_for(layer), layer(x)
    layer.kv_b_proj = torch.nn.Sequential(layer.kv_b_proj)
    found = [layer(part, cache) for part in x.split([8, 1], dim=1)]
    assert_same([torch.cat(found, dim=1)], [expected])


def test_no_copy_of_what_is_kept_is_made_for_each_head():
    layer, x = layer_of(D_MODEL, 64, 32, 8, 2), random(1, 301, D_MODEL)
    cache = cache_for(layer, 1, 301)
    with torch.no_grad():
        layer(x[:, :300], cache)
        made = []

        class Recording(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                result = function(*args, **(kwargs or {}))
                if isinstance(result, torch.Tensor):
                    made.append(result.untyped_storage().nbytes())
                return result

        with Recording():
            layer(x[:, 300:], cache)
    # Views of the matrix that is absorbed; keys of all heads would be four times as large.
    assert max(made) == layer.kv_b_proj.weight.nbytes < 301 * 64 * 10 * 8 / 4


@pytest.mark.usefixtures("as_users_run_it")
def test_under_autocast_with_a_cache_of_what_products_are():
    layer, x = with_random_weights(MultiHeadLatentAttention(*SIZES)), torch.randn(2, 9, D_MODEL)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        cache = LatentCache.like(layer.kv_b_proj.weight, 2, 9, KV_RANK, D_ROPE)
        found = torch.cat([layer(part, cache) for part in x.split([4, 1, 4], dim=1)], dim=1)
    assert found.dtype == torch.bfloat16
    assert_same([found.float()], [layer(x)], 0.05)  # some products that are rounded to 8 bits


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda: layer_of(6, 4, 5, 3, 3), ValueError, "in pairs: d_rope must be even, got 3"),
        (lambda: layer_of(scale=0.0), ValueError, "scale must be greater than 0, got 0.0"),
        (lambda: layer_of()(torch.ones(2, 6)), TypeError, "x is torch.float32 but the layer's"),
        (
            lambda: layer_of()(
                random(2, 3, 6), KeyValueCache(2, 1, 9, KV_RANK + D_ROPE, dtype=torch.float64)
            ),
            TypeError,
            r"latent attention needs a LatentCache, got KeyValueCache\(batch=2, num_heads=1",
        ),
        (
            lambda: layer_of()(random(2, 3, 6), LatentCache(2, 9, 4, 8, dtype=torch.float64)),
            ValueError,
            r"rows of shape \(2, 1, seq, 4 \+ 8\), got \(2, 1, 3, 13\)",
        ),
    ],
)
def test_what_it_cannot_attend_is_refused(ask, error, said):
    with pytest.raises(error, match=said):
        ask()
