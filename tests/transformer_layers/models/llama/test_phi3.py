"""Phi-3: its files have several maps as one, and a part of a head's features can turn alone."""

import re
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, LlamaForCausalLM, Phi3Config, Phi3ForCausalLM
from transformers import LlamaConfig as TheirConfig

from tests.transformer_layers.comparisons import assert_same
from tests.transformer_layers.models.llama.families import SIZES, in_float64
from transformer_layers import (
    DynamicNTKScaling,
    LinearScaling,
    Llama,
    LlamaConfig,
    LongRoPEScaling,
    load_model,
)

LENGTH = 8  # of training, for longrope
_LONGROPE = {"short_factor": [1.0, 1.5, 2.0], "long_factor": [1.0, 3.0, 9.0], "rope_theta": 100.0}
OPTIONS: dict[str, dict[str, Any]] = {
    "longrope": {
        "hidden_size": 24,
        "original_max_position_embeddings": LENGTH,
        "rope_parameters": {"rope_type": "longrope", **_LONGROPE},
    },
    "as published": {"hidden_size": 24},
    "window": {"hidden_size": 24, "sliding_window": 5},
    "in part, tied": {"head_dim": 8, "partial_rotary_factor": 0.25, "tie_word_embeddings": True},
    "one head of keys": {"hidden_size": 16, "num_key_value_heads": 1},
}
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3], [5, 8, 9, 7, 9, 3, 2, 3, 8, 4]])


def their_model(name: str) -> Phi3ForCausalLM:
    tokens = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
    with in_float64():
        model = Phi3ForCausalLM(Phi3Config(**SIZES | OPTIONS[name], **tokens))
    return model.double().eval()


@pytest.mark.parametrize("name", OPTIONS)
def test_files_of_transformers_are_loaded_and_ours_are_theirs(name, tmp_path):
    theirs = their_model(name)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = load_model(tmp_path / "theirs")
    ours.save_pretrained(tmp_path / "ours")
    with in_float64():
        wanted = theirs(IDS).logits
        # transformers has the numbers of longrope in float32.
        close = 1e-9 if name == "longrope" else 1e-12
        torch.testing.assert_close(ours(IDS), wanted, rtol=close, atol=close)
        again = AutoModelForCausalLM.from_pretrained(tmp_path / "ours")
        assert again(IDS).logits.equal(wanted)
    stored = [load_file(tmp_path / name / "model.safetensors") for name in ("ours", "theirs")]
    assert stored[0].keys() == stored[1].keys()
    assert all(stored[0][key].equal(stored[1][key]) for key in stored[0])
    assert Llama.from_pretrained(tmp_path / "ours").config == ours.config


@pytest.mark.parametrize("name", ["longrope", "window"])
def test_it_writes_as_that_of_transformers(name, tmp_path):
    theirs = their_model(name)
    theirs.save_pretrained(tmp_path)
    ours = load_model(tmp_path)
    prompts = [IDS[0, :3], IDS[1, :7]]
    with in_float64():
        expected = [
            theirs.generate(prompt[None], max_new_tokens=8, do_sample=False, pad_token_id=0)[0]
            for prompt in prompts
        ]
        found = ours.generate(prompts, max_new_tokens=8)
    assert all(a.equal(b) for a, b in zip(found, expected, strict=True))


def test_a_text_that_outgrows_its_keys_is_read_again_and_its_caches_are_refused():
    scaling = LongRoPEScaling((1.0, 1.5, 2.0), (1.0, 3.0, 9.0), LENGTH, 4.0)
    config = LlamaConfig(**SIZES | {"hidden_size": 24}, model_type="phi3", rope_scaling=scaling)
    model = Llama(config).double().eval()
    written = model.generate([IDS[0, :3], IDS[1, :7]], max_new_tokens=9)
    for text, begun in zip(written, (3, 7), strict=True):
        for end in range(begun, len(text)):
            assert model(text[None, :end])[0, -1].argmax() == text[end]
    for past in (1, LENGTH):
        caches = model.new_caches(2, 12)
        model(IDS[:, :past], caches)
        with pytest.raises(ValueError, match="texts of up to 8 tokens, and a text would have 10"):
            model(IDS[:, past:], caches)
        assert {cache.length for cache in caches} == {past}
    caches = model.new_caches(2, 12)
    longer = model(IDS[:, :9], caches)
    assert_same([torch.cat([longer, model(IDS[:, 9:], caches)], 1)], [model(IDS)])


