"""The sizes of a GPT-2: names, defaults, and what is refused."""

import dataclasses

import pytest
from transformers import GPT2Config as TheirConfig

from transformer_layers import GPT2Config

pytestmark = pytest.mark.usefixtures("as_users_run_it")


def test_names_and_defaults_are_those_of_transformers():
    ours, theirs = dataclasses.asdict(GPT2Config()), TheirConfig().to_dict()
    dropout = ours.pop("dropout")
    assert {name: theirs[name] for name in ours} == ours
    assert {theirs[name] for name in ("embd_pdrop", "attn_pdrop", "resid_pdrop")} == {dropout}


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
        ({"dropout": 1.5}, "dropout must be between 0 and 1, got 1.5"),
        ({"layer_norm_epsilon": 0.0}, "layer_norm_epsilon must be greater than 0, got 0.0"),
    ],
)
def test_errors_of_options(options, message):
    with pytest.raises(ValueError, match=message):
        GPT2Config(**options)
