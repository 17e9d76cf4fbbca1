"""The tokens of the texts: encoded once, and read from the disk wherever a step needs them."""

import hashlib
import os
import re
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import torch
from jaxtyping import Int
from torch import Tensor

from transformer_layers import load_tokenizer, train_tokenizer
from transformer_layers.checkpoints.regular_file import read_regular, require_regular
from transformer_layers.tokenizers.byte_pairs import PIECES
from transformer_training.config import TrainingConfig, TrainingError
from transformer_training.lines import entries_of, line_of
from transformer_training.log import say
from transformer_training.plans.plan import Trainable
from transformer_training.state import replacing, why_not
from transformer_training.vocabulary import (
    PAIR,
    AnyTokenizer,
    begin_of,
    end_of,
    files_of,
    tokens_of,
)

_PIECE = 1 << 20  # characters that are encoded at once
_LONGEST_PIECE = 1 << 21  # a text without lines is cut elsewhere, into pieces of twice this at most
_LEARNED_FROM = 1 << 24  # characters that a tokenizer is trained on, at most
_CHUNK = 1 << 20  # bytes that are read at once
_LARGEST = 1 << 26  # bytes of a vocabulary; GPT-2's has a sixtieth of it
_BETWEEN_WORDS = re.compile(r"\S(?= \S)")
_USUAL_VOCABULARIES = (1024, 512, 257)


@dataclass(frozen=True)
class Tokens:
    """The tokens of a run.

    Attributes:
        train: Those that are learned, one after the other, mapped from a file.
        validation: Those that are held out.
        tokenizer: What made them.
        fingerprint: SHA-256 of the texts and the tokenizer.
        seq: Positions of a sequence.
    """

    train: Int[Tensor, " train"]
    validation: Int[Tensor, " validation"]
    tokenizer: AnyTokenizer
    fingerprint: str
    seq: int

    def rows(self, held_out: bool = False) -> int:
        """How many sequences there are to learn from, or that are held out."""
        return number_of_rows(self._of(held_out), self.seq)

    def batches(
        self,
        parts: Sequence[Int[Tensor, " _"]],
        among: Int[Tensor, " rows"],
        ranks: int = 1,
        held_out: bool = False,
    ) -> Iterator[Tensor]:
        """The sequences of some numbers.

        Args:
            parts: Numbers of the sequences of each batch.
            among: Numbers of all that count in a mean, of these batches and of other ranks'.
            ranks: How many ranks have as many batches.
            held_out: Whether they are of those that are held out.

        Yields:
            Each batch, of shape `(batch, seq + 1)`.
        """
        for part in parts:
            yield sequences(self._of(held_out), part, self.seq)

    @property
    def per_row(self) -> int:
        """Tokens of a sequence that are learned."""
        return self.seq

    def said(self, times: float) -> str:
        """What there is to learn, and how often it is."""
        return f"{len(self.train):,} tokens to learn, {times:.1f} times"

    def sample(self, model: Trainable, prompt: str, new: int, seed: int) -> str:
        """How a model goes on from a text.

        Args:
            model: The model.
            prompt: The text; its end, where it has more tokens than there are positions.
            new: Tokens to write, at most.
            seed: Of the draws.
        """
        begin = begin_of(self.tokenizer) or [end_of(self.tokenizer)]  # after which texts begin
        text = tokens_of(self.tokenizer, prompt)
        ids = torch.tensor((begin_of(self.tokenizer) + text or begin)[-max(self.seq - 1, 1) :])
        new = min(new, self.seq - len(ids))
        draws = torch.Generator().manual_seed(seed)
        written = model.generate(ids[None], new, temperature=0.8, top_k=50, generator=draws)
        return self.tokenizer.decode(written[0])

    def _of(self, held_out: bool) -> Tensor:
        return self.validation if held_out else self.train


class Encoded(NamedTuple):
    """The tokens of all texts, as the file has them.

    Attributes:
        ids: The tokens, mapped from the file.
        tokenizer: What made them.
        fingerprint: SHA-256 of the texts and the tokenizer.
    """

    ids: Int[Tensor, " count"]
    tokenizer: AnyTokenizer
    fingerprint: str


@dataclass(frozen=True)
class Texts:
    """The text files of a run, and how they are read.

    Attributes:
        files: The files, by the option that names them.
        pieces: Gives pieces of the texts, to train a tokenizer on.
        encoded: Gives what the file of tokens is to hold, part by part.
    """

    files: Mapping[str, Sequence[Path]]
    pieces: Callable[[], Iterable[str]]
    encoded: Callable[[AnyTokenizer], Iterable[list[int]]]


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
    paths = [Path(name) for name in config.data]
    texts = Texts(
        {"--data": paths},
        lambda: (piece for path in paths for piece in _pieces(path)),
        lambda tokenizer: _encoded(paths, tokenizer),
    )
    ids, tokenizer, fingerprint = encoded_once(config, texts, folder)
    count = len(ids)
    held_out = round(config.validation * count)
    if min(count - held_out, held_out or count) < config.seq + 1:
        parts = f"{count - held_out:,} to learn and {held_out:,} to validate"
        raise TrainingError(
            f"the texts are too short: their {count:,} tokens make {parts}, and either must have "
            f"{config.seq + 1} for a sequence of --seq {config.seq} and the token after it"
        )
    learned, kept = ids[: count - held_out], ids[count - held_out :]
    return Tokens(learned, kept, tokenizer, fingerprint, config.seq)


