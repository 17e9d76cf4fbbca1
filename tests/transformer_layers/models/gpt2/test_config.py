"""The sizes of a GPT-2: names, defaults, and what is refused."""

import dataclasses
import math

import pytest
from transformers import GPT2Config as TheirConfig

from transformer_layers import GPT2Config

pytestmark = pytest.mark.usefixtures("as_users_run_it")


def test_the_defaults_are_the_smallest_published_model():
    expected = {
        "vocab_size": 50257,
        "n_positions": 1024,
        "n_embd": 768,
        "n_layer": 12,
        "n_head": 12,
        "dropout": 0.1,
        "layer_norm_epsilon": 1e-5,
    }
    assert dataclasses.asdict(GPT2Config()) == expected


def test_names_and_defaults_are_those_of_transformers():
    ours, theirs = dataclasses.asdict(GPT2Config()), TheirConfig().to_dict()
    dropout = ours.pop("dropout")
    assert {name: theirs[name] for name in ours} == ours
    assert {theirs[name] for name in ("embd_pdrop", "attn_pdrop", "resid_pdrop")} == {dropout}


def test_a_config_is_a_value():
    assert GPT2Config(n_layer=2) == GPT2Config(50257, 1024, 768, 2)
    assert GPT2Config(n_layer=2) != GPT2Config(n_layer=3)
    assert len({GPT2Config(), GPT2Config(dropout=0.1)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'n_layer'"):
        GPT2Config().n_layer = 3
    assert dataclasses.replace(GPT2Config(), dropout=0.0).dropout == 0.0


@pytest.mark.parametrize(
    "sizes",
    [
        {"vocab_size": 1, "n_positions": 1, "n_embd": 1, "n_layer": 1, "n_head": 1},
        {"n_embd": 1600, "n_head": 25, "n_layer": 48},
        {"dropout": 0},
        {"dropout": 1.0},
    ],
)
def test_what_is_allowed(sizes):
    config = GPT2Config(**sizes)
    assert {name: getattr(config, name) for name in sizes} == sizes


@pytest.mark.parametrize("name", ["vocab_size", "n_positions", "n_embd", "n_layer", "n_head"])
def test_errors_of_a_size(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        GPT2Config(**{name: 0})
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got -3"):
        GPT2Config(**{name: -3})
    for value in (12.0, "12", True, None):
        with pytest.raises(
            TypeError, match=f"{name} must be an int, got {value!r} of type {type(value).__name__}"
        ):
            GPT2Config(**{name: value})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"n_embd": 770},
            "n_embd must be divisible by n_head, got n_embd=770 and n_head=12",
        ),
        ({"dropout": -0.1}, "dropout must be between 0 and 1, got -0.1"),
        ({"dropout": 1.5}, "dropout must be between 0 and 1, got 1.5"),
        ({"dropout": math.nan}, "dropout must be between 0 and 1, got nan"),
        ({"layer_norm_epsilon": 0.0}, "layer_norm_epsilon must be greater than 0, got 0.0"),
        ({"layer_norm_epsilon": math.nan}, "layer_norm_epsilon must be greater than 0, got nan"),
    ],
)
def test_errors_of_options(options, message):
    with pytest.raises(ValueError, match=message):
        GPT2Config(**options)
