"""The chats of a run: encoded once, several to a row, with labels on the answers alone."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from transformer_layers import PublishedTokenizer
from transformer_training.chats import Chat, chat_with_labels, packed, rows_side_by_side
from transformer_training.config import TrainingConfig, TrainingError
from transformer_training.log import say
from transformer_training.plans.plan import LabeledBatch, Trainable
from transformer_training.tokens import Texts, encoded_once, readable
from transformer_training.vocabulary import AnyTokenizer, end_of

_FLAG = "--chats"
_NOT_SCORED = -100
_DIGIT = 1 << 15  # a length is written in two numbers, since a token may have sixteen bits


@dataclass(frozen=True)
class ChatRows:
    """The chats of a run, and the rows that they fill.

    Attributes:
        ids: All tokens, mapped from a file: the length of a chat in two numbers, its tokens, and
            for each of these whether it is scored, 0 or 1; and so on.
        spans: Where the tokens of each chat begin, and where they end.
        learned: The chats of each row to learn from.
        held_out: The same for rows that are held out.
        left_out: How many chats are longer than a row, and in none.
        tokenizer: What made the tokens.
        fingerprint: SHA-256 of the chats and the tokenizer.
        seq: Tokens of a row.
    """

    ids: Int[Tensor, " count"]
    spans: Sequence[tuple[int, int]]
    learned: Sequence[Sequence[int]]
    held_out: Sequence[Sequence[int]]
    left_out: int
    tokenizer: PublishedTokenizer
    fingerprint: str
    seq: int

    def rows(self, held_out: bool = False) -> int:
        """How many rows there are to learn from, or that are held out."""
        return len(self._of(held_out))

    def batches(
        self,
        parts: Sequence[Int[Tensor, " _"]],
        among: Int[Tensor, " rows"],
        ranks: int = 1,
        held_out: bool = False,
    ) -> Iterator[LabeledBatch]:
        """The rows of some numbers.

        The share of a batch makes a mean over batches that of all scored tokens.

        Args:
            parts: Numbers of the rows of each batch.
            among: Numbers of all that count in a mean, of these batches and of other ranks'.
            ranks: How many ranks have as many batches.
            held_out: Whether they are of those that are held out.

        Yields:
            Each batch.
        """
        rows = self._of(held_out)
        mean = sum(self._scored(rows[i]) for i in among.tolist()) / (len(parts) * ranks)
        for part in parts:
            chosen = [rows[i] for i in part.tolist()]
            batch = rows_side_by_side(
                [[self._chat(number) for number in row] for row in chosen], self.seq
            )
            share = torch.tensor(sum(map(self._scored, chosen)) / mean)
            yield LabeledBatch(batch.ids, batch.labels, batch.mask, batch.positions, share)

    @property
    def per_row(self) -> int:
        """Tokens of a row that are learned, in the mean."""
        return round(sum(map(self._scored, self.learned)) / len(self.learned))

    def said(self, times: float) -> str:
        """What there is to learn, and how often it is."""
        left_out = f", {self.left_out:,} more being longer than --seq {self.seq}" * bool(
            self.left_out
        )
        chats = sum(map(len, self.learned))
        return (
            f"{chats:,} chats to learn in {len(self.learned):,} rows{left_out}, {times:.1f} times"
        )

    def sample(self, model: Trainable, prompt: str, new: int, seed: int) -> str:
        """What a model answers.

        Args:
            model: The model.
            prompt: What is said to it; the beginning of the first chat that is held out, or of all,
                if it is blank.
            new: Tokens to write, at most.
            seed: Of the draws.
        """
        if prompt.strip():
            ids = self.tokenizer.chat([{"role": "user", "content": prompt}])
        else:
            tokens, labels = self._chat((self.held_out or self.learned)[0][0])
            ids = tokens[: int((labels != _NOT_SCORED).nonzero()[0])]
        ids = ids[-max(self.seq - 1, 1) :]
        draws = torch.Generator().manual_seed(seed)
        options: dict[str, Any] = {"temperature": 0.8, "top_k": 50, "generator": draws}
        written = model.generate(ids[None], min(new, self.seq - len(ids)), **options)[0, len(ids) :]
        ends = (written == end_of(self.tokenizer)).nonzero()
        return self.tokenizer.decode(written[: int(ends[0])] if len(ends) else written)

    def _of(self, held_out: bool) -> Sequence[Sequence[int]]:
        return self.held_out if held_out else self.learned

    def _chat(self, number: int) -> tuple[Tensor, Tensor]:
        """The tokens of a chat and their labels."""
        begin, end = self.spans[number]
        tokens, scored = self.ids[begin : 2 * end - begin].long().chunk(2)
        return tokens, tokens.where(scored == 1, torch.tensor(_NOT_SCORED))

    def _scored(self, row: Sequence[int]) -> int:
        spans = [self.spans[number] for number in row]
        return sum(int(self.ids[end : 2 * end - begin].long().sum()) for begin, end in spans)


def prepare_chats(config: TrainingConfig, folder: Path) -> ChatRows:
    """Gives the chats of a run, and makes their file where it is not made yet.

    A line of a file is a JSON object with "messages", as chat services write them, or with
    "prompt" and "completion".

    Args:
        config: The run's; it names the chats, the tokenizer and the share that is held out.
        folder: Where the tokenizer and the file of tokens are, or will be.

    Returns:
        The chats.

    Raises:
        TrainingError: If a file cannot be read, is empty, or is not the one that the tokens were
            made of; if a line is no chat, or the template cannot write it; or if no chat is left.
    """
    paths = [Path(name) for name in config.chats]
    texts = Texts({_FLAG: paths}, lambda: (), lambda tokenizer: _encoded(paths, tokenizer))
    ids, tokenizer, fingerprint = encoded_once(config, texts, folder)
    tokenizer = _with_template(tokenizer)
    spans = list(_spans(ids))
    kept = [i for i, (begin, end) in enumerate(spans) if end - begin <= config.seq]
    held_out = round(config.validation * len(kept))
    if len(kept) == held_out or (config.validation and not held_out):
        raise TrainingError(
            f"there are too few chats: of {len(spans):,}, {len(kept):,} have no more than --seq "
            f"{config.seq} tokens, and these make {len(kept) - held_out:,} to learn and "
            f"{held_out:,} to validate"
        )
    learned, validated = (
        [[part[i] for i in row] for row in packed([_length(spans[i]) for i in part], config.seq)]
        for part in (kept[: len(kept) - held_out], kept[len(kept) - held_out :])
    )
    left_out = len(spans) - len(kept)
    return ChatRows(ids, spans, learned, validated, left_out, tokenizer, fingerprint, config.seq)


def _length(span: tuple[int, int]) -> int:
    return span[1] - span[0]


def _spans(ids: Int[Tensor, " count"]) -> Iterator[tuple[int, int]]:
    place = 0
    while place < len(ids):
        high, low = ids[place : place + 2].long().tolist()
        begin, length = place + 2, high * _DIGIT + low
        yield begin, begin + length
        place = begin + 2 * length


def _with_template(tokenizer: AnyTokenizer) -> PublishedTokenizer:
    if isinstance(tokenizer, PublishedTokenizer) and tokenizer.chat_template is not None:
        return tokenizer
    raise TrainingError(
        f"{_FLAG}: the tokenizer has no chat template; --from or --tokenizer must name the folder "
        "of a model that chats"
    )


def _encoded(paths: Iterable[Path], tokenizer: AnyTokenizer) -> Iterator[list[int]]:
    tokenizer = _with_template(tokenizer)
    for place, chat in _chats(paths):
        try:
            tokens, labels = chat_with_labels(tokenizer, chat)
        except (TypeError, ValueError) as error:
            raise TrainingError(f"{_FLAG} {place}: {error}") from error
        scored = labels != _NOT_SCORED
        scored[0] = False  # nothing of the same chat comes before it
        yield [*divmod(len(tokens), _DIGIT), *tokens.tolist(), *scored.int().tolist()]


def _chats(paths: Iterable[Path]) -> Iterator[tuple[str, Chat]]:
    """Each chat, and where it stands."""
    count = 0
    for path in paths:
        with readable(path, _FLAG, newline="\n") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    place = f"{path}, line {number}"
                    yield place, _chat_of(line, place)
                    count += 1
    if not count:
        raise TrainingError(f"{_FLAG}: there is no chat in {', '.join(map(str, paths))}")
    say(f"encoded {count:,} chats")


def _chat_of(line: str, place: str) -> Chat:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TrainingError(f"{_FLAG} {place}: is no JSON: {error}") from error
    if isinstance(found, dict):
        messages = found.get("messages")
        if isinstance(messages, list) and all(isinstance(each, dict) for each in messages):
            return messages
        sides = found.get("prompt"), found.get("completion")
        if all(isinstance(side, str) for side in sides):
            roles = ("user", "assistant")
            return [
                {"role": role, "content": side} for role, side in zip(roles, sides, strict=True)
            ]
    raise TrainingError(
        f'{_FLAG} {place}: must be an object with "messages", a list of objects, or with "prompt" '
        f'and "completion", two texts; got {line.strip()[:80]}'
    )
