"""The definition of scaled dot-product attention."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.transformer_layers.comparisons import (
    assert_same,
    relative_error,
    unit_roundoff,
    values_and_gradients,
)
from transformer_layers import (
    attention_weights,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)

BATCH, HEADS, Q_SEQ, KV_SEQ, D_K, D_V = 2, 3, 5, 7, 11, 4


def random_inputs(*leading, q_seq=Q_SEQ, kv_seq=KV_SEQ, dtype=torch.float64, scale=1.0):
    """Query, key and value; `scale` makes scores of a few hundred."""
    return (
        scale * torch.randn(*leading, q_seq, D_K, dtype=dtype),
        scale * torch.randn(*leading, kv_seq, D_K, dtype=dtype),
        torch.randn(*leading, kv_seq, D_V, dtype=dtype),
    )


def mask_with_dead_rows(*shape):
    """A random mask in which the second query may attend to nothing, and the others to a key."""
    mask = torch.rand(shape) < 0.5
    mask[..., 0] = True
    mask[..., 1, :] = False
    return mask


def flat(tensors):
    return torch.cat([x.flatten() for x in tensors])


MASKS = {
    "none": lambda: None,
    "queries and keys": lambda: mask_with_dead_rows(Q_SEQ, KV_SEQ),
    "batch": lambda: mask_with_dead_rows(BATCH, 1, Q_SEQ, KV_SEQ),
    "heads": lambda: mask_with_dead_rows(1, HEADS, Q_SEQ, KV_SEQ),
    "each": lambda: mask_with_dead_rows(BATCH, HEADS, Q_SEQ, KV_SEQ),
    "causal": lambda: causal_mask(Q_SEQ, KV_SEQ - Q_SEQ),
    "padding": lambda: padding_mask(torch.tensor([4, 7]), KV_SEQ)[:, None],
    "an empty sequence": lambda: padding_mask(torch.tensor([0, 7]), KV_SEQ)[:, None],
    "one key": lambda: torch.eye(Q_SEQ, KV_SEQ, dtype=torch.bool),
}


# By hand


def test_weights_by_hand():
    # d_k = 4, so that the scores are half the products: 0 and log 3; the weights are as 1 to 3.
    query = torch.tensor([[2.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    key = torch.tensor([[0.0, 9.0, 9.0, 9.0], [math.log(3), 5.0, 5.0, 5.0]], dtype=torch.float64)
    weights = attention_weights(query, key)
    torch.testing.assert_close(weights, torch.tensor([[0.25, 0.75]], dtype=torch.float64))
    value = torch.tensor([[4.0, 0.0, 8.0], [0.0, 4.0, 8.0]], dtype=torch.float64)
    output = scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(output, torch.tensor([[1.0, 3.0, 8.0]], dtype=torch.float64))


def test_weights_are_the_quotients_of_exponentials():
    query, key, _ = random_inputs()
    mask = mask_with_dead_rows(Q_SEQ, KV_SEQ)
    weights = attention_weights(query, key, mask)
    for i in range(Q_SEQ):
        products = [
            sum(q * k for q, k in zip(query[i].tolist(), row, strict=True)) for row in key.tolist()
        ]
        exponentials = [
            math.exp(product / math.sqrt(D_K)) if allowed else 0.0
            for product, allowed in zip(products, mask[i].tolist(), strict=True)
        ]
        expected = [each / (sum(exponentials) or 1.0) for each in exponentials]
        torch.testing.assert_close(weights[i], torch.tensor(expected, dtype=torch.float64))


# Against torch's kernels


@pytest.mark.parametrize("backend", [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION])
@pytest.mark.parametrize("scale", [1.0, 8.0])  # 8: scores of 200, a softmax that is nearly one-hot
@pytest.mark.parametrize("make_mask", MASKS.values(), ids=MASKS.keys())
def test_equals_torchs_kernel(make_mask, scale, backend):
    inputs, mask = random_inputs(BATCH, HEADS, scale=scale), make_mask()
    if backend == SDPBackend.FLASH_ATTENTION:  # it takes values as wide as keys only
        inputs = (*inputs[:2], torch.randn_like(inputs[1]))
    with sdpa_kernel(backend):
        expected = values_and_gradients(
            lambda q, k, v: nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask),
            inputs,
            [],
        )
    ours = values_and_gradients(
        lambda q, k, v: scaled_dot_product_attention(q, k, v, mask), inputs, []
    )
    # The gradients are measured together: with one key those of query and key are 0.
    assert_same([ours[0], flat(ours[1:])], [expected[0], flat(expected[1:])])


@pytest.mark.parametrize(
    ("query", "key", "value"),
    [
        ((), (), ()),
        ((3,), (3,), (3,)),
        ((2, 3), (2, 1), (1, 3)),
        ((2, 1), (3,), (2, 3)),
        ((2, 5, 3), (2, 5, 3), (2, 5, 3)),
        ((0, 3), (0, 3), (0, 3)),
    ],
)
def test_leading_axes_broadcast_as_torchs_do(query, key, value):
    inputs = (
        torch.randn(*query, Q_SEQ, D_K, dtype=torch.float64),
        torch.randn(*key, KV_SEQ, D_K, dtype=torch.float64),
        torch.randn(*value, KV_SEQ, D_V, dtype=torch.float64),
    )
    ours = values_and_gradients(scaled_dot_product_attention, inputs, [])
    with sdpa_kernel(SDPBackend.MATH):
        expected = values_and_gradients(nn.functional.scaled_dot_product_attention, inputs, [])
    assert_same(ours, expected)


def test_float32_is_as_near_to_float64_as_torchs_kernel():
    inputs = random_inputs(BATCH, HEADS, scale=3.0)
    mask = mask_with_dead_rows(Q_SEQ, KV_SEQ)
    exact = values_and_gradients(lambda *qkv: scaled_dot_product_attention(*qkv, mask), inputs, [])
    rounded = values_and_gradients(
        lambda *qkv: scaled_dot_product_attention(*qkv, mask), [x.float() for x in inputs], []
    )
    # Scores reach 60; each is a sum of d_k products, and its rounding error multiplies the weight.
    largest_score = (inputs[0] @ inputs[1].mT).abs().max().item() / math.sqrt(D_K)
    tolerance = 4 * largest_score * unit_roundoff(torch.float32)
    assert tolerance < 2e-5
    assert_same(rounded, exact, tolerance)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("make_mask", MASKS.values(), ids=MASKS.keys())
def test_low_precision_is_rounded_once(dtype, make_mask):
    inputs, mask = random_inputs(BATCH, HEADS, dtype=dtype), make_mask()
    exact = [x.double() for x in inputs]
    weights = attention_weights(*inputs[:2], mask)
    output = scaled_dot_product_attention(*inputs, mask)
    assert weights.dtype == output.dtype == dtype
    # One rounding of at most u, and float32's errors, which are a thousandth of it.
    tolerance = 1.01 * unit_roundoff(dtype)
    assert relative_error(weights, attention_weights(*exact[:2], mask)) <= tolerance
    assert relative_error(output, scaled_dot_product_attention(*exact, mask)) <= tolerance


def test_large_scores_fit_into_float16():
    query = torch.full((3, 64), 40.0, dtype=torch.float16)  # products 102400, float16 ends at 65504
    key = query.clone()
    value = torch.tensor([[1.0], [2.0], [6.0]], dtype=torch.float16)
    assert attention_weights(query, key).sum(dim=-1).tolist() == pytest.approx([1.0] * 3, abs=1e-3)
    output = scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(output, torch.full((3, 1), 3.0, dtype=torch.float16))


# Queries that may attend to nothing


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_dead_row_gives_zero_and_gradient_zero_beside_live_rows(dtype):
    inputs = random_inputs(BATCH, HEADS, dtype=dtype)
    mask = mask_with_dead_rows(Q_SEQ, KV_SEQ)
    weights, *weights_gradients = values_and_gradients(
        lambda q, k: attention_weights(q, k, mask), inputs[:2], []
    )
    output, *gradients = values_and_gradients(
        lambda *qkv: scaled_dot_product_attention(*qkv, mask), inputs, []
    )
    assert (weights[..., 1, :] == 0).all()
    assert (output[..., 1, :] == 0).all()
    assert (gradients[0][..., 1, :] == 0).all()
    assert (weights_gradients[0][..., 1, :] == 0).all()
    assert all(x.isfinite().all() for x in (*gradients, *weights_gradients))
    live = [i for i in range(Q_SEQ) if i != 1]
    assert (output[..., live, :] != 0).any(dim=-1).all()
    # The live rows are what they are without the dead one.
    alone = values_and_gradients(
        lambda q, k, v: scaled_dot_product_attention(q, k, v, mask[live]),
        (inputs[0][..., live, :], *inputs[1:]),
        [],
    )
    torch.testing.assert_close(output[..., live, :], alone[0])


def test_no_nan_arises_on_the_way_back_from_a_dead_row():
    inputs = [x.requires_grad_() for x in random_inputs(BATCH)]
    output = scaled_dot_product_attention(*inputs, mask_with_dead_rows(Q_SEQ, KV_SEQ))
    with torch.autograd.set_detect_anomaly(True):  # an error at any NaN, even one cut off later
        output.sum().backward()


def test_a_mask_with_nothing_allowed_gives_zeros():
    inputs = random_inputs()
    mask = torch.zeros(Q_SEQ, KV_SEQ, dtype=torch.bool)
    for x in values_and_gradients(
        lambda *qkv: scaled_dot_product_attention(*qkv, mask), inputs, []
    ):
        assert torch.equal(x, torch.zeros_like(x))


@pytest.mark.parametrize("mask", [None, torch.ones(Q_SEQ, 0, dtype=torch.bool)])
def test_no_keys_give_zeros(mask):
    query, key, value = random_inputs(BATCH, kv_seq=0)
    assert attention_weights(query, key, mask).shape == (BATCH, Q_SEQ, 0)
    output = scaled_dot_product_attention(query, key, value, mask)
    assert torch.equal(output, torch.zeros(BATCH, Q_SEQ, D_V, dtype=torch.float64))


# Laws


@st.composite
def cases(draw):
    """Inputs and a mask of drawn shapes, scale, offset and dtype."""
    leading = draw(st.lists(st.integers(1, 3), max_size=2))
    q_seq, kv_seq = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    scale = draw(st.sampled_from([1e-3, 1.0, 30.0]))
    offset = draw(st.sampled_from([0.0, 5.0]))
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    torch.manual_seed(draw(st.integers(0, 2**16)))
    query, key, value = random_inputs(*leading, q_seq=q_seq, kv_seq=kv_seq, dtype=dtype)
    share = draw(st.sampled_from([0.0, 0.3, 1.0]))
    mask = torch.rand(*leading, q_seq, kv_seq) < share
    return scale * query + offset, scale * key + offset, value, mask


@given(cases())
def test_rows_sum_to_one_or_to_zero(case):
    query, key, _, mask = case
    weights = attention_weights(query, key, mask)
    assert (weights >= 0).all()
    assert (weights[~mask] == 0).all()
    torch.testing.assert_close(weights.sum(dim=-1), mask.any(dim=-1).to(weights.dtype))


@given(cases())
def test_outputs_lie_between_the_values(case):
    query, key, value, _ = case
    output = scaled_dot_product_attention(query, key, value)
    slack = 8 * torch.finfo(value.dtype).eps * value.abs().max()
    assert (output <= value.amax(dim=-2, keepdim=True) + slack).all()
    assert (output >= value.amin(dim=-2, keepdim=True) - slack).all()


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_the_keys_does_not_matter(case, random):
    query, key, value, mask = (x.double() if x.is_floating_point() else x for x in case)
    order = random.sample(range(key.shape[-2]), key.shape[-2])
    shuffled = scaled_dot_product_attention(
        query, key[..., order, :], value[..., order, :], mask[..., order]
    )
    assert relative_error(shuffled, scaled_dot_product_attention(query, key, value, mask)) < 1e-10


@given(cases())
def test_masked_keys_are_as_good_as_absent(case):
    query, key, value, mask = (x.double() if x.is_floating_point() else x for x in case)
    row = mask.reshape(-1, mask.shape[-1])[0]  # one row for all queries, so that keys can be cut
    masked = scaled_dot_product_attention(query, key, value, row.expand(mask.shape))
    cut = scaled_dot_product_attention(query, key[..., row, :], value[..., row, :])
    torch.testing.assert_close(masked, cut, rtol=0, atol=1e-12)


def test_a_nan_behind_the_mask_still_spreads():
    # 0 * NaN is NaN: the same in torch, and why causality is tested with finite numbers.
    query, key, value = random_inputs(kv_seq=Q_SEQ)
    value[-1] = math.nan
    output = scaled_dot_product_attention(query, key, value, causal_mask(Q_SEQ))
    assert output.isnan().all()
    kernel = nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=causal_mask(Q_SEQ)
    )
    assert kernel.isnan().all()


# Derivatives


# torch loads its rules of forward-mode differentiation with its own deprecated function.
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("mask", [None, mask_with_dead_rows(3, 4)], ids=["no mask", "dead row"])
def test_derivatives_of_first_and_second_order(mask):
    inputs = [x.requires_grad_() for x in random_inputs(2, q_seq=3, kv_seq=4)]

    def attend(*qkv):
        return scaled_dot_product_attention(*qkv, mask)

    assert torch.autograd.gradcheck(attend, inputs, check_forward_ad=True, fast_mode=True)
    assert torch.autograd.gradgradcheck(attend, inputs, fast_mode=True)


# Dropout


def test_dropout_acts_on_the_weights():
    query, key, _ = random_inputs(q_seq=40, kv_seq=50)
    weights = attention_weights(query, key)
    identity = torch.eye(50, dtype=torch.float64)
    dropped = scaled_dot_product_attention(query, key, identity, dropout_p=0.25)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], weights[kept] / 0.75)
    # 2000 draws: a share within five standard deviations of 3/4.
    assert abs(kept.double().mean() - 0.75) < 5 * math.sqrt(0.25 * 0.75 / 2000)
    assert (dropped.sum(dim=-1) - 1).abs().max() > 1e-2  # no longer means


# Input of all kinds


# Errors


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype)


QKV = (zeros(2, 3, 5, 8), zeros(2, 3, 7, 8), zeros(2, 3, 7, 4))


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        (
            (zeros(5, 8), zeros(7, 8, dtype=torch.float64), zeros(7, 4)),
            TypeError,
            "query, key, value must be of one floating dtype, got torch.float32, torch.float64, "
            r"torch.float32; convert them, for example with .to\(torch.float32\)",
        ),
        (
            [x.long() for x in QKV],
            TypeError,
            "query, key, value must be of one floating dtype, got torch.int64, "
            "torch.int64, torch.int64",
        ),
        (
            [x.bool() for x in QKV],
            TypeError,
            "query, key, value must be of one floating dtype, got torch.bool, "
            "torch.bool, torch.bool",
        ),
        (
            [x.cfloat() for x in QKV],
            TypeError,
            "query, key, value must be of one floating dtype, got torch.complex64, "
            "torch.complex64, torch.complex64",
        ),
        (
            (zeros(8), zeros(7, 8), zeros(7, 4)),
            ValueError,
            r"query, key, value must have two axes or more, got shapes \(8,\), \(7, 8\), \(7, 4\)",
        ),
        (
            (zeros(5, 8), zeros(7, 9), zeros(7, 4)),
            ValueError,
            r"query and key must have the same d_k > 0 as last axis, "
            r"got shapes \(5, 8\), \(7, 9\), \(7, 4\)",
        ),
        (
            (zeros(5, 0), zeros(7, 0), zeros(7, 4)),
            ValueError,
            r"query and key must have the same d_k > 0 as last axis, "
            r"got shapes \(5, 0\), \(7, 0\), \(7, 4\)",
        ),
        (
            (zeros(5, 8), zeros(7, 8), zeros(6, 4)),
            ValueError,
            r"key and value must have the same kv_seq, got shapes \(5, 8\), \(7, 8\), \(6, 4\)",
        ),
        (
            (zeros(2, 5, 8), zeros(3, 7, 8), zeros(3, 7, 4)),
            ValueError,
            r"the leading axes of query, key, value must broadcast, "
            r"got shapes \(2, 5, 8\), \(3, 7, 8\), \(3, 7, 4\)",
        ),
        (
            (zeros(2, 5, 8), zeros(1, 7, 8), zeros(3, 7, 4)),
            ValueError,
            r"the leading axes of query, key, value must broadcast, "
            r"got shapes \(2, 5, 8\), \(1, 7, 8\), \(3, 7, 4\)",
        ),
        (
            (*QKV, None, 1.5),
            ValueError,
            "dropout_p must be between 0 and 1, got 1.5",
        ),
        (
            (*QKV, None, -0.5),
            ValueError,
            "dropout_p must be between 0 and 1, got -0.5",
        ),
        (
            (*QKV, None, math.nan),
            ValueError,
            "dropout_p must be between 0 and 1, got nan",
        ),
    ],
)
def test_errors_of_inputs(inputs, error, message):
    with pytest.raises(error, match="^" + message):
        scaled_dot_product_attention(*inputs)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("query", "key", "error", "message"),
    [
        (
            zeros(5, 8),
            zeros(7, 8, dtype=torch.float64),
            TypeError,
            "query, key must be of one floating dtype, got torch.float32, torch.float64; convert",
        ),
        (
            zeros(5, 8, dtype=torch.int64),
            zeros(7, 8, dtype=torch.int64),
            TypeError,
            "query, key must be of one floating dtype, got torch.int64, torch.int64; convert",
        ),
        (
            zeros(5, 8),
            zeros(8),
            ValueError,
            r"query, key must have two axes or more, got shapes \(5, 8\), \(8,\)$",
        ),
        (
            zeros(5, 8),
            zeros(7, 9),
            ValueError,
            r"query and key must have the same d_k > 0 as last axis, "
            r"got shapes \(5, 8\), \(7, 9\)$",
        ),
        (
            zeros(5, 0),
            zeros(7, 0),
            ValueError,
            r"query and key must have the same d_k > 0 as last axis, "
            r"got shapes \(5, 0\), \(7, 0\)$",
        ),
        (
            zeros(2, 5, 8),
            zeros(3, 7, 8),
            ValueError,
            r"the leading axes of query, key must broadcast, "
            r"got shapes \(2, 5, 8\), \(3, 7, 8\)$",
        ),
    ],
)
def test_errors_of_the_weights(query, key, error, message):
    with pytest.raises(error, match="^" + message):
        attention_weights(query, key)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (
            zeros(5, 7),
            TypeError,
            "mask must be boolean with True = may attend, got torch.float32; pass mask == 0 if it "
            r"was to be added to the scores \(0 or -inf\), mask == 1 if it holds ones and zeros",
        ),
        (
            zeros(5, 7, dtype=torch.int64),
            TypeError,
            "mask must be boolean with True = may attend, got torch.int64; pass mask == 0 if",
        ),
        (
            zeros(5, 7, dtype=torch.uint8),
            TypeError,
            "mask must be boolean with True = may attend, got torch.uint8; pass mask == 0 if",
        ),
        (
            zeros(7, dtype=torch.bool),
            ValueError,
            r"mask must have the shape of the scores \(2, 3, 5, 7\), \(..., q_seq, kv_seq\), or "
            r"broadcast to it with two axes or more, got \(7,\)",
        ),
        (zeros(2, 7, dtype=torch.bool), ValueError, r"mask must have the shape .*, got \(2, 7\)"),
        (zeros(5, 6, dtype=torch.bool), ValueError, r"mask must have the shape .*, got \(5, 6\)"),
        # These would enlarge the scores.
        (
            zeros(4, 1, 3, 5, 7, dtype=torch.bool),
            ValueError,
            r"mask must have the shape .*, got \(4, 1, 3, 5, 7\)",
        ),
        (
            zeros(1, 2, 3, 5, 7, dtype=torch.bool),
            ValueError,
            r"mask must have the shape .*, got \(1, 2, 3, 5, 7\)",
        ),
        (
            zeros(2, 5, 7, dtype=torch.bool),
            ValueError,
            r"mask must have the shape .*, got \(2, 5, 7\)",
        ),
    ],
)
def test_errors_of_masks(mask, error, message):
    with pytest.raises(error, match="^" + message):
        scaled_dot_product_attention(*QKV, mask)
    with pytest.raises(error, match="^" + message):
        attention_weights(*QKV[:2], mask)


@pytest.mark.usefixtures("as_users_run_it")
def test_a_mask_that_would_enlarge_a_batch_of_one_is_refused():
    query = zeros(1, 3, 5, 8)
    with pytest.raises(
        ValueError,
        match=r"^mask must have the shape of the scores \(1, 3, 5, 5\).*got \(2, 1, 5, 5\)",
    ):
        scaled_dot_product_attention(query, query, query, zeros(2, 1, 5, 5, dtype=torch.bool))


@pytest.mark.usefixtures("as_users_run_it")
def test_a_mask_for_batch_or_heads_is_never_guessed():
    # As many sequences as heads: (3, 5, 5) could be a mask for each sequence or for each head.
    query = torch.randn(3, 3, 5, 8)
    mask = mask_with_dead_rows(3, 5, 5)
    message = (
        r"mask of shape \(3, 5, 5\) fits the scores \(3, 3, 5, 5\) in two ways, its first axis "
        "being axis 0 or axis 1 of theirs; give it 4 axes, with 1 where it is shared"
    )
    with pytest.raises(ValueError, match="^" + message):
        attention_weights(query, query, mask)
    for_heads = attention_weights(query, query, mask[None])
    for_batch = attention_weights(query, query, mask[:, None])
    one = query[1, 2]
    torch.testing.assert_close(for_heads[1, 2], attention_weights(one, one, mask[2]))
    torch.testing.assert_close(for_batch[1, 2], attention_weights(one, one, mask[1]))
    # Where only one reading fits, broadcasting is that of torch.
    query = query[:2]
    assert torch.equal(attention_weights(query, query, mask), for_heads[:2])
    shared = attention_weights(query, query, mask[:1])
    assert torch.equal(shared, attention_weights(query, query, mask[0]))
