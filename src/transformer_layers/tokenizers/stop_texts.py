"""Texts that end what a model writes, however its tokens cut them."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import torch

from transformer_layers.validation import require_text


@runtime_checkable
class _Decodes(Protocol):
    """A tokenizer, as far as it is needed here."""

    def decode(self, ids: Any, /) -> Any:
        """The text of tokens, a tensor of shape `(seq,)`."""


def stop_texts(tokenizer: _Decodes, texts: Sequence[str]) -> Callable[[list[int]], bool]:
    """What `generate` takes as `stop`, so that a sequence ends where one of these texts is written.

    The texts are looked for in what all new tokens together say, so that it makes no difference how
    tokens cut it. A sequence's last token is the one with which a text is whole; it may have
    something behind the text. A text that begins in the prompt is not found.

    Args:
        tokenizer: Whose `decode` makes a text of tokens, as that of :class:`Tokenizer`.
        texts: The texts, one or more.

    Returns:
        A function that is told the new tokens, and says whether one of the texts is among what they
        say.

    Raises:
        TypeError: If `texts` is one str, or holds what is no str.
        ValueError: If there is no text, or an empty one, or half of a surrogate pair in one.

    Examples:
        >>> from transformer_layers import train_tokenizer
        >>> tokenizer = train_tokenizer(["low lower lowest"], vocab_size=260)
        >>> ends = stop_texts(tokenizer, ["wl"])
        >>> ids = tokenizer.encode("lowlow").tolist()  # two tokens
        >>> [ends(ids[:1]), ends(ids)]
        [False, True]
    """
    if isinstance(texts, str):
        raise TypeError(f"texts must be several texts, got one str, {texts!r}; put it into a list")
    texts = list(texts)
    for i, text in enumerate(texts):
        require_text(f"texts[{i}]", text)
    if not all(texts) or not texts:
        raise ValueError(
            f"texts must be a text or several, each of one character or more, got {texts}"
        )

    def ends(ids: list[int]) -> bool:
        written = tokenizer.decode(torch.tensor(ids, dtype=torch.int64))
        return any(text in written for text in texts)

    return ends
