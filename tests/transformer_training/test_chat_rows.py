"""Runs that learn from chats: what is scored, how it counts, what is refused."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from tests.transformer_training.processes import losses
from tests.transformer_training.test_chats import (
    ANSWERS,
    CHATS,
    TEMPLATE,
    write_tokenizer,
)
from transformer_layers import load_model, load_tokenizer
from transformer_training import TrainingError, chat_with_labels, train
from transformer_training.chat_rows import prepare_chats
from transformer_training.config import parse
from transformer_training.tokens import rows_of_step

LONG = [*CHATS[0], *CHATS[1], *CHATS[2]]
UNEQUAL = [LONG, *CHATS[3:], LONG[:4], LONG, LONG, LONG]


def write_model(folder: Path, template: str | None = TEMPLATE) -> Path:
    folder.mkdir()
    write_tokenizer(folder, template)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=load_tokenizer(folder).vocab_size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=256,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def published(tmp_path: Path) -> Path:
    return write_model(tmp_path / "published")


def write_chats(path: Path, chats: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps({"messages": chat}) + "\n" for chat in chats))
    return path


def options_of(published: Path, chats: Path, out: Path, *more: str) -> list[str]:
    paths = ["--from", str(published), "--model", "llama", "--chats", str(chats), "--out", str(out)]
    small = "--steps 2 --batch-size 4 --seq 160 --validation 0 --device cpu"
    return [*paths, *small.split(), *more]


def expected_loss(published: Path, chats: Sequence[Any]) -> torch.Tensor:
    """The mean loss of all tokens of answers, each chat by itself, by the reference."""
    model, tokenizer = AutoModelForCausalLM.from_pretrained(published), load_tokenizer(published)
    total, count = torch.tensor(0.0), 0
    for chat in chats:
        ids, labels = chat_with_labels(tokenizer, chat)
        logits = model(ids[None]).logits[0, :-1]
        total = total + torch.nn.functional.cross_entropy(
            logits, labels[1:], ignore_index=-100, reduction="sum"
        )
        count += int((labels[1:] != -100).sum())
    return (total / count).detach()


def test_each_token_of_an_answer_counts_as_much(published, tmp_path):
    """Over chats that share rows, rows that share a batch, and micro-batches."""
    chats = write_chats(tmp_path / "chats.jsonl", UNEQUAL)
    options = options_of(published, chats, tmp_path / "run")
    rows = prepare_chats(parse(options), tmp_path / "tokens")
    assert rows.rows() == 4
    assert any(len(row) > 1 for row in rows.learned)
    assert sorted(i for row in rows.learned for i in row) == list(range(len(UNEQUAL)))
    numbers = rows_of_step(1, 4, 4, seed=0)
    scored = {
        int((batch.labels != -100).sum()) for batch in rows.batches(numbers.split(1), numbers)
    }
    assert len(scored) > 1
    expected = expected_loss(published, UNEQUAL)
    for out, more in (("whole", []), ("parts", ["--micro-batch", "1"])):
        train(parse(options_of(published, chats, tmp_path / out, *more)))
        found = torch.tensor(losses(tmp_path / out)[0])
        torch.testing.assert_close(found, expected, atol=2e-6, rtol=0)


def test_two_ranks_learn_what_one_does(published, tmp_path, parent):
    chats = write_chats(tmp_path / "chats.jsonl", UNEQUAL)
    train(parse(options_of(published, chats, tmp_path / "one")))
    options = options_of(published, chats, tmp_path / "two", "--parallel", "ddp")
    ranks = parent.ranks(2, options, tmp_path / "said")
    assert [rank.wait() for rank in ranks] == [0, 0], ranks[0].said()
    one, two = (torch.tensor(losses(tmp_path / name)) for name in ("one", "two"))
    torch.testing.assert_close(two, one, atol=1e-5, rtol=0)


def test_a_model_learns_its_chats_and_answers(published, tmp_path, capsys):
    path = tmp_path / "chats.jsonl"
    lines = [
        {"messages": CHATS[0]},
        *({"prompt": ask["content"], "completion": said["content"]} for ask, said in CHATS[1:]),
    ]
    path.write_text("\n\n".join(map(json.dumps, lines)))
    more = "--steps 150 --lr 1e-2 --seq 64 --sample-every 150 --sample-tokens 9 --prompt".split()
    asked = CHATS[3][0]["content"]
    final = train(parse([*options_of(published, path, tmp_path / "run", *more), asked]))
    model, tokenizer = load_model(final), load_tokenizer(final)
    ids = tokenizer.chat(CHATS[0][:1])
    written = model.generate(ids[None], max_new_tokens=8, eos_token=tokenizer.eos_token)
    assert ANSWERS[0] in tokenizer.decode(written[0, len(ids) :])
    said = capsys.readouterr().out
    assert "10 chats to learn in" in said
    assert f"step 150 writes: {ANSWERS[3]!r}" in said


def test_chats_are_held_out_and_long_ones_left_out(published, tmp_path, capsys):
    path = write_chats(tmp_path / "chats.jsonl", [LONG, *CHATS])
    options = options_of(published, path, tmp_path / "run", "--seq", "64", "--validation", "0.2")
    rows = prepare_chats(parse(options), tmp_path / "tokens")
    numbered = lambda rows: [i for row in rows for i in row]  # noqa: E731
    assert numbered(rows.learned) == list(range(1, 9))
    assert numbered(rows.held_out) == [9, 10]
    assert "8 chats to learn in" in rows.said(1.0)
    assert "1 more being longer than --seq 64" in rows.said(1.0)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", r"--chats .*chats\.jsonl, line 2: is no JSON"),
        ('{"messages": [{"role": "user", "content": "a"}]}', "line 2: a chat must have an answer"),
    ],
)
def test_what_is_no_chat_is_refused(published, tmp_path, line, said):
    path = write_chats(tmp_path / "chats.jsonl", CHATS[:1])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(TrainingError, match=said):
        train(parse(options_of(published, path, tmp_path / "run")))


def test_a_tokenizer_that_cannot_write_chats_is_refused(tmp_path):
    published = write_model(tmp_path / "published", None)
    path = write_chats(tmp_path / "chats.jsonl", [LONG])
    said = "the tokenizer has no chat template; --from or --tokenizer must name"
    with pytest.raises(TrainingError, match=said):
        train(parse(options_of(published, path, tmp_path / "run")))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--chats a", "--chats needs --from or --tokenizer, a folder whose tokenizer has a chat"),
        ("--chats a --data b --tokenizer t", "from --data or from --chats, and both are given"),
        ("--chats a --model transformer", "and not from --data or --chats; got --chats"),
    ],
)
def test_options_that_do_not_fit_are_refused(more, said):
    with pytest.raises(TrainingError, match=said):
        parse(["--out", "run", *more.split()])
