"""Llama and its relatives against those of `transformers`, rung by rung, and by their laws."""

import pytest
import torch

from tests.transformer_layers.comparisons import assert_same, relative_error, with_random_weights
from tests.transformer_layers.models.ladder import Ladder, Reference, steps_of
from tests.transformer_layers.models.llama.families import (
    OPTIONS,
    config_of,
    in_float64,
    model_of,
    their_model,
)
from transformer_layers import Llama, LlamaConfig, load_model

WHOLE = {"embeddings": "model.embed_tokens", "last norm": "model.norm"}
INSIDE = {
    "queries": "model.layers.{}.self_attn.q_proj",
    "keys": "model.layers.{}.self_attn.k_proj",
    "values": "model.layers.{}.self_attn.v_proj",
    "heads": "input of model.layers.{}.self_attn.o_proj",
    "attention": "model.layers.{}.self_attn.o_proj",
    "norm after attention": "model.layers.{}.post_attention_layernorm",
    "gates": "model.layers.{}.mlp.gate_proj",
    "inner features": "model.layers.{}.mlp.up_proj",
    "gated features": "input of model.layers.{}.mlp.down_proj",
    "feed-forward": "model.layers.{}.mlp.down_proj",
    "block": "model.layers.{}",
}
BEFORE = {
    "first norm": "model.layers.{}.input_layernorm",
    "first residual": "input of model.layers.{}.post_attention_layernorm",
}
BEHIND = {
    "normed queries": "model.layers.{}.self_attn.q_norm",
    "normed keys": "model.layers.{}.self_attn.k_norm",
    "norm after feed-forward": "model.layers.{}.post_feedforward_layernorm",
}


@pytest.fixture(autouse=True)
def theirs_in_float64():
    with in_float64():
        yield


def reference_of(name):
    inside = INSIDE | (BEHIND if name == "olmo2" else BEFORE)
    normed = ("q_proj.weight",) if name == "qwen3" else ()  # the norm of a head cancels its length
    return Reference(
        model=lambda: model_of(name),
        theirs=lambda implementation: their_model(name, implementation),
        their_name=lambda ours: ours,
        their_attention="model.layers.{}.self_attn",
        steps=steps_of(WHOLE, inside, blocks=2),
        canceling=("k_proj.weight", "k_proj.bias", "k_norm.weight", "q_proj.bias", *normed),
    )


class TestLlama(Ladder):
    reference = reference_of("llama")


class TestQwen3(Ladder):
    reference = reference_of("qwen3")


class TestOlmo2(Ladder):
    reference = reference_of("olmo2")


@pytest.mark.parametrize("name", OPTIONS)
def test_logits_equal_those_of_transformers(name):
    reference = reference_of(name)
    model, ids = reference.random_model(), reference.random_ids()
    expected = reference.their_model(model)(ids).logits
    assert_same([model(ids)], [expected])


@pytest.mark.parametrize("name", OPTIONS)
def test_folders_go_from_transformers_to_us_and_back(name, tmp_path):
    reference = reference_of(name)
    model, ids = reference.random_model().eval(), reference.random_ids()
    theirs = reference.their_model(model)
    theirs.save_pretrained(tmp_path / "theirs")
    loaded = load_model(tmp_path / "theirs")
    assert loaded.config == config_of(name)
    assert loaded(ids).equal(model(ids))
    loaded.save_pretrained(tmp_path / "ours")
    again = type(theirs).from_pretrained(tmp_path / "ours", attn_implementation="eager")
    assert again.dtype == torch.float64
    assert_same([again(ids).logits], [model(ids)])
    assert load_model(tmp_path / "ours").config == config_of(name)


def test_positions_beyond_a_window_are_not_seen():
    model = with_random_weights(model_of("mistral")).double()  # two blocks, five keys
    ids = torch.randint(11, (1, 16))
    others = ids.clone()
    others[:, 0] = (ids[:, 0] + 1) % 11
    same = [relative_error(model(ids)[:, i], model(others)[:, i]) == 0 for i in range(16)]
    assert same == [False] * 9 + [True] * 7  # 0 sees itself; the last of 4 + 4 positions on, not


def test_parameters_are_as_many_as_published():
    sizes = {"Llama 2 7B": (LlamaConfig(), 6_738_415_616)}
    llama3 = LlamaConfig(128_256, 4096, 14_336, 32, 32, 8, rope_theta=5e5)
    sizes["Llama 3 8B"] = (llama3, 8_030_261_248)
    mistral = LlamaConfig(32_000, 4096, 14_336, 32, 32, 8, model_type="mistral")
    sizes["Mistral 7B"] = (mistral, 7_241_732_096)
    for config, parameters in sizes.values():
        model = Llama(config, device="meta")
        assert sum(each.numel() for each in model.parameters()) == parameters


def test_every_matrix_is_drawn_anew_and_every_gain_is_one():
    model = Llama(config_of("llama with biases"), device="meta").to_empty(device="cpu")
    model.reset_parameters()
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            assert parameter.eq(0.0 if name.endswith("bias") else 1.0).all()
        else:
            assert 0.01 < parameter.std() < 0.03
