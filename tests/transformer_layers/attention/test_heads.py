"""Cutting the model's axis into heads."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_layers.attention.heads import merge_heads, split_heads

LEADING = st.lists(st.integers(0, 3), max_size=3)


def test_by_hand():
    x = torch.arange(12.0).reshape(2, 6)
    expected = torch.tensor([[[0.0, 1, 2], [6, 7, 8]], [[3, 4, 5], [9, 10, 11]]])
    assert torch.equal(split_heads(x, num_heads=2), expected)
    assert torch.equal(merge_heads(expected), x)


@given(LEADING, st.integers(0, 5), st.integers(1, 4), st.integers(1, 3))
def test_each_head_is_a_slice_of_the_features(leading, seq, num_heads, d_k):
    x = torch.randn(*leading, seq, num_heads * d_k)
    heads = split_heads(x, num_heads)
    assert heads.shape == (*leading, num_heads, seq, d_k)
    for h in range(num_heads):
        assert torch.equal(heads[..., h, :, :], x[..., h * d_k : (h + 1) * d_k])


@given(LEADING, st.integers(0, 5), st.integers(1, 4), st.integers(1, 3))
def test_merging_undoes_splitting(leading, seq, num_heads, d_k):
    x = torch.randn(*leading, seq, num_heads * d_k)
    assert torch.equal(merge_heads(split_heads(x, num_heads)), x)
