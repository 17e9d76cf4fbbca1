"""Cutting the model's axis into heads."""

import torch

from transformer_layers.attention.heads import merge_heads, split_heads


def test_by_hand():
    x = torch.arange(12.0).reshape(2, 6)
    expected = torch.tensor([[[0.0, 1, 2], [6, 7, 8]], [[3, 4, 5], [9, 10, 11]]])
    assert torch.equal(split_heads(x, num_heads=2), expected)
    assert torch.equal(merge_heads(expected), x)
