"""The encoder layers against torch's."""

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
    PreNormTransformerEncoderLayer,
    TransformerEncoderLayer,
    causal_mask,
    gelu,
    padding_mask,
)

BATCH, SEQ, D_MODEL, NUM_HEADS, D_FF = 3, 5, 8, 2, 11
over_layers = pytest.mark.parametrize(
    "layer_class", [TransformerEncoderLayer, PreNormTransformerEncoderLayer]
)
PROJECTIONS = ("query_proj", "key_proj", "value_proj")


def random_layer(layer_class, dropout=0.0, **options):
    layer = layer_class(D_MODEL, NUM_HEADS, D_FF, dropout, **options)
    return with_random_weights(layer).double()


def random_input(*leading, seq=SEQ):
    return torch.randn(*leading, seq, D_MODEL, dtype=torch.float64)


def parameters_in_torchs_order(layer):
    """Ours, the three input projections in one, as torch's layer lists its parameters."""
    attention, feed_forward = layer.self_attention, layer.feed_forward
    inputs = [getattr(attention, name) for name in PROJECTIONS]
    modules = [attention.output_proj, feed_forward.linear1, feed_forward.linear2]
    modules += [layer.norm1, layer.norm2]
    return [
        torch.cat([each.weight for each in inputs]),
        torch.cat([each.bias for each in inputs]),
        *(parameter for module in modules for parameter in (module.weight, module.bias)),
    ]


def torchs(layer, dropout=0.0):
    theirs = nn.TransformerEncoderLayer(
        D_MODEL,
        NUM_HEADS,
        D_FF,
        dropout,
        activation=layer.feed_forward.activation,
        layer_norm_eps=layer.norm1.eps,
        batch_first=True,
        norm_first=isinstance(layer, PreNormTransformerEncoderLayer),
    ).double()
    with torch.no_grad():
        for parameter, ours in zip(
            theirs.parameters(), parameters_in_torchs_order(layer), strict=True
        ):
            parameter.copy_(ours)
    return theirs


def gradients_in_torchs_order(layer, x, mask):
    """Output and gradients of ours, through the stacked projections that torch has."""
    result, x_gradient, *gradients = values_and_gradients(
        lambda x: layer(x, mask), [x], list(layer.parameters())
    )
    for parameter, gradient in zip(layer.parameters(), gradients, strict=True):
        parameter.data = gradient
    return [result, x_gradient, *parameters_in_torchs_order(layer)]


def compare_with_torch(layer, x, mask=None, **theirs_options):
    theirs = torchs(layer)
    expected = values_and_gradients(
        lambda x: theirs(x, **theirs_options), [x], list(theirs.parameters())
    )
    assert_same(gradients_in_torchs_order(layer, x, mask), expected)


# By hand


def test_post_norm_by_hand():
    # The attention gives 0, the feed-forward network its bias (0.5, 0).
    layer = TransformerEncoderLayer(2, 1, 3).double().eval()
    with torch.no_grad():
        for parameter in (*layer.self_attention.parameters(), *layer.feed_forward.parameters()):
            parameter.zero_()
        layer.feed_forward.linear2.bias.copy_(torch.tensor([0.5, 0.0]))
        layer.norm2.weight.copy_(torch.tensor([3.0, 5.0]))
        layer.norm2.bias.copy_(torch.tensor([0.0, 7.0]))
    output = layer(torch.tensor([[1.0, 3.0], [9.0, 5.0]], dtype=torch.float64))
    # (1, 3) is normalized to (-1, 1); (-1, 1) + (0.5, 0) to (-1, 1) again. (9, 5) to (1, -1).
    expected = torch.tensor([[-3.0, 12.0], [3.0, 2.0]], dtype=torch.float64)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-4)  # eps keeps them a bit smaller


def test_pre_norm_by_hand():
    layer = PreNormTransformerEncoderLayer(2, 1, 3).double().eval()
    with torch.no_grad():
        for parameter in (*layer.self_attention.parameters(), *layer.feed_forward.parameters()):
            parameter.zero_()
        layer.self_attention.output_proj.bias.copy_(torch.tensor([10.0, 0.0]))
        layer.feed_forward.linear2.bias.copy_(torch.tensor([2.0, 0.0]))
    x = torch.tensor([[1.0, 3.0], [9.0, 5.0]], dtype=torch.float64)
    assert torch.equal(layer(x), x + torch.tensor([12.0, 0.0]))


