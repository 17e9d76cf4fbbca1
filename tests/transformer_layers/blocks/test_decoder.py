"""The decoder layers, and the stacks, against torch's."""

import itertools

import pytest
import torch
from torch import nn

from tests.transformer_layers.comparisons import (
    assert_same,
    relative_error,
    unit_roundoff,
    values_and_gradients,
    with_random_weights,
)
from transformer_layers import (
    PreNormTransformerDecoderLayer,
    PreNormTransformerEncoderLayer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
    causal_mask,
    gelu,
    padding_mask,
)
from transformer_layers.attention.memory import DecoderCache, reordered

BATCH, SEQ, MEMORY_SEQ, D_MODEL, NUM_HEADS, D_FF = 3, 5, 7, 8, 2, 11
LENGTHS = torch.tensor([7, 2, 4])
over_layers = pytest.mark.parametrize(
    "layer_class", [TransformerDecoderLayer, PreNormTransformerDecoderLayer]
)
INPUTS = ("query_proj", "key_proj", "value_proj")


def random_layer(layer_class, dropout=0.0, **options):
    return with_random_weights(layer_class(D_MODEL, NUM_HEADS, D_FF, dropout, **options)).double()


def random_input(*leading, seq=SEQ):
    return torch.randn(*leading, seq, D_MODEL, dtype=torch.float64)


def random_inputs():
    return random_input(BATCH), random_input(BATCH, seq=MEMORY_SEQ)


def in_torchs_order(layer):
    """Ours, the three input projections of each attention in one, in the order of torch's layer."""
    found = []
    for attention in (layer.self_attention, layer.cross_attention):
        inputs = [getattr(attention, name) for name in INPUTS]
        found += [torch.cat([each.weight for each in inputs])]
        found += [torch.cat([each.bias for each in inputs])]
        found += [attention.output_proj.weight, attention.output_proj.bias]
    rest = [layer.feed_forward.linear1, layer.feed_forward.linear2]
    rest += [layer.norm1, layer.norm2, layer.norm3]
    return [*found, *(parameter for module in rest for parameter in (module.weight, module.bias))]


def torchs(layer):
    theirs = nn.TransformerDecoderLayer(
        D_MODEL,
        NUM_HEADS,
        D_FF,
        0.0,
        activation=layer.feed_forward.activation,
        layer_norm_eps=layer.norm1.eps,
        batch_first=True,
        norm_first=isinstance(layer, PreNormTransformerDecoderLayer),
    ).double()
    with torch.no_grad():
        for parameter, ours in zip(theirs.parameters(), in_torchs_order(layer), strict=True):
            parameter.copy_(ours)
    return theirs.train(layer.training)


def compare_with_torch(layer, x, memory, *masks, **theirs_options):
    theirs = torchs(layer)
    expected = values_and_gradients(
        lambda x, memory: theirs(x, memory, **theirs_options),
        [x, memory],
        list(theirs.parameters()),
    )
    result, *gradients = values_and_gradients(
        lambda x, memory: layer(x, memory, *masks), [x, memory], list(layer.parameters())
    )
    for parameter, gradient in zip(layer.parameters(), gradients[2:], strict=True):
        parameter.data = gradient
    assert_same([result, *gradients[:2], *in_torchs_order(layer)], expected)


# Against torch


@over_layers
def test_equals_torch_with_gelu_and_another_eps(layer_class):
    compare_with_torch(random_layer(layer_class, activation=gelu, eps=0.5), *random_inputs())


@over_layers
def test_equals_torch_with_both_masks(layer_class):
    layer = random_layer(layer_class)
    mask, memory_mask = causal_mask(SEQ), padding_mask(LENGTHS, MEMORY_SEQ)
    compare_with_torch(
        layer,
        *random_inputs(),
        mask,
        memory_mask,
        tgt_mask=~mask,
        memory_key_padding_mask=~memory_mask[:, 0],
    )


@over_layers
def test_equals_torch_with_a_mask_for_each_target_position(layer_class):
    mask = torch.rand(SEQ, MEMORY_SEQ) < 0.6
    mask[:, 0] = True
    x, memory = random_inputs()
    compare_with_torch(random_layer(layer_class), x, memory, None, mask, memory_mask=~mask)


