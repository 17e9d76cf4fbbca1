"""The masks: which query may attend to which key."""

import pytest
import torch

from transformer_layers import causal_mask, padding_mask


def test_causal_mask_by_hand():
    expected = [[True, True, True, False], [True, True, True, True]]
    assert causal_mask(2, past=2).tolist() == expected
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True] * 3]


def test_padding_mask_by_hand():
    mask = padding_mask(torch.tensor([0, 2, 3]), seq=3)
    assert mask.tolist() == [[[False] * 3], [[True, True, False]], [[True] * 3]]


@pytest.mark.parametrize(
    ("dtype", "seq"), [(torch.int8, 200), (torch.uint8, 300), (torch.uint16, 300)]
)
def test_lengths_of_a_dtype_that_ends_below_the_length_of_the_sequence(dtype, seq):
    mask = padding_mask(torch.tensor([0, 3, 100], dtype=dtype), seq)
    assert mask.sum(dim=-1).flatten().tolist() == [0, 3, 100]


def test_masks_are_made_where_they_are_needed():
    assert causal_mask(2, device="meta").is_meta
    assert padding_mask(torch.zeros(3, dtype=torch.int64, device="meta"), seq=2).is_meta


@pytest.mark.usefixtures("as_users_run_it")
def test_masks_compile_and_export_with_dynamic_sizes():
    class Masks(torch.nn.Module):
        def forward(self, lengths, x):
            return padding_mask(lengths, x.shape[0]) & causal_mask(x.shape[0])

    def inputs(batch, seq):
        return torch.arange(batch), torch.zeros(seq)

    masks, dynamic = Masks(), torch.export.Dim.DYNAMIC
    exported = torch.export.export(masks, inputs(3, 5), dynamic_shapes=({0: dynamic}, {0: dynamic}))
    compiled = torch.compile(masks, fullgraph=True, dynamic=True, backend="eager")
    for batch, seq in ((3, 5), (4, 7)):
        expected = masks(*inputs(batch, seq))
        assert torch.equal(exported.module()(*inputs(batch, seq)), expected)
        assert torch.equal(compiled(*inputs(batch, seq)), expected)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: causal_mask(2, past=-3), ValueError, "past must be at least 0, got -3"),
        (
            lambda: padding_mask(torch.tensor([1.0]), seq=2),
            TypeError,
            "lengths must be integers, got torch.float32",
        ),
        (
            lambda: padding_mask(torch.tensor([[1, 2]]), seq=2),
            ValueError,
            r"lengths must have shape \(batch,\), got \(1, 2\)",
        ),
        (
            lambda: padding_mask(torch.tensor([1, 4]), seq=3),
            ValueError,
            r"lengths must lie between 0 and seq = 3, got \[1, 4\]",
        ),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match="^" + message):
        make()