# Against torch


@over_layers
def test_equals_torch_with_another_activation_and_eps(layer_class):
    mask = padding_mask(torch.tensor([5, 0, 3]), SEQ)
    layer = random_layer(layer_class, activation=gelu, eps=0.5)
    compare_with_torch(layer, random_input(BATCH), mask, src_key_padding_mask=~mask[:, 0])


@over_layers
def test_equals_torch_with_a_mask_for_each_sequence(layer_class):
    mask = padding_mask(torch.tensor([5, 1, 3]), SEQ) & causal_mask(SEQ)
    theirs = ~mask.repeat_interleave(NUM_HEADS, dim=0)
    compare_with_torch(random_layer(layer_class), random_input(BATCH), mask, src_mask=theirs)


@over_layers
@pytest.mark.parametrize("padded", [False, True])
def test_equals_torchs_fused_inference_path(layer_class, padded):
    layer, x = random_layer(layer_class).eval(), random_input(BATCH)
    mask = padding_mask(torch.tensor([5, 1, 3]), SEQ) if padded else None
    theirs = torchs(layer).eval()
    with torch.inference_mode():
        expected = theirs(x, src_key_padding_mask=None if mask is None else ~mask[:, 0])
        output = layer(x, mask)
    if mask is not None:  # that path gives zeros for padding
        real = mask[:, 0, :, None]
        output, expected = output * real, expected * real
    assert_same([output], [expected])


# Laws


@over_layers
def test_any_leading_axes_are_sequences_by_themselves(layer_class):
    layer, x = random_layer(layer_class), random_input(2, 3)
    expected = torch.stack([layer(each) for each in x.flatten(0, 1)]).reshape(x.shape)
    assert_same([layer(x)], [expected])


# Dropout


@over_layers
def test_the_argument_sets_all_three_dropouts(layer_class):
    layer = layer_class(D_MODEL, NUM_HEADS, D_FF, dropout=0.25)
    assert layer.self_attention.dropout == layer.dropout.p == layer.feed_forward.dropout.p == 0.25
    assert layer_class(D_MODEL, NUM_HEADS, D_FF).dropout.p == 0.1


# Dtypes and derivatives


@over_layers
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_low_precision_stays_near_float64(layer_class, dtype):
    layer, x = random_layer(layer_class).to(dtype), random_input(BATCH).to(dtype)
    output = layer(x, causal_mask(SEQ))
    assert output.dtype == dtype
    exact = layer.double()(x.double(), causal_mask(SEQ))
    # A dozen steps in a row, each rounded, relative to the largest element.
    assert relative_error(output, exact) <= 12 * unit_roundoff(dtype)


# Errors


@over_layers
@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((10, 3, 8), "d_model must be divisible by num_heads, got d_model=10 and num_heads=3"),
        ((8, 2, 0), "d_ff must be at least 1, got 0"),
        ((8, 2, 8, 1.5), "dropout must be between 0 and 1, got 1.5"),
    ],
)
def test_errors_of_construction(layer_class, arguments, message):
    with pytest.raises(ValueError, match="^" + message):
        layer_class(*arguments)


@over_layers
@pytest.mark.usefixtures("as_users_run_it")
def test_errors_of_eps_and_activation(layer_class):
    with pytest.raises(ValueError, match=r"^eps must be greater than 0, got 0\.0"):
        layer_class(8, 2, 8, eps=0.0)
    message = r"activation must be a function .*, such as .*gelu; got 'gelu' of type str"
    with pytest.raises(TypeError, match="^" + message):
        layer_class(8, 2, 8, activation="gelu")


@over_layers
@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("x", "mask", "error", "message"),
    [
        (torch.zeros(3, 5, 7), None, ValueError, r"(x|query) must have a last axis of d_model = 8"),
        (
            torch.zeros(3, 5, 8).double(),
            None,
            TypeError,
            r"(x|query) is torch.float64 but the layer's",
        ),
        (torch.zeros(3, 5, 8), torch.zeros(5, 5), TypeError, "mask must be boolean"),
        (
            torch.zeros(3, 5, 8),
            torch.ones(3, 5, dtype=torch.bool),
            ValueError,
            r"mask must have the shape .*, got \(3, 5\); for padding pass padding_mask",
        ),
    ],
)
def test_errors_of_input(layer_class, x, mask, error, message):
    with pytest.raises(error, match="^" + message):
        layer_class(8, 2, 4)(x, mask)
