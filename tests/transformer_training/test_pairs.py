"""Pairs of lines: which belong together, which are left out, and what a batch of them is."""

import dataclasses
from pathlib import Path

import pytest
import torch

from transformer_training import TrainingConfig, TrainingError, pairs, tokens
from transformer_training.config import parse
from transformer_training.pairs import prepare_pairs


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_bytes(text.encode())
    return str(folder / name)


@pytest.fixture
def config(tmp_path: Path) -> TrainingConfig:
    sources = [f"the {word} is here" * (1 + i % 2) for i, word in enumerate("abcdefghij" * 2)]
    targets = [f"hier ist {word}" for word in "ABCDEFGHIJ" * 2]
    return TrainingConfig(
        out="-",
        architecture="transformer",
        source=(written(tmp_path, "source", "\n".join(sources) + "\n"),),
        target=(written(tmp_path, "target", "\n".join(targets)),),
        seq=64,
        vocab_size=262,
    )


def of(config: TrainingConfig, folder: Path, source: str, target: str) -> TrainingConfig:
    return dataclasses.replace(
        config,
        source=(written(folder, "other-source", source),),
        target=(written(folder, "other-target", target),),
        vocab_size=257,
        validation=0.0,
    )


def texts_of(found: pairs.Pairs, *, held_out: bool = False) -> list[tuple[str, str]]:
    rows = torch.arange(found.rows(held_out))
    (batch,) = found.batches([rows], rows, held_out=held_out)
    end, decode = found.tokenizer.end_of_text, found.tokenizer.decode
    assert ((batch.source_ids == end).sum(dim=1) == 1).all()
    assert ((batch.target_ids == end).sum(dim=1) == 1).all()
    assert torch.equal(batch.source_mask[:, 0], batch.source_ids <= end)
    return [
        (decode(source[source < end]), decode(target[target < end]))
        for source, target in zip(batch.source_ids, batch.target_ids, strict=True)
    ]


def test_line_n_belongs_to_line_n_and_the_last_pairs_are_held_out(config, tmp_path):
    found = prepare_pairs(config, tmp_path / "tokens")
    sources = Path(config.source[0]).read_text().splitlines()
    targets = Path(config.target[0]).read_text().splitlines()
    expected = list(zip(sources, targets, strict=True))
    assert texts_of(found) == expected[:18]
    assert texts_of(found, held_out=True) == expected[18:]
    assert found.tokenizer.vocab_size == 262
    assert found.said(2.0) == "18 pairs to learn, 2.0 times"


def test_a_pair_with_an_empty_line_is_left_out_and_counted(config, tmp_path, capsys):
    config = of(config, tmp_path, "a\n\nc\n  \t\ne\u2028f\r\n g \n", "A\nB\n\n\nE\rF\nG")
    found = prepare_pairs(config, tmp_path / "tokens")
    assert texts_of(found) == [("a", "A"), ("e\u2028f", "E\rF"), ("g", "G")]
    assert "leaving out 3 of 6 pairs, of which a line is empty" in capsys.readouterr().out


def test_a_pair_that_is_too_long_is_left_out_and_counted(config, tmp_path):
    config = of(config, tmp_path, "abc\nabcd\nabc\nabc", "A\nA\nABCD\nABC")
    found = prepare_pairs(dataclasses.replace(config, seq=4), tmp_path / "tokens")
    assert texts_of(found) == [("abc", "A"), ("abc", "ABC")]
    assert found.said(1.0) == "2 pairs to learn, 2 more being longer than --seq 4, 1.0 times"
    assert found.per_row == 3
    said = (
        r"4 pairs have two lines .* 0 of them no side of more than --seq 1 .* to validate; "
        r"the shortest pair has 4 tokens on its longer side, of a vocabulary of [\d,]+$"
    )
    with pytest.raises(TrainingError, match=said):
        prepare_pairs(dataclasses.replace(config, seq=1), tmp_path / "tokens")


