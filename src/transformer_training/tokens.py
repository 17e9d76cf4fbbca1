"""The tokens of the texts: encoded once, and read from the disk wherever a step needs them."""

import hashlib
import os
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from transformer_layers import Tokenizer, load_tokenizer, train_tokenizer
from transformer_training.config import TrainingConfig, TrainingError

_PIECE = 1 << 20  # characters that are encoded at once
_LEARNED_FROM = 1 << 24  # characters that a tokenizer is trained on, at most
_USUAL_VOCABULARIES = (1024, 512, 257)


@dataclass(frozen=True)
class Tokens:
    """The tokens of a run.

    Attributes:
        train: Those that are learned, one after the other, mapped from a file.
        validation: Those that are held out.
        tokenizer: What made them.
        fingerprint: SHA-256 of the texts and the tokenizer.
    """

    train: Int[Tensor, " train"]
    validation: Int[Tensor, " validation"]
    tokenizer: Tokenizer
    fingerprint: str


def prepare(config: TrainingConfig, folder: Path) -> Tokens:
    """Gives the tokens of the texts, and makes their file where it is not made yet.

    Args:
        config: The run's; it names the texts, the tokenizer and the share that is held out.
        folder: Where the tokenizer and the file of tokens are, or will be.

    Returns:
        The tokens.

    Raises:
        TrainingError: If a text cannot be read, is empty or too short, or is not the one that
            the file was made of.
    """
    texts = [Path(name) for name in config.data]
    digest = _digest(texts)
    tokenizer = _tokenizer(config, texts, folder, digest)
    vocabulary = [(folder / name).read_bytes() for name in ("merges.txt", "vocab.json")]
    fingerprint = hashlib.sha256(digest.encode() + b"".join(vocabulary)).hexdigest()
    path = folder / f"tokens-{fingerprint[:16]}.bin"
    kind = torch.uint16 if tokenizer.vocab_size <= 1 << 16 else torch.int32
    if not path.is_file():
        _write(path, texts, tokenizer, "H" if kind is torch.uint16 else "i")
    count = path.stat().st_size // kind.itemsize
    held_out = round(config.validation * count)
    if min(count - held_out, held_out or count) < config.seq + 1:
        parts = f"{count - held_out:,} to learn and {held_out:,} to validate"
        raise TrainingError(
            f"the texts are too short: their {count:,} tokens make {parts}, and either must have "
            f"{config.seq + 1} for a sequence of --seq {config.seq} and the token after it"
        )
    tokens = torch.from_file(str(path), shared=False, size=count, dtype=kind)
    return Tokens(tokens[: count - held_out], tokens[count - held_out :], tokenizer, fingerprint)


def rows_of_step(step: int, batch_size: int, rows: int, seed: int) -> Int[Tensor, " batch_size"]:
    """The sequences that a step learns from: a function of its number, so nothing needs saving.

    An epoch is a permutation of all sequences; a step takes the next `batch_size` of them, and the
    rest from the next epoch's permutation where one ends.

    Args:
        step: Number of the step, from 1 on.
        batch_size: Sequences of a step.
        rows: Sequences that there are.
        seed: Of the permutations.

    Returns:
        Their numbers.

    Examples:
        >>> [rows_of_step(step, 2, rows=3, seed=0).tolist() for step in (1, 2, 3)]
        [[0, 2], [1, 0], [1, 2]]
    """
    first = (step - 1) * batch_size
    taken = [divmod(place, rows) for place in range(first, first + batch_size)]
    return torch.stack([_order(epoch, rows, seed)[place] for epoch, place in taken])


def sequences(
    tokens: Int[Tensor, " count"], rows: Int[Tensor, " batch"], seq: int
) -> Int[Tensor, "batch seq_and_next"]:
    """The sequences of some numbers, each with the token after it.

    Sequence i begins at token `i * seq`: each token after the first is predicted in one of them.

    Args:
        tokens: All tokens.
        rows: Numbers of sequences.
        seq: Positions of a sequence.

    Returns:
        int64 of shape `(batch, seq + 1)`.

    Examples:
        >>> sequences(torch.arange(10), torch.tensor([2, 0]), seq=3)
        tensor([[6, 7, 8, 9],
                [0, 1, 2, 3]])
    """
    return torch.stack([tokens[i * seq : (i + 1) * seq + 1] for i in rows.tolist()]).long()


