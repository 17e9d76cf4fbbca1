"""Scalings of rotary frequencies: against those of `transformers` in float64, and by their laws."""

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from tests.transformer_layers.comparisons import assert_same
from tests.transformer_layers.models.llama.families import in_float64
from transformer_layers import (
    DynamicNTKScaling,
    LinearScaling,
    Llama3Scaling,
    LongRoPEScaling,
    NTKScaling,
    RotaryPositions,
    YaRNScaling,
)

SCALINGS = [
    LinearScaling(3.0),
    Llama3Scaling(),
    Llama3Scaling(32.0, 1.5, 3.0, 300),
    YaRNScaling(4.0, 4096),
    YaRNScaling(40.0, 100, beta_fast=8.0, beta_slow=2.0, truncate=False),
    YaRNScaling(2.0, 512, attention_factor=1.25),
    YaRNScaling(8.0, 512, mscale=0.7, mscale_all_dim=0.5),
]
TYPES = {LinearScaling: "linear", Llama3Scaling: "llama3", YaRNScaling: "yarn"}


@pytest.mark.parametrize("scaling", SCALINGS, ids=repr)
def test_frequencies_and_factor_equal_those_of_transformers(scaling):
    d_k, base = 12, 500_000.0
    given = {name: value for name, value in vars(scaling).items() if value is not None}
    kind = TYPES[type(scaling)]
    config = LlamaConfig(
        head_dim=d_k, rope_parameters={"rope_type": kind, "rope_theta": base, **given}
    )
    with in_float64():
        frequencies, factor = ROPE_INIT_FUNCTIONS[kind](config, device="cpu")
    assert frequencies.dtype == torch.float64
    assert_same([RotaryPositions(d_k, base, scaling=scaling).frequencies()], [frequencies])
    assert scaling.table_factor == pytest.approx(factor, rel=1e-12)


LENGTHS = torch.tensor([[1, 15, 16], [17, 18, 100]])


@pytest.mark.parametrize(
    ("kind", "scaling"),
    [
        ("dynamic", DynamicNTKScaling(4.0, 16)),
        ("longrope", LongRoPEScaling((1.0, 1.5, 2.0), (1.0, 3.0, 9.0), 16, 4.0)),
        ("longrope", LongRoPEScaling((1.0, 1.5, 2.0), (2.0, 3.0, 9.0), 16, 1.0)),
        ("longrope", LongRoPEScaling((1.5,) * 3, (4.0,) * 3, 16, 4.0, attention_factor=1.25)),
    ],
)
def test_frequencies_for_each_length_equal_those_of_transformers(kind, scaling):
    given = {name: value for name, value in vars(scaling).items() if value is not None}
    given = {name: list(x) if isinstance(x, tuple) else x for name, x in given.items()}
    config = LlamaConfig(
        head_dim=6,
        max_position_embeddings=16,
        rope_parameters={"rope_type": kind, "rope_theta": 100.0, **given},
    )
    rotary = RotaryPositions(6, 100.0, scaling=scaling, angles=torch.float32)
    found = rotary.frequencies(length=LENGTHS).flatten(0, 1)
    for length, row in zip(LENGTHS.flatten(), found, strict=True):
        wanted, factor = ROPE_INIT_FUNCTIONS[kind](config, "cpu", seq_len=length)
        torch.testing.assert_close(row, wanted, rtol=2e-7, atol=0)
        assert scaling.table_factor == pytest.approx(factor, rel=1e-12)
    assert rotary.frequencies().equal(rotary.frequencies(length=torch.tensor(16)))


@pytest.mark.parametrize(
    "scaling",
    [DynamicNTKScaling(2.0, 4), LongRoPEScaling((1.0, 2.0), (3.0, 4.0), 4, 2.0)],
)
def test_a_row_is_turned_as_it_is_alone(scaling):
    rotary, x = RotaryPositions(4, scaling=scaling), torch.randn(2, 3, 7, 4)
    places = torch.stack([torch.arange(7), torch.arange(7).clamp(max=3)])[:, None]
    turned = rotary(x, places)
    for row in range(2):
        assert turned[row].equal(rotary(x[row], places[row]))
    assert rotary(x[:, :, :0]).shape == (2, 3, 0, 4)


def test_the_ntk_aware_base_is_that_of_the_longest_sequence_of_dynamic_ntk():
    factor, length = 4.0, 64
    config = LlamaConfig(
        head_dim=16,
        max_position_embeddings=length,
        rope_parameters={"rope_type": "dynamic", "rope_theta": 1e4, "factor": 1.0},
    )
    with in_float64():  # with a factor of 1 it scales by the length seen over that of training
        frequencies, _ = ROPE_INIT_FUNCTIONS["dynamic"](config, "cpu", seq_len=int(factor * length))
    assert_same([RotaryPositions(16, scaling=NTKScaling(factor)).frequencies()], [frequencies])


def test_yarn_multiplies_scores_by_the_square_of_its_factor():
    x = torch.randn(5, 8, dtype=torch.float64)
    scaling = YaRNScaling(4.0, 512)
    turned = RotaryPositions(8, scaling=scaling)(x)
    assert_same([(turned * turned).sum(-1)], [(x * x).sum(-1) * scaling.table_factor**2])


def test_how_long_sequences_become_is_at_least_the_factor_times_those_of_training():
    assert [each(4.0).longest(16) for each in (LinearScaling, NTKScaling)] == [64, 64]
    assert DynamicNTKScaling(4.0, 16).longest(16) == 64
    assert LongRoPEScaling((1.0,), (2.0,), 4096, 32.0).longest(131_072) == 131_072
    assert YaRNScaling(4.0, 32_768).longest(40_960) == 131_072
    assert YaRNScaling(4.0, 32_768).longest(262_144) == 262_144
    assert Llama3Scaling().longest(8192) == 65_536
    assert Llama3Scaling(32.0).longest(131_072) == 131_072  # as Llama 3.2 is published


def test_one_pair_is_scaled_without_a_division_by_zero():
    for scaling in (
        NTKScaling(2.0),
        DynamicNTKScaling(2.0, 16),
        YaRNScaling(2.0, 16),
        Llama3Scaling(),
    ):
        assert RotaryPositions(2, scaling=scaling).frequencies().isfinite().all()


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: NTKScaling(-1.0), "factor must be greater than 0, got -1.0"),
        (lambda: YaRNScaling(2.0, 16, attention_factor=0.0), "attention_factor must be greater"),
        (
            lambda: LongRoPEScaling((1.0,), (1.0, 2.0), 16, 2.0),
            "must have a number for each pair of features, got 1 and 2",
        ),
        (
            lambda: RotaryPositions(4, scaling=LongRoPEScaling((1.0,), (1.0,), 16, 2.0)),
            "must have a number for each of 2 pairs of features that turn, got 1",
        ),
        (lambda: Llama3Scaling(8.0, 4.0, 4.0), "high_freq_factor must be greater than"),
    ],
)
def test_what_scales_nothing_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()