def encoded_once(config: TrainingConfig, texts: Texts, folder: Path) -> Encoded:
    """Gives the tokens of texts, and makes their tokenizer and their file where they are not yet.

    Args:
        config: The run's.
        texts: The texts.
        folder: Where the tokenizer and the file of tokens are, or will be.

    Returns:
        The tokens.

    Raises:
        TrainingError: If a text cannot be read, is empty, or is not the one that the file was made
            of.
    """
    digest = _digest(texts.files)
    tokenizer = _tokenizer(config, texts, folder, digest)
    names = [name for name in files_of(tokenizer) if os.path.lexists(folder / name)]
    vocabulary = [(folder / name).read_bytes() for name in names]
    fingerprint = hashlib.sha256(digest.encode() + b"".join(vocabulary)).hexdigest()
    path = folder / f"tokens-{fingerprint[:16]}.bin"
    kind = torch.uint16 if tokenizer.vocab_size <= 1 << 16 else torch.int32
    if not _is_whole(path):
        _write(path, texts, tokenizer, "H" if kind is torch.uint16 else "i")
    count = path.stat().st_size // kind.itemsize
    ids = torch.from_file(str(path), shared=False, size=count, dtype=kind)
    return Encoded(ids, tokenizer, fingerprint)


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


def random_sequences(vocab_size: int, n: int, seq: int) -> Int[Tensor, "n seq_and_next"]:
    """Sequences of random tokens, each with the token after it, to measure what a step costs.

    Args:
        vocab_size: Tokens of the tokenizer.
        n: How many sequences.
        seq: Positions of each.
    """
    return torch.randint(vocab_size, (n, seq + 1))


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


def _digest(files: Mapping[str, Sequence[Path]]) -> str:
    digest = hashlib.sha256()
    if len(files) > 1:
        digest.update(" ".join(files).encode())  # the same files are no pairs where one names them
    for flag, path in ((flag, path) for flag, paths in files.items() for path in paths):
        try:
            size = require_regular(path)
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except (ValueError, OSError) as error:
            raise TrainingError(f"{flag} {why_not(path, error)}") from error
        if size == 0:
            raise TrainingError(f"{flag} {path}: is empty")
    return digest.hexdigest()


def _tokenizer(config: TrainingConfig, texts: Texts, folder: Path, digest: str) -> AnyTokenizer:
    """The run's tokenizer. A seal says what it was made of, and what its files held then."""
    wanted = config.tokenizer or config.start
    made_of = {"texts": digest, "vocab_size": config.vocab_size, "tokenizer": wanted}
    seal = folder / "made-of.txt"
    begun = any(folder.glob("tokens-*.bin"))
    if begun or os.path.lexists(seal):
        sealed = _unsealed(seal)
        if made_of.items() <= sealed.items():
            for name in [name for name in sealed if name not in made_of] or PAIR:
                if _sha256(folder / name) != sealed.get(name):
                    raise _not_as_written(folder / name)
            return load_tokenizer(folder)
    if begun:
        raise TrainingError(
            f"{folder}: was made of other texts, or with another tokenizer; train on these with "
            "another --out"
        )
    tokenizer = _made(config, texts)
    tokenizer.save(folder)
    with replacing(seal) as aside:
        names = [name for name in files_of(tokenizer) if os.path.lexists(folder / name)]
        files = {name: _sha256(folder / name) for name in names}
        aside.write_text(line_of(made_of | files), encoding="utf-8")
    return tokenizer


def _unsealed(seal: Path) -> dict[str, Any]:
    try:
        return entries_of(read_regular(seal, _LARGEST))
    except (ValueError, OSError) as error:
        raise _not_as_written(seal) from error


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(read_regular(path, _LARGEST)).hexdigest()
    except (ValueError, OSError) as error:
        raise _not_as_written(path) from error


def _not_as_written(path: Path) -> TrainingError:
    return TrainingError(
        f"{path}: is not there as the run wrote it; remove the folder {path.parent}, and what was "
        "in it is made anew of the same texts"
    )


def _made(config: TrainingConfig, texts: Texts) -> AnyTokenizer:
    if wanted := config.tokenizer or config.start:
        try:
            found = load_tokenizer(wanted)
            end_of(found)
        except (ValueError, OSError) as error:
            flag = "--tokenizer" if config.tokenizer else "the tokenizer of --from"
            raise TrainingError(f"{flag} {wanted}: {error}") from error
        return found
    pieces = list(_learned_from(texts.pieces()))
    say(f"training a tokenizer on {sum(map(len, pieces)):,} characters")
    if config.vocab_size:
        try:
            return train_tokenizer(pieces, config.vocab_size)
        except ValueError as error:
            raise TrainingError(f"--vocab-size {config.vocab_size}: {error}") from error
    for size in _USUAL_VOCABULARIES[:-1]:
        with suppress(ValueError):  # the text has not so many pairs
            return train_tokenizer(pieces, size)
    return train_tokenizer(pieces, _USUAL_VOCABULARIES[-1])


