"""The cache of latents."""

import pytest
import torch

from transformer_layers import GroupedQueryAttention, KeyValueCache, LatentCache

BATCH, MAX_SEQ, KV_RANK, D_ROPE = 2, 7, 5, 4


def random(seq):
    return torch.randn(BATCH, 1, seq, KV_RANK + D_ROPE)


def empty(**options):
    return LatentCache(BATCH, MAX_SEQ, KV_RANK, D_ROPE, **options)


def test_by_hand():
    cache = LatentCache(1, 2, 2, 1)
    for row in ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]):
        rows, latents = cache.append(torch.tensor([[[row]]]))
    assert rows.tolist() == [[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]]
    assert latents.tolist() == [[[[1.0, 2.0], [4.0, 5.0]]]]
    assert cache.length == 2


def test_bytes_of_deepseek_v3_a_token():
    # Of 61 blocks with 128 heads, in bfloat16; keys and values of all heads would be 3.9 MB.
    assert 61 * LatentCache(1, 1, 512, 64, dtype=torch.bfloat16).nbytes == 70_272
    assert 61 * KeyValueCache(1, 128, 1, 128, dtype=torch.bfloat16).nbytes == 3_997_696


def test_each_sequence_gets_the_past_of_another():
    cache, part = empty(padding=torch.tensor([0, 1])), random(3)
    rows, _ = cache.append(part)
    cache.reorder(torch.tensor([1, 1]))
    assert torch.equal(rows, part[[1, 1]])
    assert cache.padding.tolist() == [1, 1]


def test_of_a_weight_it_has_device_and_dtype():
    weight = torch.ones(1, dtype=torch.bfloat16, device="meta")
    cache = LatentCache.like(weight, BATCH, MAX_SEQ, KV_RANK, D_ROPE)
    rows, _ = cache.append(random(2).to("meta", torch.bfloat16))
    assert (rows.device.type, rows.dtype) == ("meta", torch.bfloat16)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda: LatentCache(2, 7, 0, 4), ValueError, "kv_rank must be at least 1, got 0"),
        (
            lambda: empty().append(random(2)[..., 1:]),
            ValueError,
            r"rows of shape \(2, 1, seq, 5 \+ 4\), got \(2, 1, 2, 8\)",
        ),
        (
            lambda: empty().append(random(2).double()),
            TypeError,
            "the cache holds torch.float32, got rows of torch.float64",
        ),
        (
            lambda: GroupedQueryAttention(6, 2, 1)(torch.randn(2, 3, 6), empty()),
            TypeError,
            r"no values, got values of shape \(2, 1, 3, 3\); keep keys and values in a KeyValueCa",
        ),
    ],
)
def test_what_it_cannot_keep_is_refused(ask, error, said):
    with pytest.raises(error, match=said):
        ask()


def test_nothing_is_added_of_what_is_refused():
    cache = empty()
    cache.append(random(3))
    for wrong in (random(5), random(2).double(), random(2)[..., 1:]):
        with pytest.raises((TypeError, ValueError)):
            cache.append(wrong)
    assert cache.length == 3


def test_its_repr_tells_sizes_and_how_full_it_is():
    cache = empty()
    cache.append(random(3))
    assert repr(cache) == (
        "LatentCache(batch=2, kv_rank=5, d_rope=4, 3 of 7 positions, torch.float32, cpu)"
    )
