"""Chats to fine-tune on: labels on the answers alone, several chats in a row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_layers import PublishedTokenizer, document_mask
from transformer_layers.validation import require_size

Chat = Sequence[Mapping[str, Any]]
_NOT_SCORED = -100  # what the loss leaves out


@dataclass(frozen=True)
class ChatBatch:
    """Rows of chats, side by side, which do not see each other.

    Attributes:
        ids: Tokens, int64 of shape `(batch, seq)`.
        labels: The same where an answer is, and -100 elsewhere.
        mask: Lets each position see its own chat, up to itself; boolean, shape `(batch, seq, seq)`.
        positions: Position ids of shape `(batch, seq)`, which begin anew in each chat.
    """

    ids: Tensor
    labels: Tensor
    mask: Tensor
    positions: Tensor

    @property
    def scored(self) -> int:
        """How many tokens the loss is a mean of."""
        return int((self.labels[:, 1:] != _NOT_SCORED).sum())

    def loss(self, model: nn.Module) -> Float[Tensor, ""]:
        """The mean cross-entropy of the answers' tokens, in nats.

        Args:
            model: A decoder, such as :class:`transformer_layers.Llama`.
        """
        loss: Callable[..., Tensor] = model.loss  # type: ignore[assignment]  # a module's names are any
        return loss(self.ids, self.labels, mask=self.mask, positions=self.positions)


def chat_with_labels(
    tokenizer: PublishedTokenizer, messages: Chat, **variables: Any
) -> tuple[Int[Tensor, " seq"], Int[Tensor, " seq"]]:
    """The tokens of a chat, and labels for what the model is to say in it.

    The answers are the messages whose role is "assistant", from behind what the template begins an
    answer with to where the next message begins: so the token that ends an answer is learned, too.

    Args:
        tokenizer: Has a template.
        messages: The chat.
        **variables: What else the template asks for.

    Returns:
        Tokens and labels, int64 of shape `(seq,)`; a label is its token, or -100 where it is not an
        answer's.

    Raises:
        TypeError: If the messages are no list of dicts, or an answer has neither a text nor tool
            calls.
        ValueError: If there is no answer, or no template, or the template writes the beginning of a
            chat otherwise once it goes on, so that it cannot be told which tokens are an answer's.
    """
    ids = tokenizer.chat(messages, add_generation_prompt=False, **variables)
    labels = torch.full_like(ids, _NOT_SCORED)
    for i, message in enumerate(messages):
        if message.get("role") != "assistant":
            continue
        content = message.get("content")
        if not isinstance(content, str) and not message.get("tool_calls"):
            # A template would write None, or the number, as a text to learn.
            raise TypeError(f"messages[{i}]: an answer's content must be a text, got {content!r}")
        begin = _length_of(tokenizer, ids, messages, i, True, variables)
        end = _length_of(tokenizer, ids, messages, i + 1, False, variables)
        labels[begin:end] = ids[begin:end]
    if (labels == _NOT_SCORED).all():
        roles = ", ".join(str(message.get("role")) for message in messages)
        raise ValueError(f"a chat must have an answer, a message of the assistant; got {roles}")
    return ids, labels


def chat_batches(
    tokenizer: PublishedTokenizer,
    chats: Sequence[Chat],
    seq: int,
    batch: int = 1,
    **variables: Any,
) -> list[ChatBatch]:
    """Chats in rows of some length, as many to a row as there is room for.

    Each row takes the next chats that fit, in their order; what is left of it is padding, which
    nothing sees and no label scores. The last batch can have fewer rows.

    Args:
        tokenizer: Has a template.
        chats: The chats.
        seq: Number of tokens of a row.
        batch: Number of rows of a batch.
        **variables: What else the template asks for.

    Returns:
        The batches.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If a size is below 1, there is no chat, or one is longer than a row or has no
            answer.
    """
    require_size("seq", seq)
    require_size("batch", batch)
    if not chats:
        raise ValueError("chats must hold one chat at least, got none")
    found = []
    for number, messages in enumerate(chats):
        ids, labels = chat_with_labels(tokenizer, messages, **variables)
        labels[0] = _NOT_SCORED  # nothing of the same chat comes before it
        if len(ids) > seq:
            raise ValueError(f"chats[{number}] has {len(ids)} tokens, and a row {seq}")
        found.append((ids, labels))
    rows = [[found[i] for i in row] for row in packed([len(ids) for ids, _ in found], seq)]
    return [rows_side_by_side(rows[i : i + batch], seq) for i in range(0, len(rows), batch)]


def packed(lengths: Sequence[int], seq: int) -> list[list[int]]:
    """Which texts share a row: each row takes the next ones that fit.

    Args:
        lengths: Of the texts, each `seq` at most.
        seq: Number of tokens of a row.

    Returns:
        The numbers of the texts of each row.

    Examples:
        >>> packed([3, 4, 2, 8], seq=8)
        [[0, 1], [2], [3]]
    """
    rows: list[list[int]] = []
    left = 0
    for number, length in enumerate(lengths):
        if length > left:
            rows.append([])
            left = seq
        rows[-1].append(number)
        left -= length
    return rows


def _length_of(
    tokenizer: PublishedTokenizer,
    ids: Tensor,
    messages: Chat,
    count: int,
    begins_an_answer: bool,
    variables: Mapping[str, Any],
) -> int:
    """How many tokens the first messages of a chat have, with which the whole one begins, too."""
    if not count:
        raise ValueError("a chat must not begin with the assistant, to whom nothing was said")
    first = messages[:count]
    beginning = tokenizer.chat(first, add_generation_prompt=begins_an_answer, **variables)
    if beginning.equal(ids[: len(beginning)]):
        return len(beginning)
    text = tokenizer.chat_text(first, add_generation_prompt=begins_an_answer, **variables)
    if tokenizer.chat_text(messages, add_generation_prompt=False, **variables).startswith(text):
        raise ValueError(
            f"the chat template ends the first {count} messages with {text[-12:]!r}, and a token "
            "joins the end of that with what follows, so that no label can tell where the answer "
            "begins; let the template end with a token of its own, or with no space"
        )
    differing = (beginning[: len(ids)] != ids[: len(beginning)]).nonzero()
    place = int(differing[0]) if len(differing) else len(ids)
    raise ValueError(
        f"the chat template writes the first {count} messages otherwise once the chat goes on, "
        f"from token {place} on, so that no label can tell what is an answer; train on chats that "
        "end there"
    )


def rows_side_by_side(rows: Sequence[Sequence[tuple[Tensor, Tensor]]], seq: int) -> ChatBatch:
    """A batch of rows, each of some texts that do not see each other.

    Args:
        rows: Tokens and labels of the texts of each row.
        seq: Number of tokens of a row.
    """
    ids = torch.zeros(len(rows), seq, dtype=torch.int64)
    labels = torch.full_like(ids, _NOT_SCORED)
    positions = torch.zeros_like(ids)
    documents = torch.zeros_like(ids)  # 0 is padding
    for row, chats in enumerate(rows):
        end = 0
        for number, (tokens, answers) in enumerate(chats, start=1):
            begin, end = end, end + len(tokens)
            ids[row, begin:end], labels[row, begin:end] = tokens, answers
            positions[row, begin:end] = torch.arange(len(tokens))
            documents[row, begin:end] = number
    mask = document_mask(documents) & (documents > 0)[:, :, None]
    return ChatBatch(ids, labels, mask, positions)
