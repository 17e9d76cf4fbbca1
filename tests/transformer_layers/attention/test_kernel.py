"""Torch's kernel, as the layers call it, is the definition."""

import math

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from tests.transformer_layers.comparisons import (
    assert_same,
    relative_error,
    unit_roundoff,
    values_and_gradients,
)
from transformer_layers import (
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)
from transformer_layers.attention.kernel import fused_attention

BATCH, NUM_HEADS, Q_SEQ, KV_SEQ, D_K = 2, 3, 5, 7, 11

over_backends = pytest.mark.parametrize(
    "backend", [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], ids=["math", "flash"]
)


def random_inputs(*leading, q_seq=Q_SEQ, kv_seq=KV_SEQ, dtype=torch.float64):
    return (
        torch.randn(*leading, NUM_HEADS, q_seq, D_K, dtype=dtype),
        torch.randn(*leading, NUM_HEADS, kv_seq, D_K, dtype=dtype),
        torch.randn(*leading, NUM_HEADS, kv_seq, D_K, dtype=dtype),
    )


def random_mask(*shape):
    """A mask in which the second query may attend to nothing, and the others to the first key."""
    mask = torch.rand(shape) < 0.5
    mask[..., 0] = True
    if shape[-2] > 1:
        mask[..., 1, :] = False
    return mask


MASKS = {
    "none": lambda: None,
    "each sequence": lambda: random_mask(BATCH, Q_SEQ, KV_SEQ),
    "an empty sequence": lambda: padding_mask(torch.tensor([0, 7]), KV_SEQ),
    "causal, with a past": lambda: causal_mask(Q_SEQ, KV_SEQ - Q_SEQ),
}
over_masks = pytest.mark.parametrize("make_mask", MASKS.values(), ids=MASKS.keys())


def defined(query, key, value, mask=None):
    """The definition, with the axis of the heads put into the mask."""
    if mask is not None and mask.ndim > 2:
        mask = mask.unsqueeze(-3)
    return scaled_dot_product_attention(query, key, value, mask)


@over_backends
@over_masks
def test_kernel_and_definition_agree(make_mask, backend):
    inputs, mask = random_inputs(BATCH), make_mask()
    with sdpa_kernel(backend):
        ours = values_and_gradients(lambda *qkv: fused_attention(*qkv, mask), inputs, [])
    assert_same(ours, values_and_gradients(lambda *qkv: defined(*qkv, mask), inputs, []))


@over_backends
def test_causal_kernel_and_definition_agree(backend):
    inputs = random_inputs(BATCH, kv_seq=Q_SEQ)
    with sdpa_kernel(backend):
        ours = values_and_gradients(lambda *qkv: fused_attention(*qkv, is_causal=True), inputs, [])
    mask = causal_mask(Q_SEQ)
    assert_same(ours, values_and_gradients(lambda *qkv: defined(*qkv, mask), inputs, []))


@pytest.mark.parametrize("leading", [(), (1, 2, 3)])
def test_any_leading_axes(leading):
    inputs, mask = random_inputs(*leading), random_mask(*leading, Q_SEQ, KV_SEQ)
    ours = values_and_gradients(lambda *qkv: fused_attention(*qkv, mask), inputs, [])
    assert_same(ours, values_and_gradients(lambda *qkv: defined(*qkv, mask), inputs, []))


def test_an_empty_batch():
    inputs = random_inputs(2, 0)
    for mask in (None, random_mask(2, 0, Q_SEQ, KV_SEQ)):
        ours = values_and_gradients(lambda *qkv, mask=mask: fused_attention(*qkv, mask), inputs, [])
        assert [x.shape for x in ours] == [inputs[0].shape, *(x.shape for x in inputs)]


@pytest.mark.parametrize(("q_seq", "kv_seq"), [(0, KV_SEQ), (Q_SEQ, 0), (0, 0)])
def test_no_queries_or_no_keys_give_zeros(q_seq, kv_seq):
    inputs = random_inputs(BATCH, q_seq=q_seq, kv_seq=kv_seq)
    for mask in (None, torch.ones(q_seq, kv_seq, dtype=torch.bool)):
        output = fused_attention(*inputs, mask)
        assert torch.equal(output, torch.zeros(BATCH, NUM_HEADS, q_seq, D_K, dtype=torch.float64))