def transformer_of_torch(encoder, decoder):
    norm_first = encoder.norm is not None
    theirs = nn.Transformer(
        D_MODEL, NUM_HEADS, 2, 3, D_FF, 0.0, batch_first=True, norm_first=norm_first
    ).double()
    with torch.no_grad():
        for ours, layer in zip(decoder.layers, theirs.decoder.layers, strict=True):
            layer.load_state_dict(torchs(ours).state_dict())
        for ours, layer in zip(encoder.layers, theirs.encoder.layers, strict=True):
            attention = ours.self_attention
            inputs = [getattr(attention, name) for name in INPUTS]
            parts = [torch.cat([each.weight for each in inputs])]
            parts += [torch.cat([each.bias for each in inputs])]
            modules = [attention.output_proj, ours.feed_forward.linear1, ours.feed_forward.linear2]
            modules += [ours.norm1, ours.norm2]
            parts += [each for module in modules for each in (module.weight, module.bias)]
            for parameter, part in zip(layer.parameters(), parts, strict=True):
                parameter.copy_(part)
        for stack, ours in ((theirs.encoder, encoder), (theirs.decoder, decoder)):
            if ours.norm is not None:
                stack.norm.load_state_dict(ours.norm.state_dict())
            else:
                stack.norm = None
    return theirs


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # torch's, of a norm first
@pytest.mark.parametrize("pre_norm", [False, True])
def test_stacks_equal_torchs_transformer(pre_norm):
    kinds = (
        (PreNormTransformerEncoderLayer, PreNormTransformerDecoderLayer)
        if pre_norm
        else (TransformerEncoderLayer, TransformerDecoderLayer)
    )

    def norm():
        return with_random_weights(nn.LayerNorm(D_MODEL)).double() if pre_norm else None

    encoder = TransformerEncoder([random_layer(kinds[0]) for _ in range(2)], norm())
    decoder = TransformerDecoder([random_layer(kinds[1]) for _ in range(3)], norm())
    theirs = transformer_of_torch(encoder, decoder)
    source, target = random_input(BATCH, seq=MEMORY_SEQ), random_input(BATCH)
    mask, source_mask = causal_mask(SEQ), padding_mask(LENGTHS, MEMORY_SEQ)
    hidden = ~source_mask[:, 0]

    def ours(source, target):
        return decoder(target, encoder(source, source_mask), mask, source_mask)

    def reference(source, target):
        return theirs(
            source,
            target,
            tgt_mask=~mask,
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
        )

    assert_same(
        values_and_gradients(ours, [source, target], []),
        values_and_gradients(reference, [source, target], []),
    )


# By hand


def test_post_norm_by_hand():
    # Both attentions and the feed-forward network give their last bias: 0, (4, 0) and (0, 0).
    layer = TransformerDecoderLayer(2, 1, 3).double().eval()
    with torch.no_grad():
        for part in (layer.self_attention, layer.cross_attention, layer.feed_forward):
            for parameter in part.parameters():
                parameter.zero_()
        layer.cross_attention.output_proj.bias.copy_(torch.tensor([4.0, 0.0]))
        layer.norm3.weight.copy_(torch.tensor([3.0, 5.0]))
    x = torch.tensor([[1.0, 3.0]], dtype=torch.float64)
    # (1, 3) is normalized to (-1, 1); (3, 1) to (1, -1), which the third norm scales.
    expected = torch.tensor([[3.0, -5.0]], dtype=torch.float64)
    output = layer(x, torch.ones(4, 2, dtype=torch.float64))
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-4)  # eps keeps them smaller


# Caches


