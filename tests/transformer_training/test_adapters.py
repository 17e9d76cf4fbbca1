"""Runs in which adapters learn, and the weights of a published model stay as they are."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.transformer_training.processes import losses
from tests.transformer_training.test_start import (
    OF_GEMMA,
    SMALL,
    ended_and_gone_on,
    folder_of,
    publish,
    published,  # noqa: F401  # a fixture
)
from transformer_layers import load_model
from transformer_training import TrainingError, add_adapters, load_adapters, save_adapters, train
from transformer_training.adapters import adapter_weights, merged_weights
from transformer_training.config import parse

# peft asks for it, of a model of transformers.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is:FutureWarning"),
    # It makes patterns of experts' matrices, and then looks for modules of these names.
    pytest.mark.filterwarnings("ignore:The following (rank|alpha)_pattern keys:RuntimeWarning"),
]

LORA = ["--lora-rank", "2", "--weight-decay", "0"]


# What transformers takes beside the sizes of all; its own pad token is beyond the vocabulary.
NO_PADDING = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
EXPERTS = {"moe_intermediate_size": 8, "num_experts": 4, "num_experts_per_tok": 2}
FAMILIES = {
    "gpt2": {},
    "llama": {},
    "qwen3": {"head_dim": 6},
    "phi3": NO_PADDING,
    "gemma3_text": OF_GEMMA,
    "mixtral": {"num_local_experts": 4},
    "qwen3_moe": EXPERTS,
}
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6], [5, 3, 5, 8, 9, 7, 9, 3]])


@pytest.fixture
def of_family(text, tmp_path) -> Callable[..., list[str]]:
    """The options of a run that begins with a model of a family."""

    def options(family: str, **more: Any) -> list[str]:
        publish(family, text, tmp_path / "published", **FAMILIES[family], **more)
        folder = ["--from", str(tmp_path / "published")]
        return [*folder, "--data", str(text), *SMALL.split(), *LORA, "--out", str(tmp_path / "run")]

    return options


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_written_is_the_published_model_with_its_adapters(family, of_family, tmp_path):
    """As transformers and peft compute it, of both folders, and as ours is."""
    options, adapter = of_family(family), tmp_path / "run" / "adapter"
    final = train(parse(options))
    found = losses(tmp_path / "run")
    assert found[-1] < found[0]
    merged = theirs_in(final)(IDS).logits
    base = theirs_in(folder_of(options))
    assert not torch.allclose(merged, base(IDS).logits, atol=1e-3)
    torch.testing.assert_close(load_model(final)(IDS), merged, atol=1e-5, rtol=0)
    theirs = peft.PeftModel.from_pretrained(base, adapter)
    torch.testing.assert_close(theirs(IDS).logits, merged, atol=1e-5, rtol=0)
    alone = theirs_in(adapter)  # it finds the model, too
    torch.testing.assert_close(alone(IDS).logits, merged, atol=1e-5, rtol=0)
    ours = load_adapters(load_model(folder_of(options)), adapter)
    torch.testing.assert_close(ours(IDS), merged, atol=1e-5, rtol=0)


def test_that_adapters_cannot_stand_alone_is_said_first(of_family, tmp_path, capsys):
    final = train(parse(of_family("qwen3_moe", mlp_only_layers=[1])))
    before, _, after = capsys.readouterr().out.partition("beginning")
    assert "warning: adapters of a model that has experts in some blocks alone cannot" in before
    assert "its adapters alone" not in after
    assert not (tmp_path / "run" / "adapter").exists()
    model = load_model(final)
    torch.testing.assert_close(model(IDS), theirs_in(final)(IDS).logits, atol=1e-5, rtol=0)
    with pytest.raises(ValueError, match="experts in some blocks alone cannot stand in a folder"):
        save_adapters(add_adapters(model, 2), tmp_path / "adapter")


def test_adapters_of_some_experts_are_not_saved(of_family, tmp_path):
    model = load_model(folder_of(of_family("mixtral")))
    adapted = add_adapters(model, 2, target_modules=["q_proj", "experts.0.up_proj"])
    with pytest.raises(ValueError, match="adapters of experts are saved of all their matrices"):
        save_adapters(adapted, tmp_path / "adapter")


def theirs_in(folder: Path) -> Any:
    """Their products of groups take rows of 16 bytes alone, and then there are loops instead."""
    return AutoModelForCausalLM.from_pretrained(folder, experts_implementation="eager")


def drawn(adapted: Any) -> Any:
    """The same with adapters that change something."""
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_" in name:
                parameter.normal_(std=0.1)
    return adapted.eval()


@pytest.mark.parametrize(
    ("family", "targets"),
    [("gpt2", ["c_attn", "mlp.c_proj"]), ("phi3", ["k_proj", "1.mlp.up_proj"])],
)
def test_some_matrices_have_adapters_and_others_none(family, targets, of_family, tmp_path):
    folder = folder_of(of_family(family))
    adapted = drawn(add_adapters(load_model(folder), 3, alpha=4, target_modules=targets))
    assert not torch.allclose(adapted(IDS), load_model(folder)(IDS), atol=1e-3)
    save_adapters(adapted, tmp_path / "adapter")
    theirs = peft.PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(folder), tmp_path / "adapter"
    )
    torch.testing.assert_close(theirs(IDS).logits, adapted(IDS))
    again = load_adapters(load_model(folder), tmp_path / "adapter")
    torch.testing.assert_close(again(IDS), adapted(IDS))
    torch.testing.assert_close(again.merge_and_unload()(IDS), adapted(IDS))


OTHERS = {
    "gpt2": {"target_modules": ["c_attn", "c_fc"], "fan_in_fan_out": True},
    "phi3": {"target_modules": ["qkv_proj", "gate_up_proj", "down_proj"]},
}


@pytest.mark.parametrize("family", OTHERS)
def test_adapters_that_peft_trained_are_read(family, of_family, tmp_path):
    folder = folder_of(of_family(family))
    patterns = {"rank_pattern": {"0.*": 3}, "alpha_pattern": {"c_fc|down_proj": 5}}
    config = peft.LoraConfig(r=2, use_rslora=True, **patterns, **OTHERS[family])
    theirs = drawn(peft.get_peft_model(AutoModelForCausalLM.from_pretrained(folder), config))
    theirs.save_pretrained(tmp_path / "adapter")
    ours = load_adapters(load_model(folder), tmp_path / "adapter")
    torch.testing.assert_close(ours(IDS), theirs(IDS).logits)
    save_adapters(ours, tmp_path / "again")
    again = load_adapters(load_model(folder), tmp_path / "again")
    torch.testing.assert_close(again(IDS), theirs(IDS).logits)


PACKED = ["experts.gate_up_proj", "experts.down_proj"]


@pytest.mark.parametrize("family", ["mixtral", "qwen3_moe"])
@pytest.mark.parametrize("targets", [PACKED, PACKED[:1], PACKED[1:]])
def test_adapters_that_peft_trained_on_packed_experts_are_read(
    family, targets, of_family, tmp_path
):
    folder = folder_of(of_family(family))
    config = peft.LoraConfig(
        r=3,
        target_modules=["q_proj"],
        target_parameters=targets,
        use_rslora=True,
        rank_pattern={"0.mlp.experts.gate_up_proj": 2},
        alpha_pattern={"experts.down_proj": 5},
    )
    theirs = drawn(peft.get_peft_model(theirs_in(folder), config)).double()
    theirs.save_pretrained(tmp_path / "adapter")
    ours = load_adapters(load_model(folder).double(), tmp_path / "adapter")
    expected = theirs(IDS).logits
    assert not torch.allclose(load_model(folder).double()(IDS), expected, atol=1e-2)
    torch.testing.assert_close(ours(IDS), expected, atol=1e-6, rtol=0)  # routing is in float32
    merged = theirs.merge_and_unload()
    merged.save_pretrained(tmp_path / "merged")
    torch.testing.assert_close(ours.merge_and_unload()(IDS), load_model(tmp_path / "merged")(IDS))


def test_adapters_of_packed_experts_are_written_and_read_again(of_family, tmp_path):
    folder = folder_of(of_family("qwen3_moe"))
    config = peft.LoraConfig(r=2, target_modules=["q_proj"], target_parameters=PACKED)
    theirs = drawn(peft.get_peft_model(theirs_in(folder), config))
    theirs.save_pretrained(tmp_path / "adapter")
    save_adapters(load_adapters(load_model(folder), tmp_path / "adapter"), tmp_path / "again")
    again = load_adapters(load_model(folder), tmp_path / "again")
    torch.testing.assert_close(again(IDS), theirs(IDS).logits, atol=1e-5, rtol=0)
    alone = peft.PeftModel.from_pretrained(theirs_in(folder), tmp_path / "again")
    torch.testing.assert_close(alone(IDS).logits, again(IDS), atol=1e-5, rtol=0)


def test_adapters_of_other_parameters_and_of_other_experts_are_refused(of_family, tmp_path):
    folder = folder_of(of_family("mixtral"))
    config = peft.LoraConfig(r=2, target_modules=[], target_parameters=["q_proj.weight", *PACKED])
    peft.get_peft_model(theirs_in(folder), config).save_pretrained(tmp_path / "adapter")
    said = r"target_parameters = \['q_proj.weight'\] are not read, .* merge_and_unload"
    with pytest.raises(ValueError, match=said):
        load_adapters(load_model(folder), tmp_path / "adapter")
    config = peft.LoraConfig(r=2, target_modules=[], target_parameters=PACKED)
    peft.get_peft_model(theirs_in(folder), config).save_pretrained(tmp_path / "adapter")
    model = load_model(folder)
    for sizes in ({"intermediate_size": 7}, {"num_experts": 3}):
        other = type(model)(replace(model.config, **sizes))
        with pytest.raises(ValueError, match=r"0\.mlp\.experts.* is no part of one of a"):
            load_adapters(other, tmp_path / "adapter")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"use_dora": True}, "adapters with use_dora = True are not read"),
        ({"bias": "all"}, "adapters with bias = 'all' are not read"),
        ({"init_lora_weights": "pissa"}, "with init_lora_weights = 'pissa' are not read"),
        ({"target_modules": ["wte"]}, "lora_embedding_A is no part of one of a GPT-2"),
    ],
)
def test_adapters_of_another_kind_are_refused(options, said, of_family, tmp_path):
    folder = folder_of(of_family("gpt2"))
    config = peft.LoraConfig(**{**OTHERS["gpt2"], **options})
    theirs = peft.get_peft_model(AutoModelForCausalLM.from_pretrained(folder), config)
    theirs.save_pretrained(tmp_path / "adapter")
    with pytest.raises(ValueError, match=said):
        load_adapters(load_model(folder), tmp_path / "adapter")


def test_adapters_of_what_is_no_matrix_are_not_saved(of_family, tmp_path):
    model = load_model(folder_of(of_family("gpt2")))
    with pytest.raises(ValueError, match="saved of matrices alone, and something else has one"):
        save_adapters(add_adapters(model, 2, target_modules=["wte", "c_fc"]), tmp_path / "adapter")


def test_the_other_weights_stay_and_cost_nothing_in_a_checkpoint(published, tmp_path):  # noqa: F811
    config = parse([*published, *LORA, "--out", str(tmp_path / "run")])
    final = train(config)
    before, after = load_model(folder_of(published)), load_model(final)
    moved = [
        name
        for name, weight in after.state_dict().items()
        if not torch.equal(weight, before.state_dict()[name])
    ]
    assert moved
    blocks = ("h.", "model.layers.")
    assert all(
        name.startswith(blocks) and "norm" not in name and "ln_" not in name for name in moved
    )
    sizes = config.model(before.config.vocab_size)
    (last, *_) = sorted((tmp_path / "run" / "checkpoints").glob("step-*"), reverse=True)
    numbers = adapter_weights(config.plan, sizes, 2)
    assert last.stat().st_size < 12 * numbers + 20_000  # a weight and two moments


def test_a_run_that_was_ended_goes_on_as_if_it_had_not_been(published, tmp_path):  # noqa: F811
    whole = train(parse([*published, *LORA, "--out", str(tmp_path / "whole")]))
    again = ended_and_gone_on(parse([*published, *LORA, "--out", str(tmp_path / "part")]))
    name = "model.safetensors"
    assert (again / name).read_bytes() == (whole / name).read_bytes()


def test_adapters_of_another_model_are_refused(published, tmp_path):  # noqa: F811
    config = parse([*published, *LORA, "--out", str(tmp_path / "run")])
    train(config)
    model = AutoModelForCausalLM.from_pretrained(folder_of(published))
    with torch.no_grad():
        next(model.parameters()).add_(1)
    model.save_pretrained(folder_of(published))
    with pytest.raises(TrainingError, match="another configuration: weights is"):
        train(config)


def test_two_ranks_learn_what_one_does(published, tmp_path, parent):  # noqa: F811
    train(parse([*published, *LORA, "--out", str(tmp_path / "one")]))
    options = [*published, *LORA, "--out", str(tmp_path / "two"), "--parallel", "ddp"]
    ranks = parent.ranks(2, options, tmp_path / "said")
    assert [rank.wait() for rank in ranks] == [0, 0], ranks[0].said()
    one, two = (torch.tensor(losses(tmp_path / name)) for name in ("one", "two"))
    torch.testing.assert_close(two, one, atol=1e-5, rtol=0)


def test_merging_a_fresh_adapter_changes_nothing(published):  # noqa: F811
    model = load_model(folder_of(published))
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    add_adapters(model, 3)
    found = merged_weights(model)
    assert found.keys() == before.keys()
    assert all(torch.equal(found[name], weight) for name, weight in before.items())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--lora-rank", "2"], "--lora-rank needs --from"),
        (["--lora-rank", "-1"], "--lora-rank must be at least 0"),
    ],
)
def test_options_that_do_not_fit_are_refused(more, said):
    with pytest.raises(TrainingError, match=said):
        parse(["--data", "a.txt", "--out", "run", *more])


def test_ranks_do_not_share_matrices_with_adapters(published, tmp_path):  # noqa: F811
    with pytest.raises(TrainingError, match="ranks cannot share the matrices that have adapters"):
        parse([*published, *LORA, "--out", str(tmp_path), "--parallel", "fsdp"])
