"""The tokens of the texts, and which of them a step reads."""

import dataclasses
import os
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from transformer_layers import Tokenizer, train_tokenizer
from transformer_layers.tokenizers.byte_pairs import pieces
from transformer_training import TrainingConfig, TrainingError, tokens
from transformer_training.tokens import number_of_rows, prepare, rows_of_step, sequences

pytestmark = pytest.mark.usefixtures("ended_if_it_waits")


@pytest.fixture
def config(text: Path) -> TrainingConfig:
    return TrainingConfig(data=(str(text),), out="unused", seq=8, vocab_size=300)


def test_the_file_has_the_tokens_of_the_texts_each_with_an_end(config, text, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("ä\n", encoding="utf-8")
    found = prepare(dataclasses.replace(config, data=(str(text), str(other))), tmp_path)
    encode, end = found.tokenizer.encode, torch.tensor([found.tokenizer.end_of_text])
    expected = torch.cat([encode(text.read_text()), end, encode("ä\n"), end])
    assert torch.cat([found.train.long(), found.validation.long()]).equal(expected)
    assert len(found.validation) == round(0.1 * len(expected))


@pytest.mark.parametrize("piece", [1, 40])
def test_a_text_that_is_encoded_in_pieces_has_the_same_tokens(config, tmp_path, monkeypatch, piece):
    odd = tmp_path / "odd.txt"
    odd.write_bytes("a\n\nb\n 'c\n'll x\n\t\ny \nz\r\nä\nb\n\n\n".encode() * 20)
    config = dataclasses.replace(config, data=(str(odd),), vocab_size=262)
    monkeypatch.setattr(tokens, "_PIECE", piece)
    found = prepare(config, tmp_path)
    ids = torch.cat([found.train, found.validation]).long()
    assert ids[:-1].equal(found.tokenizer.encode(odd.read_bytes().decode()))
    assert len(list(tokens._pieces(odd))) > 1


def test_a_file_that_was_not_finished_is_made_again(config, tmp_path, monkeypatch):
    def full(descriptor: int, numbers: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(tokens, "_append", full)
        with pytest.raises(OSError, match="No space left"):
            prepare(config, tmp_path)
    assert len(prepare(config, tmp_path).train) > 1000


def test_each_token_after_the_first_is_predicted_once_in_an_epoch():
    ids = torch.arange(100, 150)
    rows = number_of_rows(ids, seq=7)
    assert rows == 7
    batch = sequences(ids, torch.cat([rows_of_step(i, 1, rows, seed=3) for i in range(1, 8)]), 7)
    assert batch[:, 1:].flatten().sort().values.equal(ids[1:])
    assert batch[:, :-1].flatten().sort().values.equal(ids[:-1])
    assert number_of_rows(ids[:-1], seq=7) == 6


def test_steps_go_through_epochs_whose_orders_differ():
    taken = torch.cat([rows_of_step(step, 4, rows=10, seed=0) for step in range(1, 11)])
    epochs = taken.view(4, 10)
    assert_close(epochs.sort(dim=1).values, torch.arange(10).expand(4, 10))
    assert len({tuple(epoch.tolist()) for epoch in epochs}) == 4
    other = torch.cat([rows_of_step(step, 4, rows=10, seed=1) for step in range(1, 11)])
    assert not other.equal(taken)
    large = rows_of_step(1, 25, rows=10, seed=0)
    assert large.equal(taken[:25])


@pytest.mark.parametrize(
    ("put", "said"),
    [
        (lambda path: None, "there is no such file$"),
        (lambda path: path.symlink_to("nothing"), "is a link that leads to no file$"),
        (os.mkfifo, "is a pipe, and must be a regular file"),
        (Path.touch, "is empty"),
        (lambda path: path.write_bytes(b"\xff" * 100), "is no text in UTF-8"),
        (lambda path: path.write_bytes(bytes(1 << 21)), "has 2,097,152 NULs in a row, so it is no"),
    ],
)
def test_what_is_no_text(config, tmp_path, put, said):
    path = tmp_path / "text.txt"
    put(path)
    config = dataclasses.replace(config, data=(str(path),), vocab_size=0)
    with pytest.raises(TrainingError, match=f"^--data {path}: {said}"):
        prepare(config, tmp_path / "tokens")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seq": 9999}, "the texts are too short: their .* tokens make .* and either must have"),
        ({"vocab_size": 9999}, "--vocab-size 9999: the texts have pairs for a vocab_size of "),
        ({"tokenizer": "."}, r"--tokenizer \.: there is no vocab\.json"),
    ],
)
def test_what_does_not_fit_the_texts(config, tmp_path, changed, said):
    with pytest.raises(TrainingError, match=f"^{said}"):
        prepare(dataclasses.replace(config, **changed), tmp_path)


def test_a_tokenizer_is_learned_from_no_more_than_the_limit(config, text, tmp_path, monkeypatch):
    monkeypatch.setattr(tokens, "_PIECE", 100)
    monkeypatch.setattr(tokens, "_LEARNED_FROM", 1000)
    learned: list[str] = []

    def train(pieces: list[str], size: int) -> Tokenizer:
        learned.extend(pieces)
        return train_tokenizer(pieces, size)

    monkeypatch.setattr(tokens, "train_tokenizer", train)
    prepare(dataclasses.replace(config, data=(str(text),) * 4, vocab_size=260), tmp_path)
    assert "".join(learned) == text.read_text()[: sum(map(len, learned))]
    assert 1000 < sum(map(len, learned)) < 1300


# Pieces of GPT-2's pattern that end in all ways, none of them between a line and the next word.
_WITHOUT_LINES = {
    "words": "It's 12 o'clock,  they'll say\tno\u00a0way don't ",
    "windows": "a line\r\n and  \r\n\r\nanother's\r\n",
    "no spaces": "they'll,it's;we've|12ab\u4e2d\u6587,",
    "indented": " \ta\n \tb\n\n  it'll\n",
}


@pytest.mark.parametrize("kind", _WITHOUT_LINES)
def test_a_text_without_lines_is_cut_between_its_pieces(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(tokens, "_PIECE", 20)
    monkeypatch.setattr(tokens, "_LONGEST_PIECE", 67)
    path = tmp_path / "text.txt"
    written = _WITHOUT_LINES[kind] * 50
    path.write_bytes(written.encode())
    cut = list(tokens._pieces(path))
    assert "".join(cut) == written
    assert max(map(len, cut)) <= 2 * 67
    assert [each for part in cut for each in pieces(part)] == pieces(written)


@pytest.mark.parametrize("break_less", ["a", "\n", " "])
def test_a_text_without_breaks_is_cut_all_the_same(tmp_path, monkeypatch, break_less):
    monkeypatch.setattr(tokens, "_PIECE", 1000)
    monkeypatch.setattr(tokens, "_LONGEST_PIECE", 2000)
    path = tmp_path / "text.txt"
    written = "two words" + break_less * 50_000 + "and\nmore"
    path.write_bytes(written.encode())
    cut = list(tokens._pieces(path))
    assert "".join(cut) == written
    assert max(map(len, cut)) <= 3 * 2000


def test_other_texts_need_another_folder(config, text, tmp_path):
    copy = tmp_path / "text.txt"
    copy.write_text(text.read_text())
    config = dataclasses.replace(config, data=(str(copy),))
    prepare(config, tmp_path)
    prepare(dataclasses.replace(config, data=(str(text),)), tmp_path)  # known by its contents
    copy.write_text(text.read_text() + "more")
    with pytest.raises(TrainingError, match="was made of other texts, or with another tokenizer"):
        prepare(config, tmp_path)
