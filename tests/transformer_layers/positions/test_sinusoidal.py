"""The sinusoidal table of positions."""

import math

import pytest
import torch

from transformer_layers import sinusoidal_positions


def test_by_hand():
    table = sinusoidal_positions(3, 4, dtype=torch.float64)
    expected = [
        [0.0, 1.0, 0.0, 1.0],
        [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)],
        [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)],
    ]
    torch.testing.assert_close(table, torch.tensor(expected, dtype=torch.float64))


def test_is_exact_in_float32_far_out_too():
    table = sinusoidal_positions(20_000, 6)
    assert table.dtype == torch.float32
    rounding = torch.finfo(torch.float32).eps / 2  # of angles in float32 it would be 1e-3
    for pos in (10_007, 19_999):
        angles = [pos / 10000 ** (2 * i / 6) for i in range(3)]
        expected = [function(angle) for angle in angles for function in (math.sin, math.cos)]
        assert table[pos].tolist() == pytest.approx(expected, rel=0, abs=rounding)


def test_dtype_is_the_default_one_unless_asked_for():
    torch.set_default_dtype(torch.float64)
    try:
        assert sinusoidal_positions(2, 4).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert sinusoidal_positions(2, 4, dtype=torch.bfloat16).dtype == torch.bfloat16


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1, 4), ValueError, "seq must be at least 0, got -1"),
        ((3, 4.5), TypeError, "d_model must be an int, got 4.5"),
    ],
)
def test_errors(arguments, error, message):
    with pytest.raises(error, match="^" + message):
        sinusoidal_positions(*arguments)
