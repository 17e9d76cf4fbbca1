"""A published GPT-2 is measured, here a small one that `transformers` has written."""

import math
import sys
from pathlib import Path

import pytest
import torch
import transformers

from evaluation.published import __main__ as program
from evaluation.published import measure
from transformer_layers import GPT2, load_tokenizer, train_tokenizer

TEXT = "She had a very good mind, and he had none. " * 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    train_tokenizer([TEXT], 280).save(folder)
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=280, n_positions=16, n_embd=8, n_layer=2, n_head=2)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def test_its_logits_are_those_of_transformers(folder: Path):
    assert measure(folder, TEXT).difference < 1e-13


def test_its_loss_is_the_mean_over_rows_of_all_positions(folder: Path):
    found = measure(folder, TEXT)
    model = GPT2.from_pretrained(folder)
    tokenizer = load_tokenizer(folder)
    ids = tokenizer.encode(TEXT)
    rows = (len(ids) - 1) // 16
    losses = [model.loss(ids[None, i * 16 : i * 16 + 17]).item() for i in range(rows)]
    assert found.nats_a_token == pytest.approx(sum(losses) / rows, rel=1e-5)
    assert found.perplexity == pytest.approx(math.exp(found.nats_a_token))
    scored = tokenizer.decode(ids[1 : rows * 16 + 1])
    total = found.nats_a_token * rows * 16
    assert found.nats_a_byte == pytest.approx(total / len(scored.encode()))
    assert found.sample.startswith("She had")


def test_the_program_prints_what_was_found(folder: Path, monkeypatch, capsys):
    monkeypatch.setattr(program, "novels", lambda: {program.HELD_OUT: TEXT})
    monkeypatch.setattr(sys, "argv", ["published", "--model", str(folder)])
    program.main()
    said = capsys.readouterr().out
    assert "perplexity: " in said
    assert "She had" in said


def test_files_that_there_are_not_are_named_with_the_remedy(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(program, "novels", lambda: {program.HELD_OUT: TEXT})
    monkeypatch.setattr(sys, "argv", ["published", "--model", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"model\.safetensors.* Remedy: a network, or --model"):
        program.main()
