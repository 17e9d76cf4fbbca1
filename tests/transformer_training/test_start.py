"""Runs that begin with a published model: its weights, its sizes, its tokenizer."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from tests.transformer_training.processes import losses
from tests.transformer_training.test_chats import write_tokenizer
from transformer_layers import load_model, load_tokenizer, train_tokenizer
from transformer_training import TrainingError, train
from transformer_training.config import parse
from transformer_training.ranks import ranks_of
from transformer_training.run import Run
from transformer_training.tokens import prepare, rows_of_step

SMALL = "--steps 6 --batch-size 4 --seq 8 --lr 1e-2 --warmup 0.5 --checkpoint-every 3 --device cpu"


@pytest.fixture
def published(text, tmp_path) -> list[str]:
    """The options that name a folder as transformers writes it, of a model and its tokenizer."""
    publish("llama", text, tmp_path / "published")
    options = ["--from", str(tmp_path / "published"), "--model", "llama"]
    return [*options, "--data", str(text), *SMALL.split()]


def publish(family: str, text: Path, folder: Path, **options: Any) -> None:
    """Writes a model of a family and a tokenizer, as transformers does."""
    torch.manual_seed(0)
    folder.mkdir()
    if family == "gpt2":
        train_tokenizer([text.read_text()], vocab_size=280).save(folder)
        sizes = {"vocab_size": 280, "n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 2}
    else:
        write_tokenizer(folder)
        sizes = {"vocab_size": load_tokenizer(folder).vocab_size + 3, "hidden_size": 16}
        sizes |= {"intermediate_size": 24, "num_hidden_layers": 2, "max_position_embeddings": 16}
        sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2}
    config = AutoConfig.for_model(family, **sizes, **options)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)


def folder_of(options: list[str]) -> Path:
    return Path(options[1])


def test_the_first_loss_is_that_of_the_published_model(published, tmp_path):
    config = parse([*published, "--out", str(tmp_path / "run")])
    final = train(config)
    tokens = prepare(config, tmp_path / "run" / "tokens")
    rows = rows_of_step(1, 4, tokens.rows(), config.seed)
    model = AutoModelForCausalLM.from_pretrained(folder_of(published))
    (batch,) = tokens.batches([rows], rows)
    logits = model(batch[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten().long())
    found = losses(tmp_path / "run")
    torch.testing.assert_close(torch.tensor(found[0]), loss.detach(), atol=2e-6, rtol=0)
    assert found[-1] < found[0]
    ours, theirs = load_model(final), AutoModelForCausalLM.from_pretrained(final)
    tokenizer, their_tokenizer = load_tokenizer(final), AutoTokenizer.from_pretrained(final)
    ids = tokenizer.encode("cat dog")
    assert their_tokenizer("cat dog").input_ids == ids.tolist()
    written = theirs.generate(ids[None], max_new_tokens=4, do_sample=False, eos_token_id=None)
    assert ours.generate(ids[None], max_new_tokens=4).equal(written)
    entries = json.loads((final / "config.json").read_text())
    assert entries["eos_token_id"] == their_tokenizer.eos_token_id


def ended_and_gone_on(config) -> Path:
    """What a run writes that an interrupt ended after its fourth step, and that went on."""
    step = Run.next_step
    with pytest.MonkeyPatch.context() as patch:

        def stopping(run):
            if run.step == 4:
                raise KeyboardInterrupt
            step(run)

        patch.setattr(Run, "next_step", stopping)
        with pytest.raises(KeyboardInterrupt):
            train(config)
    return train(config)


def test_a_run_that_was_ended_goes_on_as_if_it_had_not_been(published, tmp_path):
    whole = train(parse([*published, "--out", str(tmp_path / "whole")]))
    again = ended_and_gone_on(parse([*published, "--out", str(tmp_path / "part")]))
    name = "model.safetensors"
    assert (again / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--n-layer", "2", "--n-embd", "32"], "has its own sizes; leave out --n-layer and --n-em"),
        (["--seq", "17"], r"--seq 17: the model in --from .* has 16 positions"),
    ],
)
def test_what_the_model_leaves_no_choice_of_is_refused(published, more, said, tmp_path):
    with pytest.raises(TrainingError, match=said):
        parse([*published, "--out", str(tmp_path / "run"), *more])


def test_scaled_positions_reach_as_far_as_the_model(published, tmp_path):
    path = folder_of(published) / "config.json"
    entries = json.loads(path.read_text())
    entries["rope_parameters"] = {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}
    path.write_text(json.dumps(entries))
    options = [*published, "--out", str(tmp_path / "run"), "--seq"]
    assert parse([*options, "32"]).seq == 32
    with pytest.raises(TrainingError, match="has 32 positions"):
        parse([*options, "33"])


OF_GEMMA = {"head_dim": 6, "sliding_window": 3, "layer_types": ["sliding_attention"] * 2}
TYPES = {"gpt2": "gpt2", "mistral": "llama", "gemma3_text": "gemma3"}


@pytest.mark.parametrize("family", TYPES)
def test_the_model_is_that_of_the_folder(family, text, tmp_path):
    folder = tmp_path / "published"
    publish(family, text, folder, **OF_GEMMA if family == "gemma3_text" else {})
    options = ["--from", str(folder), "--data", str(text), *SMALL.split()]
    config = parse([*options, "--out", str(tmp_path / "run")])
    assert config.architecture == TYPES[family]
    other = "gemma3" if family == "gpt2" else "gpt2"
    said = f"the weights of another model; --model is {other}, and can be left out"
    with pytest.raises(TrainingError, match=said):
        parse([*options, "--out", "x", "--model", other])
    final = train(config)
    found = losses(tmp_path / "run")
    assert found[-1] < found[0]
    assert train(parse(["--config", str(tmp_path / "run" / "config.toml")])) == final
    ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
    theirs = AutoModelForCausalLM.from_pretrained(final)(ids).logits
    torch.testing.assert_close(load_model(final)(ids), theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("family", "said"),
    [("qwen3", "heads of queries that are normed"), ("mixtral", "the matrices of experts")],
)
def test_what_ranks_cannot_share_is_said(family, said, text, tmp_path, monkeypatch):
    publish(family, text, tmp_path / "published")
    options = ["--from", str(tmp_path / "published"), "--data", str(text), *SMALL.split()]
    config = parse([*options, "--out", str(tmp_path / "run"), "--parallel", "tp"])
    monkeypatch.setenv("WORLD_SIZE", "2")
    said = f"--parallel tp: ranks cannot share {said}; give ddp or fsdp"
    with pytest.raises(TrainingError, match=said), ranks_of(config):
        pass


@pytest.mark.parametrize("found", ["marian", None])
def test_a_folder_of_no_language_model_that_can_be_trained_is_refused(found, text, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": found}))
    said = (
        rf"config.json: model_type is {re.escape(repr(found))}, and .* are of gpt2, llama, .*, gem"
    )
    with pytest.raises(TrainingError, match=said):
        parse(["--from", str(tmp_path), "--data", str(text), "--out", "x"])


def test_what_is_no_such_model_is_refused(text, tmp_path):
    options = ["--data", str(text), "--out", str(tmp_path / "run")]
    with pytest.raises(TrainingError, match=r"--from .*nowhere: .*nowhere"):
        parse([*options, "--from", str(tmp_path / "nowhere")])
    pairs = ["--source", str(text), "--target", str(text), "--out", "-"]
    with pytest.raises(TrainingError, match="--from is for language models, and --model transfo"):
        parse([*pairs, "--model", "transformer", "--from", str(tmp_path)])


def test_a_model_of_another_kind_and_a_tokenizer_without_an_end_are_refused(published, tmp_path):
    options = [*published, "--out", str(tmp_path / "run")]
    with pytest.raises(TrainingError, match=r"model_type must be gpt2, got 'llama'|another model"):
        parse([*options, "--model", "gpt2"])
    with pytest.raises(TrainingError, match=r"--dropout 0\.1: the model in --from has no dropout"):
        parse([*options, "--dropout", "0.1"])
    path = folder_of(published) / "tokenizer_config.json"
    path.write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    with pytest.raises(TrainingError, match=r"the tokenizer of --from .* names no eos_token"):
        train(parse(options))
