"""What is read of the config of a Llama, and what is refused."""

import json
import re

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from transformer_layers import (
    LinearScaling,
    Llama,
    Llama3Scaling,
    LlamaConfig,
    YaRNScaling,
    load_model,
)
from transformer_layers.models.llama.checkpoint import CODEC
from transformer_layers.models.llama.config import FAMILIES

pytestmark = pytest.mark.usefixtures("as_users_run_it")

ENTRIES = {
    "model_type": "llama",
    "vocab_size": 11,
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def config_of(tmp_path, **changed):
    return CODEC.config_of(ENTRIES | changed, tmp_path / "config.json")


def test_what_is_left_out_has_the_default_of_its_family(tmp_path):
    assert config_of(tmp_path) == LlamaConfig(11, 8, 12, 2, 4, 2)
    mistral = config_of(tmp_path, model_type="mistral")
    assert (mistral.sliding_window, mistral.max_position_embeddings) == (4096, 131_072)
    assert config_of(tmp_path, model_type="qwen3").head_dim == 128
    assert config_of(tmp_path, model_type="olmo2").rms_norm_eps == 1e-5
    assert config_of(tmp_path, model_type="mistral", sliding_window=None).sliding_window is None


@pytest.mark.parametrize(
    "entries",
    [
        {"rope_theta": 5e5, "rope_scaling": {"type": "llama3", "factor": 8.0}},
        {"rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
        {"rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", "factor": 8.0}},
    ],
)
def test_settings_of_rotary_positions_have_three_forms(tmp_path, entries):
    found = config_of(tmp_path, max_position_embeddings=8192, **entries)
    assert found.rope_theta == 5e5
    assert found.rope_scaling == Llama3Scaling()


LLAMA3 = {"rope_type": "llama3", "factor": 8.0}
_LENGTH = "original_max_position_embeddings"
LISTS = {"rope_type": "longrope", "short_factor": [1.0, 2.0], "long_factor": [3.0, 4.0]}


def test_the_longest_sequence_of_before_counts_beside_the_settings(tmp_path):
    kind = LLAMA3
    name = "original_max_position_embeddings"
    for inside in ({}, {name: 60}, {name: None}):
        found = config_of(tmp_path, rope_scaling=kind | inside, **{name: 60})
        assert getattr(found.rope_scaling, name) == 60
    found = config_of(tmp_path, rope_scaling=kind | {name: 7}, **{name: None})
    assert getattr(found.rope_scaling, name) == 7
    linear = config_of(tmp_path, rope_scaling={"type": "linear", "factor": 2.0}, **{name: 60})
    assert linear.rope_scaling == LinearScaling(2.0)


DEFAULT = {"rope_type": "default", "rope_theta": 1e6}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 10}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"rope_parameters": DEFAULT, "rope_scaling": YARN},
            "rope_scaling is {'factor': 4.0, 'original_max_position_embeddings': 10, 'rope_type': "
            "'yarn'}, and rope_parameters beside it {'rope_theta': 1000000.0, 'rope_type': "
            "'default'}: one of the two must go, and the other one must have all that is to count",
        ),
        (
            {"rope_parameters": DEFAULT, "rope_theta": 500.0},
            "rope_theta in rope_parameters is 1000000.0, and rope_theta beside it is 500.0: one of",
        ),
        (
            {"rope_scaling": YARN | {"type": "linear"}},
            "rope_type in rope_scaling is 'yarn', and type is 'linear': one of the two must go",
        ),
        (
            {"rope_parameters": {"full_attention": DEFAULT, "sliding_attention": DEFAULT}},
            "rope_parameters has settings of their own for ['full_attention', 'sliding_attention']",
        ),
        ({"rope_parameters": DEFAULT | {"turns": 3}}, "['turns'], which a default scaling does"),
        ({"rope_parameters": {"rope_theta": None}}, "rope_theta must be a finite number, got None"),
    ],
)
def test_settings_that_contradict_each_other_or_are_not_read_are_refused(tmp_path, changed, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        config_of(tmp_path, **changed)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"is_causal": False}, "is_causal is False, which changes what the model computes"),
        ({"model_type": "gemma"}, "model_type must be one of llama, .* got 'gemma'"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu', which changes what the model computes"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "must have short_factor for a longrope"),
        (
            {"rope_scaling": LISTS | {_LENGTH: 8, "factor": 2.0, "short_factor": 1.0}},
            "short_factor must be a list of numbers",
        ),
        ({"rope_scaling": {"rope_type": "linear"}}, "must have factor for a linear scaling"),
        ({"rope_scaling": {"type": "linear", "factor": "2"}}, "factor must be a finite number"),
        ({"num_key_value_heads": 3}, "must be divisible by num_key_value_heads, got"),
        ({"head_dim": 3}, "head_dim must be even"),
        ({"rms_norm_eps": None}, "rms_norm_eps must be a finite number"),
        ({"model_type": "mistral", "attention_bias": True}, "a mistral has no attention_bias"),
        (
            {"model_type": "qwen2", "layer_types": ["sliding_attention", "full_attention"]},
            "full attention in the first blocks and windows in the others",
        ),
    ],
)
def test_what_is_not_computed_is_refused_by_its_name(tmp_path, changed, said):
    with pytest.raises(ValueError, match=said) as refused:
        config_of(tmp_path, **changed)
    assert str(refused.value).startswith(str(tmp_path / "config.json"))


def test_sliding_windows_of_qwen_are_off_unless_switched_on(tmp_path):
    windowed = {"model_type": "qwen2", "sliding_window": 4, "max_window_layers": 1}
    assert config_of(tmp_path, **windowed).sliding_window is None
    found = config_of(tmp_path, use_sliding_window=True, **windowed)
    assert [found.window_of(i) for i in range(2)] == [None, 4]


