"""Rotary positions: by hand, against two authorities, by their laws, and their errors."""

import math

import pytest
import torch
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as turn_neighbours
from transformers.models.llama.modeling_llama import LlamaConfig, LlamaRotaryEmbedding
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as turn_halves

from tests.transformer_layers.comparisons import assert_rounded_once, assert_same
from transformer_layers import (
    LinearScaling,
    Llama3Scaling,
    RotaryPositions,
    YaRNScaling,
    halves_of_neighbours,
    neighbours_of_halves,
)


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64)


# By hand


@pytest.mark.parametrize(
    ("layout", "expected"),
    [("halves", [-3.0, -4.0, 1.0, 2.0]), ("neighbours", [-2.0, 1.0, -4.0, 3.0])],
)
def test_a_quarter_turn_by_hand(layout, expected):
    rotary = RotaryPositions(4, base=1 + 1e-12, layout=layout)  # all pairs turn alike
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
    found = rotary(x, torch.tensor([math.pi / 2], dtype=torch.float64))
    torch.testing.assert_close(found[0], torch.tensor(expected, dtype=torch.float64))


def test_the_frequency_of_each_pair_by_hand():
    found = RotaryPositions(8, base=10_000.0).frequencies()
    expected = torch.tensor([1.0, 0.1, 0.01, 0.001], dtype=torch.float64)
    torch.testing.assert_close(found, expected)


def test_only_the_first_features_of_a_head_turn_where_it_is_said_so():
    x = random(2, 5, 6)
    found = RotaryPositions(6, d_rotary=4)(x)
    assert found[..., 4:].equal(x[..., 4:])
    assert_same([found[..., :4]], [RotaryPositions(4)(x[..., :4])])


# Against two authorities


def tables(rotary, seq):
    angles = torch.arange(seq)[:, None] * rotary.frequencies()
    return angles.cos(), angles.sin()


def test_halves_equal_those_of_llama_in_transformers():
    rotary, x = RotaryPositions(6, 100.0), random(2, 3, 5, 6)
    cos, sin = (torch.cat([each, each], dim=-1)[None] for each in tables(rotary, 5))
    assert_same([rotary(x)], [turn_halves(x, x, cos, sin)[0]])


def test_neighbours_equal_those_of_gpt_j_in_transformers():
    rotary, x = RotaryPositions(6, 100.0, "neighbours"), random(2, 5, 3, 6)  # heads last but one
    cos, sin = (each[None] for each in tables(rotary, 5))
    expected = turn_neighbours(x, sin, cos)
    assert_same([rotary(x.transpose(1, 2)).transpose(1, 2)], [expected])


# By their laws


def test_permuted_weights_give_the_scores_of_the_other_layout_and_others_do_not():
    x, w_q, w_k = random(5, 7), random(12, 7), random(12, 7)  # two heads of six features

    def scores(layout, w_q, w_k):
        rotary = RotaryPositions(6, layout=layout)
        query, key = ((x @ w.T).unflatten(-1, (2, 6)).transpose(0, 1) for w in (w_q, w_k))
        return rotary(query) @ rotary(key).mT

    expected = scores("neighbours", w_q, w_k)
    permuted = [halves_of_neighbours(w, d_k=6) for w in (w_q, w_k)]
    assert_same([scores("halves", *permuted)], [expected])
    unpermuted = scores("halves", w_q, w_k)
    assert not torch.allclose(unpermuted, expected)
    # A test of one token cannot tell the layouts apart.
    assert_same([unpermuted[:, :1, :1]], [expected[:, :1, :1]])
    assert all(
        neighbours_of_halves(p, 6).equal(w) for p, w in zip(permuted, (w_q, w_k), strict=True)
    )


# Precision


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_far_positions_are_right_in_every_dtype(dtype):
    rotary, x = RotaryPositions(8).to(dtype), torch.randn(3, 8).to(dtype)
    places = torch.tensor([257, 65_521, 100_000])
    found = rotary(x, places)
    assert found.dtype == dtype
    assert_rounded_once(found, RotaryPositions(8)(x.double(), places))


