"""Models with experts against those of `transformers`: logits, gradients, folders, caches."""

import json
from typing import Any
from unittest import mock

import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.transformer_layers.comparisons import assert_same, with_random_weights
from tests.transformer_layers.models.llama.families import SIZES, in_float64
from transformer_layers import (
    Llama,
    LlamaConfig,
    load_model,
)
from transformer_layers.feed_forward.experts import MixtureOfExperts

OPTIONS: dict[str, dict[str, Any]] = {
    "mixtral": {"model_type": "mixtral", "num_experts": 4, "head_dim": 6},
    "mixtral with a window": {
        "model_type": "mixtral",
        "num_experts": 3,
        "num_experts_per_tok": 1,
        "head_dim": 4,
        "sliding_window": 5,
        "rope_theta": 1e6,
    },
    "qwen3_moe": {
        "model_type": "qwen3_moe",
        "num_experts": 6,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": 7,
        "norm_topk_prob": False,
        "head_dim": 4,
    },
    "qwen3_moe with dense blocks": {
        "model_type": "qwen3_moe",
        "num_hidden_layers": 5,
        "num_experts": 4,
        "moe_intermediate_size": 7,
        "decoder_sparse_step": 2,
        "mlp_only_layers": (3,),
        "attention_bias": True,
        "head_dim": 4,
        "sliding_window": 4,
    },
}
EAGER: dict[str, Any] = {"attn_implementation": "eager", "experts_implementation": "eager"}
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6], [5, 3, 5, 8, 9, 7, 9, 3]])


def model_of(name):
    torch.manual_seed(0)
    return with_random_weights(Llama(LlamaConfig(**SIZES | OPTIONS[name]))).double().eval()


@pytest.fixture(autouse=True)
def theirs_in_float64():
    """Their routers call `float()` on the scores, too."""
    with in_float64(), mock.patch.object(torch.Tensor, "float", torch.Tensor.double):
        yield


@pytest.fixture(params=OPTIONS)
def name(request):
    return request.param


@pytest.fixture
def theirs(name, tmp_path):
    """The model that `transformers` reads out of the folder of ours."""
    model_of(name).save_pretrained(tmp_path / "ours")
    return AutoModelForCausalLM.from_pretrained(tmp_path / "ours", **EAGER)


def test_logits_and_gradients_equal_those_of_transformers(name, theirs):
    ours = model_of(name)
    found, expected = ours(IDS), theirs(IDS).logits
    assert_same([found], [expected])
    cotangent = torch.randn_like(found)
    (found * cotangent).sum().backward()
    (expected * cotangent).sum().backward()
    routers = [each.router for each in ours.modules() if isinstance(each, MixtureOfExperts)]
    gates = [each for key, each in theirs.named_parameters() if key.endswith("mlp.gate.weight")]
    assert_same(
        [ours.model.embed_tokens.weight.grad, *(each.scores.weight.grad for each in routers)],
        [theirs.model.embed_tokens.weight.grad, *(each.grad for each in gates)],
        tolerance=1e-10,
    )


def test_folders_go_from_transformers_to_us_and_back(name, theirs, tmp_path):
    theirs.save_pretrained(tmp_path / "theirs")
    again = load_model(tmp_path / "theirs")
    assert again.config == LlamaConfig(**SIZES | OPTIONS[name])
    assert again(IDS).equal(model_of(name)(IDS))


def test_which_blocks_have_experts():
    model = model_of("qwen3_moe with dense blocks")
    kinds = [isinstance(block.mlp, MixtureOfExperts) for block in model.model.layers]
    assert kinds == [False, True, False, False, False]


def test_parameters_are_as_many_as_published():
    mixtral = LlamaConfig(
        32_000, 4096, 14_336, 32, 32, 8, model_type="mixtral", num_experts=8, rope_theta=1e6
    )
    qwen = LlamaConfig(
        151_936,
        2048,
        6144,
        48,
        32,
        4,
        128,
        model_type="qwen3_moe",
        num_experts=128,
        num_experts_per_tok=8,
        moe_intermediate_size=768,
    )
    for config, parameters in [(mixtral, 46_702_792_704), (qwen, 30_532_122_624)]:
        shapes = Llama.codec.weight_shapes(config)
        assert sum(torch.Size(shape).numel() for _, shape in shapes) == parameters


ENTRIES = {
    "model_type": "mixtral",
    "vocab_size": 11,
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def config_of(tmp_path, **changed):
    return Llama.codec.config_of(ENTRIES | changed, tmp_path / "config.json")


def test_what_is_left_out_has_the_default_of_its_family(tmp_path):
    mixtral = config_of(tmp_path)
    assert (mixtral.num_experts, mixtral.num_experts_per_tok, mixtral.d_expert) == (8, 2, 12)
    assert (mixtral.rope_theta, mixtral.rms_norm_eps) == (1e6, 1e-5)
    qwen = config_of(tmp_path, model_type="qwen3_moe")
    assert (qwen.num_experts, qwen.num_experts_per_tok, qwen.d_expert) == (128, 8, 768)
    assert not qwen.norm_topk_prob


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"num_experts_per_tok": 9}, "num_experts_per_tok must be at most num_experts, got 9 of 8"),
        (
            {"num_experts": 3, "num_local_experts": 4},
            "num_experts and num_local_experts are two names of one number, got 3 and 4",
        ),
        ({"model_type": "qwen3_moe", "norm_topk_prob": 1}, "norm_topk_prob must be true or false"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, changed, said):
    with pytest.raises(ValueError, match=said):
        config_of(tmp_path, **changed)


def test_an_absurd_number_of_experts_is_refused_at_once(tmp_path):
    model_of("mixtral").save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    entries = json.loads(file.read_text()) | {"num_local_experts": 2**31 - 1}
    file.write_text(json.dumps(entries))
    with pytest.raises(ValueError, match="config"):
        load_model(tmp_path)