@pytest.mark.parametrize("family", ["qwen2", "qwen3"])
def test_a_window_of_qwen_that_is_switched_on_and_left_out_is_that_of_transformers(
    tmp_path, family
):
    found = config_of(tmp_path, model_type=family, use_sliding_window=True, num_hidden_layers=30)
    theirs = AutoConfig.for_model(family, use_sliding_window=True, num_hidden_layers=30)
    assert (found.sliding_window, found.max_window_layers) == (4096, 28)
    assert (theirs.sliding_window, theirs.max_window_layers) == (4096, 28)
    on = {"model_type": family, "use_sliding_window": True}
    assert config_of(tmp_path, sliding_window=None, **on).sliding_window is None
    assert config_of(tmp_path, sliding_window=9, **on).sliding_window == 9
    assert config_of(tmp_path, model_type=family).sliding_window is None


@pytest.mark.parametrize(
    ("scaling", "length", "longest"),
    [
        (LinearScaling(2.5), 15, 37),
        (YaRNScaling(4.0, 10), 16, 40),
        (Llama3Scaling(4.0, original_max_position_embeddings=16), 16, 64),
        (Llama3Scaling(4.0, original_max_position_embeddings=10), 16, 16),
    ],
)
def test_a_scaling_allows_longer_sequences_though_the_length_was_left(scaling, length, longest):
    config = LlamaConfig(11, 8, 12, 1, 2, max_position_embeddings=length, rope_scaling=scaling)
    model = Llama(config).eval()
    assert model.max_seq == config.max_seq == longest
    assert model(torch.zeros(1, longest, dtype=torch.int64)).shape == (1, longest, 11)
    with pytest.raises(ValueError, match=f"{longest} positions, got"):
        model(torch.zeros(1, longest + 1, dtype=torch.int64))


def test_a_second_head_must_be_the_embedding_where_the_two_are_tied(tmp_path):
    tied = Llama(LlamaConfig(11, 8, 12, 1, 2, tie_word_embeddings=True))
    untied = Llama(LlamaConfig(11, 8, 12, 1, 2))
    untied.save_pretrained(tmp_path)
    text = json.loads((tmp_path / "config.json").read_text())
    assert "lm_head.weight" not in tied.state_dict()
    tied.save_pretrained(tmp_path / "tied")
    assert load_model(tmp_path / "tied").lm_head is None
    assert text["tie_word_embeddings"] is False


@pytest.mark.parametrize("place", ["rope_scaling", "rope_parameters"])
def test_what_changes_nothing_in_evaluation_is_taken(tmp_path, place):
    family = "llama"
    yarn = {**YARN, "rope_theta": 1e4}
    plain = config_of(tmp_path, model_type=family, **{place: yarn})
    inert = {
        "finetuned": True,
        "low_freq_factor": 2.0,  # of another scaling
        "attention_factor": None,
        "partial_rotary_factor": 1.0,
    }
    dropping = {"attention_dropout": 0.1, "use_cache": False, "initializer_range": 0.5}
    found = config_of(tmp_path, model_type=family, **{place: yarn | inert}, **dropping)
    assert found == plain
    assert config_of(tmp_path, **{place: DEFAULT | {"factor": 4.0}}).rope_scaling is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"rope_scaling": YARN, "max_position_embeddings": 64},
            r"max_position_embeddings is 64, not 2048, rope_scaling is YaRN.*, not None$",
        ),
        ({"rms_norm_eps": 0.5}, r"rms_norm_eps is 0\.5, not 1e-06$"),
    ],
)
def test_a_config_that_was_changed_on_purpose_counts_and_is_told(tmp_path, changed, said):
    config = LlamaConfig(11, 24, 12, 2, 2, model_type="qwen2")
    Llama(config).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    entries = json.loads(path.read_text()) | changed
    path.write_text(json.dumps(entries))
    with pytest.warns(UserWarning, match=f"was changed since .* was saved, and counts: {said}"):
        model = load_model(tmp_path)
    assert model.config == CODEC.config_of(entries, path) != config
    ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path)
    torch.testing.assert_close(theirs(ids).logits, model(ids))
    path.write_text(json.dumps(entries | {"num_attention_heads": 4}))
    with pytest.raises(ValueError, match=r"not the config that model\.safetensors was"):
        load_model(tmp_path)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_saved_is_what_transformers_loads(family, tmp_path):
    features = 9 if family == "llama" else 10  # which three heads do not divide
    sizes = (9, features, 7, 1, 3, 1, 4)
    model = Llama(LlamaConfig(*sizes, rms_norm_eps=1, rope_theta=10_000, model_type=family))
    model.save_pretrained(tmp_path)
    # Their products of groups take rows of 16 bytes alone.
    eager = {"experts_implementation": "eager"} if model.config.experts else {}
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, **eager)
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    torch.testing.assert_close(theirs(ids).logits, model.eval()(ids))


def test_shapes_are_those_of_the_state_dict():
    for family in FAMILIES:
        for tied in (False, True):
            config = LlamaConfig(11, 8, 12, 2, 4, 2, 6, model_type=family, tie_word_embeddings=tied)
            found = [(name, tuple(w.shape)) for name, w in Llama(config).state_dict().items()]
            assert sorted(CODEC.weight_shapes(config)) == sorted(found)


def test_sizes_that_no_weight_can_have_are_refused(tmp_path):
    config = config_of(tmp_path, hidden_size=2**31 - 8, intermediate_size=2**31 - 1)
    with pytest.raises(ValueError, match="no weights are as large as those of LlamaConfig"):
        next(CODEC.weight_shapes(config))