def test_texts_of_different_lengths_are_refused_with_both_counts(config, tmp_path):
    config = of(config, tmp_path, "a\nb\nc\n", "A\nB\n")
    said = (
        f"^--source {config.source[0]} has 3 lines and --target {config.target[0]} has "
        f"2 lines: line n of one must be the translation of line n of the other$"
    )
    with pytest.raises(TrainingError, match=said):
        prepare_pairs(config, tmp_path / "tokens")
    assert not list((tmp_path / "tokens").glob("*"))


def test_the_share_of_batches_makes_their_mean_that_of_all_tokens(config, tmp_path):
    config = of(config, tmp_path, "a\nb\nc\nd\n", "A\nBBBBB\nCCC\nDDDDDDD\n")
    found = prepare_pairs(config, tmp_path / "tokens")
    rows = torch.arange(4)
    counts = torch.tensor([2.0, 6.0, 4.0, 8.0])  # tokens with the end
    shares = [batch.share for batch in found.batches(rows.split(1), rows)]
    torch.testing.assert_close(torch.stack(shares), counts / counts.mean())
    halves = [  # of two ranks with a batch each
        next(iter(found.batches([part], rows, ranks=2))).share for part in rows.split(2)
    ]
    torch.testing.assert_close(torch.stack(halves), torch.tensor([0.8, 1.2]))


def test_the_file_is_made_once_and_of_these_texts(config, tmp_path, monkeypatch):
    folder = tmp_path / "tokens"
    first = prepare_pairs(config, folder)
    with monkeypatch.context() as patch:
        patch.setattr(tokens, "_write", None)
        patch.setattr(tokens, "train_tokenizer", None)
        again = prepare_pairs(config, folder)
    assert again.ids.equal(first.ids)
    assert again.fingerprint == first.fingerprint
    back = dataclasses.replace(config, source=config.target, target=config.source)
    with pytest.raises(TrainingError, match="was made of other texts"):
        prepare_pairs(back, folder)
    text = TrainingConfig(data=(*config.source, *config.target), out="-", seq=8, vocab_size=262)
    with pytest.raises(TrainingError, match="was made of other texts"):
        tokens.prepare(text, folder)


def test_a_tokenizer_must_end_with_what_ends_a_text(config, tmp_path):
    folder = tmp_path / "tokenizer"
    prepared = prepare_pairs(config, tmp_path / "tokens").tokenizer
    vocab = dict(prepared._vocab)
    vocab["<|endoftext|>"], other = 260, next(key for key, n in vocab.items() if n == 260)
    vocab[other] = 261
    type(prepared)(vocab, prepared._merges).save(folder)
    config = dataclasses.replace(config, tokenizer=str(folder))
    with pytest.raises(TrainingError, match=r"its last token, 261, must be .* that is 260$"):
        prepare_pairs(config, tmp_path / "again")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--model transformer --source a", "one text file or more each, .* got --source"),
        (
            "--source a --target b",
            "--model gpt2 is a language model, which learns from --d",
        ),
        ("--model transformer --source a b --target c", "as many files, got 2 and 1"),
        ("--data a --label-smoothing 0.1", "--label-smoothing is for translators"),
        ("--data a --schedule paper --lr 1e-2", "takes no --lr and no --min-lr"),
        ("--data a --schedule paper --warmup 0", "--schedule paper needs a step or more"),
    ],
)
def test_options_that_do_not_fit(options, said):
    with pytest.raises(TrainingError, match=said):
        parse(["--out", "-", *options.split()])


def test_texts_of_both_sides_in_a_file_of_options(tmp_path):
    path = tmp_path / "run.toml"
    config = parse("--model transformer --source a b --target c d --out run".split())
    assert (config.source, config.target) == (("a", "b"), ("c", "d"))
    path.write_text(config.to_toml())
    assert parse(["--config", str(path)]) == config
