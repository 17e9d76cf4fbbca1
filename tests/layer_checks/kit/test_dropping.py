"""What dropout can make of rows."""

import pytest
import torch
from torch import nn

from layer_checks.kit.dropping import (
    elements_dropped,
    independent,
    one_of,
    parts_dropped,
    seen_in_training,
    survivors,
)

P = 0.2


def test_all_choices_are_there() -> None:
    assert survivors(2, P).tolist() == [[0.0, 0.0], [0.0, 1.25], [1.25, 0.0], [1.25, 1.25]]


def test_parts_are_summed_and_the_rest_is_kept() -> None:
    parts = [torch.ones(3, 2).double(), 10 * torch.ones(3, 2).double()]
    sums, dropped = parts_dropped(parts, torch.tensor([0.5, 0.25]).double(), P)
    assert sums.shape == (4, 3, 2)
    assert sums[:, 0, 0].tolist() == [0.5, 13.0, 1.75, 14.25]
    assert dropped.tolist() == [[True, True], [True, False], [False, True], [False, False]]


def test_a_row_is_looked_up() -> None:
    rows = torch.randn(400, 3, dtype=torch.float64)
    possible, dropped = elements_dropped(rows, P)
    once = nn.functional.dropout(rows, P)
    one_of(once, possible, dropped, P)
    with pytest.raises(AssertionError, match=r"^not equal: "):
        one_of(nn.functional.dropout(once, P), possible, dropped, P)
    with pytest.raises(AssertionError, match=r"^not equal: "):
        one_of(rows / (1 - P), possible, dropped, P)  # nothing is dropped
    with pytest.raises(AssertionError, match=r"^not equal: "):
        one_of(once * (1 - P), possible, dropped, P)  # nothing is divided


def test_what_is_seen_does_not_depend_on_the_draws() -> None:
    x = torch.randn(3000)
    seen = [[float(each) for each in seen_in_training(nn.Dropout(p), x)] for p in (0.0, 0.3)]
    assert seen == [[0.0, 10.0], [3.0, 0.0]]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_what_is_shared_along_an_axis_is_not_independent(axis: int) -> None:
    dropped = torch.rand(12, 10, 8) < P
    independent(dropped, P)
    with pytest.raises(AssertionError, match=r"^not equal: "):
        independent(dropped.narrow(axis, 0, 1).expand_as(dropped), P)
    independent(dropped[:1, :1, :1], P)