def _learned_from(pieces: Iterable[str]) -> Iterator[str]:
    length = 0
    for piece in pieces:
        yield piece
        length += len(piece)
        if length > _LEARNED_FROM:
            return


def _pieces(path: Path) -> Iterator[str]:
    """Cuts a text where GPT-2's pattern cuts it anyway: between a line and the next word.

    Where lines do not end so, it is cut between other pieces of the pattern; what is one piece of
    the pattern, longer than any text has, is cut anywhere.
    """
    lines: list[str] = []
    length = 0
    for line in _lines(path):
        ends = bool(lines) and lines[-1][-2:-1].strip() and lines[-1].endswith("\n")
        if length >= _PIECE and ends and line[:1].strip():
            yield "".join(lines)
            lines, length = [], 0
        lines.append(line)
        length += len(line)
        if length >= _LONGEST_PIECE:
            text = "".join(lines)
            if not text.strip("\0"):
                raise TrainingError(
                    f"--data {path}: has {length:,} NULs in a row, so it is no text"
                )
            place = _between_pieces(text)
            yield text[:place]
            lines, length = [text[place:]], length - place
    yield "".join(lines)


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text, of which very long ones come in parts."""
    with readable(path, "--data", newline="") as file:
        while line := file.readline(_LONGEST_PIECE):
            yield line


@contextmanager
def readable(path: Path, flag: str, newline: str) -> Iterator[TextIO]:
    r"""Opens a text, and says in a sentence why it cannot be read.

    Args:
        path: The file.
        flag: The option that names it.
        newline: Where lines end, as in `open`.

    Raises:
        TrainingError: If it cannot be opened, or is no text, then or while it is read.
    """
    try:
        with path.open(encoding="utf-8", newline=newline) as file:
            yield file
    except UnicodeDecodeError as error:
        raise TrainingError(f"{flag} {path}: is no text in UTF-8: {error}") from error
    except OSError as error:
        raise TrainingError(f"{flag} {why_not(path, error)}") from error


def _between_pieces(text: str) -> int:
    """The last place of a text at which GPT-2's pattern cuts it, whatever comes after the text."""
    tail = max(0, len(text) - _PIECE)
    words = deque(_BETWEEN_WORDS.finditer(text, tail), maxlen=1)
    if words:
        return words[0].end()
    # What follows may make the last piece longer, and one of the last two, as in 'l and l. White
    # space that ends a text is one piece, and may be two before a word.
    place, ends = 0, deque[int](maxlen=3)
    for piece in PIECES.finditer(text):
        ends.append(piece.end())
        if len(ends) == 3 and not text[ends[0] - 1].isspace():
            place = ends[0]
    return place or len(text)


def _write(path: Path, texts: Texts, tokenizer: AnyTokenizer, code: str) -> None:
    files = [text for paths in texts.files.values() for text in paths]
    say(f"encoding {sum(text.stat().st_size for text in files):,} bytes of text")
    size = crc = 0
    with replacing(path) as aside:
        with aside.open("wb") as file:
            for ids in texts.encoded(tokenizer):
                numbers = array(code, ids)
                _append(file.fileno(), numbers)
                size, crc = size + len(numbers) * numbers.itemsize, zlib.crc32(numbers, crc)
        with replacing(_sum_beside(path)) as beside:  # first: tokens that are there have a sum
            beside.write_bytes(_sum(size, crc))


def _encoded(texts: Sequence[Path], tokenizer: AnyTokenizer) -> Iterator[list[int]]:
    for text in texts:
        yield begin_of(tokenizer)
        for piece in _pieces(text):
            yield tokens_of(tokenizer, piece)
        yield [end_of(tokenizer)]


def _is_whole(path: Path) -> bool:
    """Whether a file of tokens is as it was written; says so if it is not."""
    if not os.path.lexists(path):
        return False
    try:
        size, crc = require_regular(path), 0
        written = read_regular(_sum_beside(path), _LARGEST)
        if written.startswith(f"{size} ".encode()):  # else there is no need to read all
            with path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    crc = zlib.crc32(chunk, crc)
        if written == _sum(size, crc):
            return True
        reason = f"{path}: is not as it was written"
    except (ValueError, OSError) as error:
        reason = why_not(path, error)
    say(f"{reason}; the tokens are encoded anew")
    return False


def _sum_beside(path: Path) -> Path:
    return path.with_suffix(".sum")


def _sum(size: int, crc: int) -> bytes:
    return f"{size} bytes, their CRC-32 is {crc:08x}\n".encode()


def _append(descriptor: int, numbers: "array[int]") -> None:
    data = memoryview(numbers.tobytes())
    while data:  # a full disk takes a part first
        data = data[os.write(descriptor, data) :]
