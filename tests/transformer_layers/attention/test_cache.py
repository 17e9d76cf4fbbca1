"""The cache of keys and values."""

import pytest
import torch

from transformer_layers import KeyValueCache

BATCH, NUM_HEADS, MAX_SEQ, D_K = 2, 3, 7, 5


def random_pair(seq):
    return tuple(torch.randn(BATCH, NUM_HEADS, seq, D_K) for _ in range(2))


def test_by_hand():
    cache = KeyValueCache(1, 1, 3, 1)
    assert cache.length == 0
    keys, values = cache.append(torch.tensor([[[[1.0], [2.0]]]]), torch.tensor([[[[3.0], [4.0]]]]))
    assert keys.flatten().tolist() == [1.0, 2.0]
    assert values.flatten().tolist() == [3.0, 4.0]
    keys, values = cache.append(torch.tensor([[[[5.0]]]]), torch.tensor([[[[6.0]]]]))
    assert keys.flatten().tolist() == [1.0, 2.0, 5.0]
    assert values.flatten().tolist() == [3.0, 4.0, 6.0]
    assert cache.length == 3


def test_the_memory_is_allocated_once():
    cache = KeyValueCache(BATCH, NUM_HEADS, MAX_SEQ, D_K)
    first = cache.append(*random_pair(2))
    second = cache.append(*random_pair(4))
    assert [x.data_ptr() for x in first] == [x.data_ptr() for x in second]


def test_shows_sizes_and_fill():
    cache = KeyValueCache(BATCH, NUM_HEADS, MAX_SEQ, D_K, dtype=torch.bfloat16)
    cache.append(*(x.bfloat16() for x in random_pair(4)))
    expected = "batch=2, num_heads=3, d_k=5, 4 of 7 positions, torch.bfloat16, cpu"
    assert repr(cache) == f"KeyValueCache({expected})"


def test_masks_by_hand():
    cache = KeyValueCache(BATCH, NUM_HEADS, MAX_SEQ, D_K)
    cache.append(*random_pair(3))
    assert cache.mask(1) is None
    assert cache.mask(2).tolist() == [[True, True, False], [True, True, True]]
    cache = KeyValueCache(BATCH, NUM_HEADS, MAX_SEQ, D_K, padding=torch.tensor([1, 0]))
    cache.append(*random_pair(3))
    assert cache.mask(1).int().tolist() == [[[0, 1, 1]], [[1, 1, 1]]]
    assert cache.mask(2).int().tolist() == [[[0, 1, 0], [0, 1, 1]], [[1, 1, 0], [1, 1, 1]]]


@pytest.mark.usefixtures("as_users_run_it")
def test_padding_is_a_number_for_each_sequence():
    with pytest.raises(
        ValueError, match=r"^padding must be of shape \(batch,\) = \(2,\), got \(3,\)$"
    ):
        KeyValueCache(BATCH, NUM_HEADS, MAX_SEQ, D_K, padding=torch.zeros(3).long())


@pytest.mark.usefixtures("as_users_run_it")
def test_too_long_is_an_error_with_both_numbers_and_adds_nothing():
    cache = KeyValueCache(BATCH, NUM_HEADS, MAX_SEQ, D_K)
    cache.append(*random_pair(5))
    message = "the cache has room for max_seq = 7 positions, got 3 after 5"
    with pytest.raises(ValueError, match=message):
        cache.append(*random_pair(3))
    assert cache.length == 5
    cache.append(*random_pair(2))


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("key", "value", "error", "message"),
    [
        (
            torch.zeros(1, 3, 2, 5),
            torch.zeros(1, 3, 2, 5),
            ValueError,
            r"the cache takes keys and values of shape \(2, 3, seq, 5\), "
            r"got \(1, 3, 2, 5\) and \(1, 3, 2, 5\)",
        ),
        (
            torch.zeros(2, 3, 2, 5).double(),
            torch.zeros(2, 3, 2, 5).double(),
            TypeError,
            "the cache holds torch.float32, got keys of torch.float64 and values of torch.float64",
        ),
    ],
)
def test_errors_of_append(key, value, error, message):
    cache = KeyValueCache(BATCH, NUM_HEADS, MAX_SEQ, D_K)
    with pytest.raises(error, match=message):
        cache.append(key, value)
    assert cache.length == 0


def test_rows_go_on_from_the_past_of_others():
    cache = KeyValueCache(3, 1, 4, 1, padding=torch.tensor([0, 1, 2]))
    numbers = torch.arange(6.0).view(3, 1, 2, 1)
    keys, values = cache.append(numbers, -numbers)
    cache.reorder(torch.tensor([2, 0, 2], dtype=torch.int32))
    assert keys.flatten().tolist() == [4, 5, 0, 1, 4, 5]
    assert values.flatten().tolist() == [-4, -5, 0, -1, -4, -5]
    assert cache.padding.tolist() == [2, 0, 2]
    assert cache.length == 2


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (torch.tensor([-1, 5]), ValueError, r"^rows must be in \[0, 2\), got \[-1, 5\]$"),
        (
            torch.tensor([1]),  # which would be taken for all
            ValueError,
            r"^rows must be of shape \(batch,\) = \(2,\), one for each sequence, got \(1,\)$",
        ),
        (torch.tensor([True, False]), TypeError, r"got torch\.bool; convert it with rows\.long"),
        ([0, 1], TypeError, "^rows must be a tensor of int64 or int32, got a list; make one with"),
    ],
)
def test_errors_of_reorder(rows, error, message):
    cache = KeyValueCache(BATCH, NUM_HEADS, MAX_SEQ, D_K, padding=torch.tensor([0, 1]))
    held = cache.append(*random_pair(2))
    before = [x.clone() for x in held]
    with pytest.raises(error, match=message):
        cache.reorder(rows)
    assert all(torch.equal(*pair) for pair in zip(held, before, strict=True))
    assert cache.padding.tolist() == [0, 1]


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((1, 1, 1, 0), ValueError, "d_k must be at least 1, got 0"),
        ((1, 1, 1.5, 1), TypeError, "max_seq must be an int, got 1.5"),
    ],
)
def test_errors_of_construction(arguments, error, message):
    with pytest.raises(error, match=message):
        KeyValueCache(*arguments)