def test_positions_of_each_sequence_and_of_each_head():
    rotary, x = RotaryPositions(4), random(2, 3, 5, 4)
    places = torch.tensor([[0, 0, 1, 2, 3], [0, 1, 2, 3, 4]])
    found = rotary(x, places[:, None])
    for i in range(2):
        assert_same([found[i]], [rotary(x[i], places[i])])


# Errors


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda: RotaryPositions(5), ValueError, "d_rotary must be even and at most d_k = 5, got"),
        (lambda: RotaryPositions(4, 1.0), ValueError, "base must be greater than 1, got 1.0"),
        (lambda: RotaryPositions(4, layout="pairs"), ValueError, "'halves' or 'neighbours', got"),
        (lambda: RotaryPositions(4)(torch.ones(3, 6)), ValueError, "last axis of d_k = 4, got"),
        (lambda: RotaryPositions(4)(torch.ones(4)), ValueError, r"\(..., seq, d_k\), got \(4,\)"),
        (
            lambda: RotaryPositions(4)(torch.ones(3, 4), torch.arange(2)),
            ValueError,
            r"positions must be of shape \(seq,\) = \(3,\), or broadcast to \(3,\), got \(2,\)",
        ),
        (
            lambda: RotaryPositions(4)(torch.ones(3, 4), torch.arange(3).bfloat16()),
            TypeError,
            "neighboring positions become one",
        ),
        (lambda: halves_of_neighbours(torch.ones(6, 2), 4), ValueError, "divide the first axis"),
    ],
)
def test_what_cannot_turn_is_refused(ask, error, said):
    with pytest.raises(error, match=said):
        ask()


SCALINGS = {
    "default": (None, {}),
    "linear": (LinearScaling(3.0), {"factor": 3.0}),
    "llama3": (
        Llama3Scaling(4.0, 1.0, 3.0, original_max_position_embeddings=100),
        {
            "factor": 4.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 3.0,
            "original_max_position_embeddings": 100,
        },
    ),
    "yarn": (
        YaRNScaling(6.7, original_max_position_embeddings=100),
        {"factor": 6.7, "original_max_position_embeddings": 100},
    ),
}


@pytest.mark.parametrize("kind", SCALINGS)
def test_angles_in_float32_give_the_digits_of_transformers(kind):
    base, d_k = 5e5, 96
    scaling, entries = SCALINGS[kind]
    rope = {"rope_type": kind, "rope_theta": base, **entries}
    config = LlamaConfig(
        head_dim=d_k, hidden_size=32 * d_k, max_position_embeddings=400, rope_parameters=rope
    )
    places = torch.tensor([[0, 1, 5, 100, 399, 8191, 131_071]])
    cos, sin = LlamaRotaryEmbedding(config)(torch.zeros(1), places)
    x = random(3, 7, d_k).float()
    expected, _ = turn_halves(x[None], x[None], cos, sin)
    rotary = RotaryPositions(d_k, base, scaling=scaling, angles=torch.float32)
    assert rotary(x, places[0]).equal(expected[0])


def test_how_far_float32_is_off_is_as_said():
    for positions, off in ((8192, 6e-4), (131_072, 9e-3)):
        places = torch.arange(positions)[:, None]
        exact, rounded = (
            (places.to(dtype) * RotaryPositions(128, 5e5, angles=dtype).frequencies()).cos()
            for dtype in (torch.float64, torch.float32)
        )
        assert (exact - rounded).abs().max().item() == pytest.approx(off, rel=0.2)


def test_angles_of_another_dtype_are_refused():
    with pytest.raises(ValueError, match=r"angles must be torch.float64 or torch.float32, got tor"):
        RotaryPositions(8, angles=torch.bfloat16)
    assert "angles=torch.float32" in repr(RotaryPositions(8, angles=torch.float32))
