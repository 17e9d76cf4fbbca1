"""Gemma 3's text model against that of `transformers`: logits, gradients, folders, caches."""

from typing import Any

import pytest
import torch
from transformers import Gemma3ForCausalLM

from tests.transformer_layers.comparisons import assert_same, relative_error, with_random_weights
from tests.transformer_layers.models.llama.families import in_float64
from transformer_layers import Gemma3, Gemma3Config, LinearScaling, load_model

SIZES: dict[str, Any] = {
    "vocab_size": 11,
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "max_position_embeddings": 16,
    "sliding_window": 4,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "windows alone": {},
    "one that sees all": {
        "num_hidden_layers": 7,
        "query_pre_attn_scalar": 3,
        "rope_theta": 100.0,
        "rope_local_base_freq": 10.0,
    },
    "every second, scaled": {
        "layer_types": ("sliding_attention", "full_attention", "sliding_attention"),
        "rope_scaling": LinearScaling(8.0),
        "final_logit_softcapping": 3.0,
        "attention_bias": True,
    },
    "a head of its own": {"tie_word_embeddings": False},
}
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6], [5, 3, 5, 8, 9, 7, 9, 3]])


def config_of(name):
    return Gemma3Config(**SIZES | OPTIONS[name])


def model_of(name):
    torch.manual_seed(0)
    return with_random_weights(Gemma3(config_of(name))).double().eval()


@pytest.fixture(autouse=True)
def theirs_in_float64(monkeypatch):
    """Their norms and angles call `float()`, and the former go back with `type_as`."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    with in_float64():
        yield


@pytest.fixture(params=OPTIONS)
def name(request):
    return request.param


@pytest.fixture
def theirs(name, tmp_path):
    """The model that `transformers` reads out of the folder of ours."""
    model_of(name).save_pretrained(tmp_path / "ours")
    return Gemma3ForCausalLM.from_pretrained(tmp_path / "ours", attn_implementation="eager")


def test_logits_and_gradients_equal_those_of_transformers(name, theirs):
    ours = model_of(name)
    found, expected = ours(IDS), theirs(IDS).logits
    assert_same([found], [expected])
    cotangent = torch.randn_like(found)
    (found * cotangent).sum().backward()
    (expected * cotangent).sum().backward()
    own, other = dict(ours.named_parameters()), dict(theirs.named_parameters())
    assert own.keys() == other.keys()
    assert_same([own[key].grad for key in own], [other[key].grad for key in own], tolerance=1e-10)


def test_folders_go_from_transformers_to_us_and_back(name, theirs, tmp_path):
    theirs.save_pretrained(tmp_path / "theirs")
    again = load_model(tmp_path / "theirs")
    assert isinstance(again, Gemma3)
    assert again.config == config_of(name)
    assert again(IDS).equal(model_of(name)(IDS))


def test_a_window_is_not_looked_past():
    model = model_of("windows alone")  # three blocks of windows of four
    ids = torch.randint(11, (1, 16))
    others = ids.clone()
    others[:, 0] = (ids[:, 0] + 1) % 11
    same = [relative_error(model(ids)[:, i], model(others)[:, i]) == 0 for i in range(16)]
    assert same == [False] * 10 + [True] * 6


def test_embeddings_are_scaled_in_their_dtype():
    table = Gemma3(Gemma3Config(5, 3072, 8, 1, 2, 1, 4), dtype=torch.bfloat16).model.embed_tokens
    with torch.no_grad():
        table.weight.fill_(1.0)
    assert table(torch.tensor([2]))[0, 0].item() == 55.5


def test_parameters_are_as_many_as_published():
    config = Gemma3Config(
        262_144, 1152, 6912, 26, 4, 1, 256, max_position_embeddings=32_768, sliding_window=512
    )
    model = Gemma3(config, device="meta")
    assert sum(each.numel() for each in model.parameters()) == 999_885_952


ENTRIES = {**SIZES, "model_type": "gemma3_text"}


def read(tmp_path, **changed):
    return Gemma3.codec.config_of(ENTRIES | changed, tmp_path / "config.json")


def test_forms_of_settings(tmp_path):
    assert read(tmp_path) == Gemma3Config(**SIZES)
    pattern = read(tmp_path, sliding_window_pattern=3)
    assert pattern.kinds == ("sliding_attention", "sliding_attention", "full_attention")
    former = read(tmp_path, rope_theta=9.0, rope_local_base_freq=7.0)
    nested = {"full_attention": {"rope_type": "default", "rope_theta": 9.0}}
    nested["sliding_attention"] = {"rope_type": "default", "rope_theta": 7.0}
    assert read(tmp_path, rope_parameters=nested) == former
    scaled = read(tmp_path, rope_scaling={"rope_type": "linear", "factor": 8.0})
    assert scaled.rope_scaling == LinearScaling(8.0)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"model_type": "gemma2"}, "model_type must be gemma3_text, got 'gemma2'"),
        ({"attn_logit_softcapping": 50.0}, "attn_logit_softcapping is 50.0, which changes"),
        ({"layer_types": ["full_attention"]}, "for each of 3 blocks"),
        ({"rope_parameters": {"rope_theta": 3.0}}, "rope_parameters must have an object for each"),
        (
            {"rope_parameters": {"sliding_attention": {"rope_type": "linear", "factor": 2.0}}},
            "rope_parameters has a scaling for sliding_attention",
        ),
    ],
)
def test_what_is_not_computed_is_refused(tmp_path, changed, said):
    with pytest.raises(ValueError, match=said):
        read(tmp_path, **changed)