def number_of_rows(tokens: Int[Tensor, " count"], seq: int) -> int:
    """How many sequences of `seq` positions, each with the token after it, the tokens have."""
    return (len(tokens) - 1) // seq


def seed_of(*what: object) -> int:
    """A seed for what is drawn at a place of a run; two places draw nothing alike."""
    return int.from_bytes(hashlib.sha256(repr(what).encode()).digest()[:7], "big")


@lru_cache(maxsize=2)  # a step may lie in two epochs
def _order(epoch: int, rows: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed_of(seed, "epoch", epoch))
    return torch.randperm(rows, generator=generator)


def _digest(texts: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in texts:
        try:
            if path.exists() and not path.is_file():
                raise TrainingError(
                    f"--data {path}: is no regular file; texts are read more than once"
                )
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise TrainingError(f"--data {path}: cannot be read: {error.strerror}") from error
        if path.stat().st_size == 0:
            raise TrainingError(f"--data {path}: is empty")
    return digest.hexdigest()


def _tokenizer(
    config: TrainingConfig, texts: Sequence[Path], folder: Path, digest: str
) -> Tokenizer:
    made_of = f"{digest} {config.vocab_size} {config.tokenizer}"
    seal = folder / "made-of.txt"
    if seal.is_file() and seal.read_text() == made_of:
        return _loaded(folder, f"remove {folder} to have it made anew")
    if any(folder.glob("tokens-*.bin")):
        raise TrainingError(
            f"{folder}: was made of other texts, or with another tokenizer; train on these with "
            "another --out"
        )
    if config.tokenizer:
        tokenizer = _loaded(config.tokenizer, "name a tokenizer's folder with --tokenizer")
    else:
        tokenizer = _trained(config, texts)
    tokenizer.save(folder)
    seal.write_text(made_of)
    return tokenizer


def _loaded(folder: str | Path, remedy: str) -> Tokenizer:
    try:
        return load_tokenizer(folder)
    except (OSError, ValueError) as error:
        raise TrainingError(f"{error}; {remedy}") from error


def _trained(config: TrainingConfig, texts: Sequence[Path]) -> Tokenizer:
    pieces, length = [], 0
    for path in texts:
        for piece in _pieces(path):
            pieces.append(piece)
            length += len(piece)
            if length > _LEARNED_FROM:
                break
    if config.vocab_size:
        try:
            return train_tokenizer(pieces, config.vocab_size)
        except ValueError as error:
            raise TrainingError(f"--vocab-size {config.vocab_size}: {error}") from error
    for size in _USUAL_VOCABULARIES[:-1]:
        with suppress(ValueError):  # the text has not so many pairs
            return train_tokenizer(pieces, size)
    return train_tokenizer(pieces, _USUAL_VOCABULARIES[-1])


def _pieces(path: Path) -> Iterator[str]:
    """Cuts a text where GPT-2's pattern cuts it anyway: between a line and the next word."""
    lines: list[str] = []
    length = 0
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for line in file:
                ends = bool(lines) and lines[-1][-2:-1].strip() and lines[-1].endswith("\n")
                if length >= _PIECE and ends and line[:1].strip():
                    yield "".join(lines)
                    lines, length = [], 0
                lines.append(line)
                length += len(line)
    except UnicodeDecodeError as error:
        raise TrainingError(f"--data {path}: is no text in UTF-8: {error}") from error
    yield "".join(lines)


def _write(path: Path, texts: Sequence[Path], tokenizer: Tokenizer, code: str) -> None:
    aside = path.with_suffix(".unfinished")
    with aside.open("wb") as file:
        for text in texts:
            for piece in _pieces(text):
                _append(file.fileno(), array(code, tokenizer.encode(piece).tolist()))
            _append(file.fileno(), array(code, [tokenizer.end_of_text]))
        os.fsync(file.fileno())
    aside.replace(path)


def _append(descriptor: int, numbers: "array[int]") -> None:
    data = memoryview(numbers.tobytes())
    while data:  # a full disk takes a part first
        data = data[os.write(descriptor, data) :]
