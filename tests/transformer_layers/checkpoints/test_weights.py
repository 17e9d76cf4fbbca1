"""Which weights a GPT-2 has, and what is refused in their place."""

import re
from functools import partial

import pytest
import torch

from tests.transformer_layers.checkpoints.examples import CONFIG, random_weights
from transformer_layers import GPT2Config
from transformer_layers.checkpoints import weights as of_weights
from transformer_layers.models.gpt2.checkpoint import (
    CODEC,
    without_prefix_and_masks,
)

require_weights = partial(of_weights.require_weights, CODEC)


def test_prefix_and_masks_go():
    keys = ["wte.weight", "h.0.attn.c_attn.bias", "h.0.attn.bias", "h.11.attn.masked_bias"]
    kept = keys[:2]
    assert list(without_prefix_and_masks(dict.fromkeys(keys))) == kept
    with_prefix = {f"transformer.{key}": key for key in keys}
    found = without_prefix_and_masks({**with_prefix, "lm_head.weight": "head"})
    assert found == {**{key: key for key in kept}, "lm_head.weight": "head"}


def refused(found, message, config=CONFIG):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        require_weights(found, config, "there")


def test_refuses_missing_keys():
    found, key = random_weights(), "h.1.attn.c_proj.bias"
    del found[key]
    refused(found, f"there: {key} is missing, which a GPT-2 of n_layer = 2 has")


def test_refuses_unknown_keys():
    weights = random_weights()
    more = {**weights, "score.weight": weights["wte.weight"]}
    refused(more, "there: ['score.weight'] is not part of a GPT-2 of n_layer = 2")
    one_layer = GPT2Config(vocab_size=5, n_positions=3, n_embd=4, n_layer=1, n_head=2)
    with pytest.raises(ValueError, match=r"\['h\.1\.attn\.c_attn\.bias', .*\.\.\.\] is not part"):
        require_weights(weights, one_layer, "there")


def test_refuses_wrong_shapes():
    weights = random_weights()
    refused(
        {**weights, "wpe.weight": torch.zeros(4, 4)},
        "there: wpe.weight has the shape (4, 4), and the sizes of the config need (3, 4)",
    )


def test_says_when_a_weight_is_transposed():
    weights = random_weights()
    weights["h.1.mlp.c_fc.weight"] = weights["h.1.mlp.c_fc.weight"].T
    refused(
        weights,
        "there: h.1.mlp.c_fc.weight has the shape (16, 4), and the sizes of the config need "
        "(4, 16); it is transposed: GPT-2 stores (in, out), torch.nn.Linear (out, in)",
    )


@pytest.mark.parametrize("dtype", [torch.int64, torch.float8_e4m3fn])
def test_refuses_other_dtypes(dtype):
    weights = random_weights()
    weights["h.0.ln_1.weight"] = weights["h.0.ln_1.weight"].to(dtype)
    refused(
        weights,
        f"there: h.0.ln_1.weight is {dtype}, and weights must be float64, float32, float16 or "
        "bfloat16; a quantized checkpoint must be converted first",
    )
