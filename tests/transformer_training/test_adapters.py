"""Runs in which adapters learn, and the weights of a published model stay as they are."""

import peft
import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.transformer_training.processes import losses
from tests.transformer_training.test_start import (
    ended_and_gone_on,
    folder_of,
    published,  # noqa: F401  # a fixture
)
from transformer_layers import load_model, load_tokenizer
from transformer_training import TrainingError, train
from transformer_training.adapters import adapter_weights, add_adapters, merged_weights
from transformer_training.config import parse

LORA = ["--lora-rank", "2", "--weight-decay", "0"]


def test_what_is_written_is_the_published_model_with_its_adapters(published, tmp_path):  # noqa: F811
    """As transformers and peft compute it, from the folder of the adapters, and merged."""
    final = train(parse([*published, *LORA, "--out", str(tmp_path / "run")]))
    found = losses(tmp_path / "run")
    assert found[-1] < found[0]
    base = AutoModelForCausalLM.from_pretrained(folder_of(published))
    merged = AutoModelForCausalLM.from_pretrained(final)
    ids = load_tokenizer(final).encode("cat dog")[None]
    assert not torch.allclose(merged(ids).logits, base(ids).logits, atol=1e-3)
    torch.testing.assert_close(load_model(final)(ids), merged(ids).logits, atol=1e-5, rtol=0)
    ours = load_model(folder_of(published))
    config = parse([*published, "--out", str(tmp_path / "other")])
    adapted = add_adapters(config.plan, ours, 2)
    weights = peft.load_peft_weights(str(tmp_path / "run" / "adapter"))
    assert weights
    peft.set_peft_model_state_dict(adapted, weights)
    torch.testing.assert_close(ours(ids), merged(ids).logits, atol=1e-5, rtol=0)


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


def test_merging_a_fresh_adapter_changes_nothing(published, tmp_path):  # noqa: F811
    model = load_model(folder_of(published))
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    add_adapters(parse([*published, "--out", str(tmp_path)]).plan, model, 3)
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