@over_backends
def test_a_dead_row_gives_zero_and_gradient_zero_beside_live_rows(backend):
    inputs = random_inputs(BATCH, dtype=torch.float16)
    with sdpa_kernel(backend):
        output, *gradients = values_and_gradients(
            lambda *qkv: fused_attention(*qkv, random_mask(Q_SEQ, KV_SEQ)), inputs, []
        )
    assert (output[..., 1, :] == 0).all()
    assert (gradients[0][..., 1, :] == 0).all()
    assert all(x.isfinite().all() for x in gradients)
    assert (output[..., [0, 2, 3, 4], :] != 0).any(dim=-1).all()


def test_a_kernel_that_gives_nan_for_a_dead_row_does_no_harm(monkeypatch):
    def unforgiving(query, key, value, attn_mask, **options):
        scores = query @ key.transpose(-2, -1) / math.sqrt(D_K)
        return scores.masked_fill(~attn_mask, -math.inf).softmax(dim=-1) @ value

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", unforgiving)
    inputs, mask = random_inputs(BATCH), random_mask(Q_SEQ, KV_SEQ)
    ours = values_and_gradients(lambda *qkv: fused_attention(*qkv, mask), inputs, [])
    assert_same(ours, values_and_gradients(lambda *qkv: defined(*qkv, mask), inputs, []))


@over_backends
@pytest.mark.parametrize(
    ("dtype", "factor"),
    # float16 and bfloat16 are computed in float32: one rounding of the result, and one of the
    # weights. In float32 a score of 12 is off by 12 roundings, and so is its weight, relatively.
    [(torch.float32, 16), (torch.float16, 2), (torch.bfloat16, 2)],
    ids=str,
)
def test_low_precision_stays_near_float64(dtype, factor, backend):
    inputs = random_inputs(BATCH, dtype=dtype)
    mask = random_mask(Q_SEQ, KV_SEQ)
    exact = defined(*(x.double() for x in inputs), mask)
    with sdpa_kernel(backend):
        output = fused_attention(*inputs, mask)
    assert output.dtype == dtype
    assert relative_error(output, exact) <= factor * unit_roundoff(dtype)


@pytest.mark.usefixtures("as_users_run_it")
def test_a_mask_beside_is_causal_is_refused():
    inputs = random_inputs(BATCH, kv_seq=Q_SEQ)
    message = (
        r"pass either mask or is_causal, got a mask of shape \(5, 5\) and is_causal=True; "
        r"combine them with mask & causal_mask\(seq\)"
    )
    with pytest.raises(ValueError, match="^" + message):
        fused_attention(*inputs, causal_mask(Q_SEQ), is_causal=True)


class LargestTensor(TorchDispatchMode):
    """Notes the number of elements of the largest tensor that an operation returns."""

    def __init__(self):
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for x in result if isinstance(result, tuple | list) else [result]:
            if isinstance(x, torch.Tensor):
                self.numel = max(self.numel, x.numel())
        return result


def largest_tensor_of_a_step(seq, *leading, **options):
    inputs = random_inputs(*leading, q_seq=seq, kv_seq=seq, dtype=torch.float32)
    inputs = [x.requires_grad_() for x in inputs]
    with LargestTensor() as largest:
        fused_attention(*inputs, **options).sum().backward()
    return largest.numel


@pytest.mark.parametrize("leading", [(), (1, 1)])
@pytest.mark.parametrize("kind", ["causal", "padding", "none"])
def test_memory_grows_with_the_sequence_and_not_its_square(kind, leading):
    seq = 256
    options = {
        "causal": {"is_causal": True},
        "padding": {"mask": torch.ones(*leading, 1, seq, dtype=torch.bool)},
        "none": {},
    }[kind]
    assert largest_tensor_of_a_step(seq, *leading, **options) <= 2 * NUM_HEADS * seq * D_K
    with sdpa_kernel(SDPBackend.MATH):  # the weights are seen where they are made
        assert largest_tensor_of_a_step(seq, *leading, **options) >= NUM_HEADS * seq**2