def new_cache(rows, room=SEQ):
    return DecoderCache(rows, NUM_HEADS, room, D_MODEL // NUM_HEADS, dtype=torch.float64)


@over_layers
def test_cached_equals_uncached(layer_class):
    layer, (x, memory) = random_layer(layer_class), random_inputs()
    memory_mask = padding_mask(LENGTHS, MEMORY_SEQ)
    cache, ends = new_cache(BATCH), [0, 2, 3, SEQ]
    pieces = [
        layer(x[:, begin:end], memory, None, memory_mask, cache)
        for begin, end in itertools.pairwise(ends)
    ]
    assert_same(
        [torch.cat(pieces, dim=1)], [layer(x, memory, causal_mask(SEQ), memory_mask).detach()]
    )


@over_layers
def test_several_rows_for_each_of_the_memory(layer_class):
    layer, beams = random_layer(layer_class), 4
    x, memory = random_input(BATCH * beams), random_input(BATCH, seq=MEMORY_SEQ)
    memory_mask = padding_mask(LENGTHS, MEMORY_SEQ)
    with torch.no_grad():
        output = layer(x, memory, None, memory_mask, new_cache(BATCH * beams))
        repeated = [each.repeat_interleave(beams, dim=0) for each in (memory, memory_mask)]
        assert_same([output], [layer(x, repeated[0], causal_mask(SEQ), repeated[1])])


def test_rows_go_on_from_the_past_of_others():
    layer, (x, memory) = random_layer(TransformerDecoderLayer), random_inputs()
    memory = memory[:1]
    rows = torch.tensor([2, 0, 2])
    with torch.no_grad():
        cache = new_cache(BATCH)
        layer(x[:, :3], memory, cache=cache)
        reordered([cache], rows)
        output = layer(x[:, 3:], memory, cache=cache)
        pasts = torch.cat([x[rows, :3], x[:, 3:]], dim=1)
        expected = layer(pasts, memory.expand(BATCH, -1, -1), causal_mask(SEQ))
    assert_same([output], [expected[:, 3:]])


def test_the_memory_of_a_cache_is_computed_once():
    layer, (x, memory) = random_layer(TransformerDecoderLayer), random_inputs()
    calls = []
    layer.cross_attention.key_proj.register_forward_hook(lambda *_: calls.append(1))
    cache = new_cache(BATCH)
    for i in range(SEQ):
        layer(x[:, i : i + 1], memory, cache=cache)
    assert len(calls) == 1


@pytest.mark.usefixtures("as_users_run_it")
def test_errors_of_caches():
    layer, (x, memory) = random_layer(TransformerDecoderLayer), random_inputs()
    cache = new_cache(BATCH, room=8)
    with pytest.raises(ValueError, match=r"^pass either mask or cache: .* got a mask of shape \(5"):
        layer(x, memory, causal_mask(SEQ), None, cache)
    layer(x, memory, cache=cache)
    with pytest.raises(ValueError, match=r"^the cache holds keys and values of another memory"):
        layer(x[:, :1], memory.clone(), cache=cache)
    with pytest.raises(ValueError, match=r"^each row of the memory must have .* got 3 for 2$"):
        layer(x, memory[:2], cache=new_cache(BATCH))


# Dropout, dtypes, derivatives


@over_layers
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_low_precision_stays_near_float64(layer_class, dtype):
    layer, inputs = random_layer(layer_class).to(dtype), [x.to(dtype) for x in random_inputs()]
    output = layer(*inputs, causal_mask(SEQ))
    assert output.dtype == dtype
    exact = layer.double()(*(x.double() for x in inputs), causal_mask(SEQ))
    # Some twenty steps in a row, each rounded, relative to the largest element.
    assert relative_error(output, exact) <= 20 * unit_roundoff(dtype)


# Errors


@over_layers
@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((10, 3, 8), "d_model must be divisible by num_heads, got d_model=10 and num_heads=3"),
        ((8, 2, 0), "d_ff must be at least 1, got 0"),
    ],
)
def test_errors_of_construction(layer_class, arguments, message):
    with pytest.raises(ValueError, match=r"^" + message):
        layer_class(*arguments)


@over_layers
@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("memory", "memory_mask", "error", "message"),
    [
        (torch.zeros(3, 7, 9), None, ValueError, "key must have a last axis of d_model = 8"),
        (torch.zeros(2, 7, 8), None, ValueError, "query, key, value must have the same leading"),
        (
            torch.zeros(3, 7, 8),
            torch.ones(3, 7, dtype=torch.bool),
            ValueError,
            r"mask must have the shape .* for padding pass padding_mask",
        ),
    ],
)
def test_errors_of_the_memory(layer_class, memory, memory_mask, error, message):
    layer = layer_class(D_MODEL, NUM_HEADS, D_FF)
    with pytest.raises(error, match=r"^" + message):
        layer(torch.zeros(BATCH, SEQ, D_MODEL), memory, None, memory_mask)


@pytest.mark.usefixtures("as_users_run_it")
def test_a_stack_of_one_layer_twice_is_refused():
    layer = TransformerDecoderLayer(D_MODEL, NUM_HEADS, D_FF)
    with pytest.raises(
        ValueError, match=r"^each of the 3 layers must be a layer of its own, got 1"
    ):
        TransformerDecoder([layer] * 3)