def test_frequencies_of_another_number_of_pairs_are_refused():
    scaling = LongRoPEScaling((1.0, 1.5), (1.0, 3.0), LENGTH, 4.0)
    with pytest.raises(ValueError, match="each of 48 pairs of features that turn, got 2"):
        LlamaConfig(hidden_size=3072, model_type="phi3", rope_scaling=scaling)


def test_dynamic_scaling_is_loaded_saved_and_writes_as_that_of_transformers(tmp_path):
    tokens = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
    dynamic = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 100.0}
    sizes = SIZES | {"hidden_size": 24, "max_position_embeddings": 6}
    with in_float64():
        theirs = LlamaForCausalLM(TheirConfig(**sizes, rope_parameters=dynamic, **tokens)).double()
        theirs.save_pretrained(tmp_path / "theirs")
        ours = load_model(tmp_path / "theirs")
        ours.save_pretrained(tmp_path / "ours")
        again = AutoModelForCausalLM.from_pretrained(tmp_path / "ours")
        for seq in (5, 6, 7, 10):  # each a fresh text, of which theirs keeps no length
            wanted = theirs(IDS[:, :seq]).logits
            torch.testing.assert_close(ours(IDS[:, :seq]), wanted, rtol=1e-9, atol=1e-9)
            assert again(IDS[:, :seq]).logits.equal(wanted)
        expected = theirs.generate(IDS[:1, :3], max_new_tokens=9, do_sample=False, pad_token_id=0)
        assert ours.generate(IDS[:1, :3], max_new_tokens=9).equal(expected)
    with pytest.raises(ValueError, match="must begin at max_position_embeddings, got 5 and 6"):
        LlamaConfig(**sizes, rope_scaling=DynamicNTKScaling(4.0, 5))


@pytest.mark.parametrize("share", [0.0, 1.5, 0.01])
def test_a_share_that_none_has_is_refused(share):
    with pytest.raises(ValueError, match=f"partial_rotary_factor must be .* got {share} of 96"):
        LlamaConfig(hidden_size=3072, model_type="phi3", partial_rotary_factor=share)


def test_a_scaling_is_refused():
    with pytest.raises(ValueError, match="a phi3 has no rope_scaling but LongRoPEScaling, got Lin"):
        LlamaConfig(model_type="phi3", rope_scaling=LinearScaling(2.0))
    with pytest.raises(ValueError, match=r"no partial_rotary_factor, got 0\.5"):
        LlamaConfig(partial_rotary_factor=0.5)


@pytest.mark.parametrize("damage", ["missing", "short", "unfused", "another dtype"])
def test_files_that_are_damaged_are_refused_by_the_name_in_the_file(damage, tmp_path):
    their_model("as published").save_pretrained(tmp_path)
    path, key = tmp_path / "model.safetensors", "model.layers.1.self_attn.qkv_proj.weight"
    stored = load_file(path)
    fused = stored.pop(key)
    if damage == "short":
        stored[key] = fused[:-1].clone()
    if damage == "another dtype":
        stored[key] = fused.half()
    if damage == "unfused":
        stored[key.replace("qkv", "q")] = fused[:24].clone()
    save_file(stored, path, {"format": "pt"})
    said = {
        "missing": f"{key} is missing, which a phi3 of num_hidden_layers = 2 has",
        "short": f"{key} has the shape (47, 24), and the sizes of the config need (48, 24)",
        "unfused": f"{key} is missing",
        "another dtype": f"{key} is torch.float16; convert all weights to one dtype",
    }
    with pytest.raises(ValueError, match=re.escape(said[damage])):
        load_model(tmp_path)
