"""Pairs of a source and its translation: two texts of which the lines belong together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transformer_layers import padding_mask
from transformer_training.config import TrainingConfig, TrainingError
from transformer_training.log import say
from transformer_training.plans.plan import PairBatch, Trainable
from transformer_training.tokens import Texts, encoded_once, readable
from transformer_training.vocabulary import AnyTokenizer, end_of, tokens_of

_SIDES = ("--source", "--target")
_PIECE = 1 << 20  # characters that a tokenizer is trained on at once, of each side


@dataclass(frozen=True)
class Pairs:
    """The pairs of a run.

    Attributes:
        ids: All tokens, mapped from a file: a source with its end, its target with its end, and so
            on.
        spans: Where each pair begins, where its target does, and where it ends.
        held_out: How many pairs, the last ones, are held out.
        left_out: How many are longer than sequences may be, and in no span.
        tokenizer: What made the tokens.
        fingerprint: SHA-256 of the texts and the tokenizer.
        seq: The most tokens of a source, or of a target, each with its end.
    """

    ids: Int[Tensor, " count"]
    spans: Int[Tensor, "pairs 3"]
    held_out: int
    left_out: int
    tokenizer: AnyTokenizer
    fingerprint: str
    seq: int

    def rows(self, held_out: bool = False) -> int:
        """How many pairs there are to learn from, or that are held out."""
        return len(self._of(held_out))

    def batches(
        self,
        parts: Sequence[Int[Tensor, " _"]],
        among: Int[Tensor, " rows"],
        ranks: int = 1,
        held_out: bool = False,
    ) -> Iterator[PairBatch]:
        """The pairs of some numbers.

        A batch has as many tokens as its targets, which are not as long as those of another. Its
        share makes a mean over batches that of all tokens.

        Args:
            parts: Numbers of the pairs of each batch.
            among: Numbers of all that count in a mean, of these batches and of other ranks'.
            ranks: How many ranks have as many batches.
            held_out: Whether they are of those that are held out.

        Yields:
            Each batch.
        """
        spans = self._of(held_out)
        scored = spans[:, 2] - spans[:, 1]
        mean = scored[among].sum() / (len(parts) * ranks)
        for part in parts:
            yield PairBatch(
                *batch_of(
                    [self.ids[begin:middle] for begin, middle, _ in spans[part].tolist()],
                    [self.ids[middle:end] for _, middle, end in spans[part].tolist()],
                    self.tokenizer.vocab_size,
                ),
                share=scored[part].sum() / mean,
            )

    @property
    def per_row(self) -> int:
        """Tokens of a target that are learned, in the mean."""
        spans = self._of(held_out=False)
        return round((spans[:, 2] - spans[:, 1]).double().mean().item())

    def said(self, times: float) -> str:
        """What there is to learn, and how often it is."""
        left_out = f", {self.left_out:,} more being longer than --seq {self.seq}" * bool(
            self.left_out
        )
        return f"{self.rows():,} pairs to learn{left_out}, {times:.1f} times"

    def sample(self, model: Trainable, prompt: str, new: int, seed: int) -> str:
        """What a model makes of a source; greedily, so that nothing is drawn.

        Args:
            model: The model.
            prompt: The source; the first one that is held out, or of all, if it is blank.
            new: Tokens to write, at most.
            seed: Ignored.
        """
        end = end_of(self.tokenizer)
        if prompt.strip():
            text = tokens_of(self.tokenizer, prompt.strip())
            ids = torch.tensor([*text[: self.seq - 1], end])
        else:
            begin, middle, _ = self._of(held_out=self.held_out > 0)[0].tolist()
            ids = self.ids[begin:middle].long()
        written = model.generate(ids[None], min(new, self.seq))[0]
        return self.tokenizer.decode(written[written < end])

    def _of(self, held_out: bool) -> Tensor:
        learned = len(self.spans) - self.held_out
        return self.spans[learned:] if held_out else self.spans[:learned]


def batch_of(
    sources: Sequence[Int[Tensor, " _"]], targets: Sequence[Int[Tensor, " _"]], padding: int
) -> tuple[Int[Tensor, "batch source"], Int[Tensor, "batch target"], Tensor]:
    """Pads sources and targets to the longest of each, and tells where sources are padded.

    Args:
        sources: The tokens of each.
        targets: Those of as many.
        padding: The token that fills up.

    Returns:
        Sources, targets, and the mask of the sources.

    Examples:
        >>> sources = [torch.tensor([5, 6, 2]), torch.tensor([7, 2])]
        >>> ids, _, mask = batch_of(sources, sources, padding=9)
        >>> ids, mask.int()
        (tensor([[5, 6, 2],
                [7, 2, 9]]), tensor([[[1, 1, 1]],
        <BLANKLINE>
                [[1, 1, 0]]], dtype=torch.int32))
    """
    read, written = (
        pad_sequence([each.long() for each in side], batch_first=True, padding_value=padding)
        for side in (sources, targets)
    )
    lengths = torch.tensor([len(each) for each in sources])
    return read, written, padding_mask(lengths, read.shape[1])


def prepare_pairs(config: TrainingConfig, folder: Path) -> Pairs:
    r"""Gives the pairs of two texts, and makes their file where it is not made yet.

    Line n of a target's file is the translation of line n of its source's. Lines end with `\n`
    alone; white space around them is dropped. A pair of which a line is then empty is left out, and
    so is one that is longer than `--seq`. Both sides share one tokenizer.

    Args:
        config: The run's; it names the texts, the tokenizer and the share that is held out.
        folder: Where the tokenizer and the file of tokens are, or will be.

    Returns:
        The pairs.

    Raises:
        TrainingError: If a text cannot be read, is empty, or is not the one that the file was made
            of; if lines do not belong together; or if no pair is left.
    """
    files = {flag: [Path(name) for name in names] for flag, names in config.texts.items()}
    couples = list(zip(*files.values(), strict=True))
    texts = Texts(
        files,
        lambda: _pieces(couples),
        lambda tokenizer: _encoded(couples, tokenizer),
    )
    ids, tokenizer, fingerprint = encoded_once(config, texts, folder)
    end = end_of(tokenizer)
    if end != tokenizer.vocab_size - 1:
        raise TrainingError(
            f"--tokenizer {config.tokenizer}: its last token, {tokenizer.vocab_size - 1}, must be "
            f"the one that ends a text, and that is {end}"
        )
    # Half of the numbers of uint16 are negative as int16, in which torch compares more.
    comparable = ids.view(torch.int16) if ids.dtype == torch.uint16 else ids
    is_end = comparable == torch.tensor(end).to(comparable.dtype)
    ends = 1 + is_end.nonzero()[:, 0].view(-1, 2)
    begins = torch.cat([torch.zeros(1, dtype=torch.int64), ends[:-1, 1]])
    spans = torch.cat([begins[:, None], ends], dim=1)
    fits = (spans.diff(dim=1) <= config.seq).all(dim=1)
    kept = spans[fits]
    held_out = round(config.validation * len(kept))
    if len(kept) == held_out or (config.validation and not held_out):
        raise TrainingError(
            f"the texts are too short: {len(spans):,} pairs have two lines that are not empty, "
            f"{len(kept):,} of them no side of more than --seq {config.seq} tokens, and these make "
            f"{len(kept) - held_out:,} to learn and {held_out:,} to validate"
            f"{_shortest(spans, tokenizer)}"
        )
    left_out = len(spans) - len(kept)
    return Pairs(ids, kept, held_out, left_out, tokenizer, fingerprint, config.seq)


def _shortest(spans: Int[Tensor, "pairs 3"], tokenizer: AnyTokenizer) -> str:
    """What the shortest pair needs, and of which tokens; nothing where there is no pair."""
    if not len(spans):
        return ""
    seq = int(spans.diff(dim=1).amax(dim=1).min())
    return (
        f"; the shortest pair has {seq:,} tokens on its longer side, of a vocabulary of "
        f"{tokenizer.vocab_size:,}"
    )


def random_pairs(vocab_size: int, n: int, seq: int) -> PairBatch:
    """Pairs of random tokens without padding, to measure what a step costs.

    Args:
        vocab_size: Tokens of the tokenizer.
        n: How many pairs.
        seq: Tokens of each source, and of each target.
    """
    read, written = torch.randint(vocab_size, (2, n, seq))
    mask = padding_mask(torch.full((n,), seq), seq)
    return PairBatch(read, written, mask, torch.tensor(1.0))


def _encoded(couples: Sequence[tuple[Path, Path]], tokenizer: AnyTokenizer) -> Iterator[list[int]]:
    empty = count = 0
    for pair in (pair for couple in couples for pair in _aligned(couple)):
        count += 1
        empty += not all(pair)
        for line in pair if all(pair) else ():
            yield [*tokens_of(tokenizer, line), end_of(tokenizer)]
    if empty:
        say(f"leaving out {empty:,} of {count:,} pairs, of which a line is empty")


def _pieces(couples: Sequence[tuple[Path, Path]]) -> Iterator[str]:
    """Pieces of both sides in turn, so that a tokenizer learns as much of either."""
    for couple in couples:
        lines: list[tuple[str, str]] = []
        length = 0
        for pair in _aligned(couple):
            lines.append(pair)
            length += max(map(len, pair))
            if length >= _PIECE:
                yield from map("\n".join, zip(*lines, strict=True))
                lines, length = [], 0
        if lines:
            yield from map("\n".join, zip(*lines, strict=True))


def _aligned(couple: tuple[Path, Path]) -> Iterator[tuple[str, str]]:
    """The lines of two texts that belong together; refuses texts of which one has more."""
    first, second = map(_lines, couple, _SIDES)
    for i, (source, target) in enumerate(zip_longest(first, second)):
        if source is None or target is None:
            more = i + 1 + sum(1 for _ in (second if source is None else first))
            counts = (i, more) if source is None else (more, i)
            named = " and ".join(
                f"{flag} {path} has {count:,} lines"
                for flag, path, count in zip(_SIDES, couple, counts, strict=True)
            )
            raise TrainingError(
                f"{named}: line n of one must be the translation of line n of the other"
            )
        yield source, target


def _lines(path: Path, flag: str) -> Iterator[str]:
    with readable(path, flag, newline="\n") as file:
        for line in file:
            yield line.strip()
