"""What language models have in common: logits, loss, caches, text, and files."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer_layers.attention.cache import KeyValueCache, all_grown_or_none
from transformer_layers.attention.context import (
    Context,
    context_of_pass,
    require_mask,
    require_position_ids,
)
from transformer_layers.checkpoints.codec import Codec
from transformer_layers.generation import loop
from transformer_layers.generation.decoder import embedded, require_embeddings, require_ids
from transformer_layers.generation.ending import require_stops
from transformer_layers.generation.loss import next_token_loss
from transformer_layers.models.inspection import Inspection, stream_of

_Model = TypeVar("_Model", bound="LanguageModel")
Caches = Sequence[KeyValueCache] | None


class LanguageModel(nn.Module, ABC):
    """A model that predicts each next token; a class of its own tells how.

    Args:
        config: The sizes and options.

    Attributes:
        config: As given.
        codec: How such a model is stored.
        shown_sizes: What `print` shows of the config.
    """

    codec: ClassVar[Codec[Any]]
    shown_sizes: ClassVar[tuple[str, ...]] = (
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
    )

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config

    @property
    def vocab_size(self) -> int:
        """Number of tokens in the vocabulary."""
        return self.config.vocab_size

    @property
    @abstractmethod
    def max_seq(self) -> int:
        """Longest sequence, in tokens."""

    @property
    @abstractmethod
    def _embedding(self) -> nn.Embedding:
        """The table of token embeddings."""

    @property
    @abstractmethod
    def _blocks(self) -> nn.ModuleList:
        """The blocks, in their order."""

    @abstractmethod
    def _hidden_state(self, ids: Tensor, context: Context, caches: Caches) -> Tensor:
        """What blocks and last norm make of tokens, or of embeddings in their place."""

    @abstractmethod
    def _scores(self, hidden_state: Tensor) -> Tensor:
        """What the head makes of it."""

    @abstractmethod
    def _cache_sizes(self) -> tuple[int, int]:
        """The numbers of a block's heads of keys, and of a head's features."""

    def forward(
        self,
        ids: Int[Tensor, "*batch seq"] | None,
        caches: Caches = None,
        *,
        mask: Bool[Tensor, "batch *q_seq length"] | None = None,
        positions: Int[Tensor, "*rows seq"] | None = None,
        inputs_embeds: Float[Tensor, "*batch seq d_model"] | None = None,
    ) -> Float[Tensor, "*batch seq vocab_size"]:
        """Scores every token of the vocabulary as the one that follows, at each position.

        Args:
            ids: Tokens, int64 or int32 of shape `(..., seq)`; with caches or a mask `(batch, seq)`.
                None where `inputs_embeds` are given.
            caches: Keys and values of the positions before `ids`, a cache for each block, as
                :meth:`new_caches` makes them. Those of `ids` are added.
            mask: What a position may attend to, beside that it sees none that follow: boolean, True
                where it may. Of shape `(batch, length)`, such as False for padding, or
                `(batch, seq, length)`, such as :func:`document_mask`; `length` counts the positions
                in the caches, too. All if not given. What a position without any key computes is
                finite and means nothing.
            positions: Position ids, int64 or int32 of shape `(batch, seq)`, or of `(seq,)` or
                `(1, seq)` for all sequences; those that follow what the caches hold if not given,
                whatever the mask hides.
            inputs_embeds: In the place of the embeddings of tokens, shape `(..., seq, d_model)`.

        Returns:
            The logits, shape `(..., seq, vocab_size)`. Those at position s score the token at
            s + 1, and depend on the tokens up to s.

        Raises:
            TypeError: If `ids` or `positions` are not int64 or int32, `mask` is not boolean, or
                `inputs_embeds` are of another dtype than the embeddings.
            ValueError: If there are more positions than the model has, an id is not in the
                vocabulary (on a GPU that is torch's own error), a shape does not fit, the caches do
                not, or there are both ids and embeddings or neither.

        Examples:
            >>> import torch
            >>> from transformer_layers import Llama, LlamaConfig
            >>> model = Llama(LlamaConfig(50, 12, 20, 2, 3, 1)).double()
            >>> ids, padded = torch.tensor([[3, 14, 15]]), torch.tensor([[9, 3, 14, 15]])
            >>> mask, positions = torch.tensor([[0, 1, 1, 1]]).bool(), torch.tensor([0, 0, 1, 2])
            >>> logits = model(padded, mask=mask, positions=positions)
            >>> torch.allclose(logits[:, 1:], model(ids), atol=1e-9)
            True
        """
        hidden_state = self.last_hidden_state(
            ids, caches, mask=mask, positions=positions, inputs_embeds=inputs_embeds
        )
        return self.logits(hidden_state)

    def last_hidden_state(
        self,
        ids: Int[Tensor, "*batch seq"] | None,
        caches: Caches = None,
        *,
        mask: Bool[Tensor, "batch *q_seq length"] | None = None,
        positions: Int[Tensor, "*rows seq"] | None = None,
        inputs_embeds: Float[Tensor, "*batch seq d_model"] | None = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        """What the blocks and the last norm make of each position.

        Args:
            ids: See :meth:`forward`, as for the errors.
            caches: See there.
            mask: See there.
            positions: See there.
            inputs_embeds: See there.

        Returns:
            Shape `(..., seq, d_model)`.
        """
        given, context = self._begun(ids, caches, mask, positions, inputs_embeds)
        return all_grown_or_none(caches, lambda: self._hidden_state(given, context, caches))

    @torch.no_grad()
    def inspect(
        self,
        ids: Int[Tensor, "*batch seq"] | None,
        caches: Caches = None,
        *,
        mask: Bool[Tensor, "batch *q_seq length"] | None = None,
        positions: Int[Tensor, "*rows seq"] | None = None,
        inputs_embeds: Float[Tensor, "*batch seq d_model"] | None = None,
    ) -> Inspection:
        """Computes the logits, and keeps what led to them, without gradients.

        Args:
            ids: See :meth:`forward`, as for the errors.
            caches: See there.
            mask: See there.
            positions: See there.
            inputs_embeds: See there.

        Returns:
            Logits, residual stream and attention weights.

        Examples:
            >>> import torch
            >>> from transformer_layers import Llama, LlamaConfig
            >>> found = Llama(LlamaConfig(50, 12, 20, 2, 3, 1)).inspect(torch.tensor([[3, 14, 15]]))
            >>> weights = found.attention_weights[0]
            >>> weights.shape, torch.allclose(weights.sum(dim=-1), torch.ones(1, 3, 3))
            (torch.Size([1, 3, 3, 3]), True)
            >>> len(found.hidden_states)
            3
        """
        given, context = self._begun(ids, caches, mask, positions, inputs_embeds)
        context = context._replace(weights=[])
        with stream_of(self._blocks) as stream:
            last = all_grown_or_none(caches, lambda: self._hidden_state(given, context, caches))
        return Inspection(self.logits(last), tuple(stream), tuple(context.weights or ()))

    def _begun(
        self,
        ids: Tensor | None,
        caches: Caches,
        mask: Tensor | None,
        positions: Tensor | None,
        inputs_embeds: Tensor | None,
    ) -> tuple[Tensor, Context]:
        """What a forward pass begins with: tokens, or what is in their place, and the context."""
        if ids is not None and inputs_embeds is not None:
            raise ValueError("pass either ids or inputs_embeds, got both")
        blocks = len(self._blocks)
        if inputs_embeds is None:
            *batch, seq = require_ids(self, ids, caches, blocks)
        else:
            *batch, seq = require_embeddings(self, inputs_embeds, self._embedding, caches, blocks)
        past = caches[0].length if caches else 0
        if mask is not None:
            require_mask(mask, tuple(batch), seq, past + seq)
        if positions is not None:
            positions = _of_all_alike(positions, seq) if batch else positions
            require_position_ids(positions, tuple(batch), seq, self.max_seq)
        device = self._embedding.weight.device
        context = context_of_pass(seq, caches, device, mask, positions)
        return cast(Tensor, ids) if inputs_embeds is None else inputs_embeds, context

    def logits(
        self, hidden_state: Float[Tensor, "*batch seq d_model"]
    ) -> Float[Tensor, "*batch seq vocab_size"]:
        """Scores every token by its row of the head.

        Args:
            hidden_state: What :meth:`last_hidden_state` returns, shape `(..., seq, d_model)`.

        Returns:
            The logits, shape `(..., seq, vocab_size)`.
        """
        return self._scores(hidden_state)

    def new_caches(
        self, batch: int, max_seq: int, padding: Int[Tensor, " batch"] | None = None
    ) -> list[KeyValueCache]:
        """Empty caches of keys and values, one for each block.

        Args:
            batch: Number of sequences.
            max_seq: Number of positions there is to be room for.
            padding: Number of positions at the beginning of each sequence that are padding, shape
                `(batch,)`; none if not given. A sequence's positions are counted from there.

        Returns:
            As many caches as there are blocks, on the device of the model, of its dtype or of the
            one that `torch.autocast` makes of it.

        Raises:
            TypeError: If a size is not an int.
            ValueError: If a size is negative, or `padding` of another shape.
        """
        heads, d_k = self._cache_sizes()
        weight = next(self.parameters())
        return [
            KeyValueCache.like(weight, batch, heads, max_seq, d_k, padding) for _ in self._blocks
        ]

    def _embed(self, ids: Tensor) -> Tensor:
        return embedded(ids, self._embedding)

    loss = next_token_loss
    generate = loop.generate
    stream = loop.stream

    def extra_repr(self) -> str:
        """The number of parameters and the sizes, for `print`."""
        count = sum(parameter.numel() for parameter in self.parameters())
        sizes = ", ".join(f"{name}={getattr(self.config, name)}" for name in self.shown_sizes)
        return f"{count:,} parameters, {sizes}"

    @classmethod
    def from_pretrained(
        cls: type[_Model],
        name_or_folder: str | os.PathLike[str],
        *,
        revision: str | None = None,
    ) -> _Model:
        """Loads a published checkpoint, in the dtype it is stored in, for evaluation.

        Args:
            name_or_folder: A folder with `config.json` and `model.safetensors` (or its parts and
                `model.safetensors.index.json`), or a name on the Hugging Face hub, which needs the
                package `huggingface_hub` and, if its cache has not the files, a network.
            revision: The branch, the tag or the commit on the hub; its main branch if not given. A
                folder has none.

        Returns:
            The model, in evaluation mode.

        Raises:
            FileNotFoundError: If there is no such file.
            OSError: If a file cannot be opened.
            TypeError: If `revision` is no str.
            ValueError: If the files are not those of a model that this class computes, are damaged,
                or do not belong together; the message names what is wrong. Pickle files are
                refused. Or if a folder is to have a revision.
        """
        # Imported here, since safetensors is for those who read files.
        from transformer_layers.checkpoints.checkpoint import load

        return load(cls, cls.codec, name_or_folder, revision=revision)

    def save_pretrained(
        self, folder: str | os.PathLike[str], *, eos_token: int | None = None
    ) -> None:
        """Writes what :meth:`from_pretrained` and the class of `transformers` load.

        Whoever else saves there, and wherever the process is killed: :meth:`from_pretrained` finds
        the model from before, or this one.

        Args:
            folder: Where `config.json` and `model.safetensors` are written; made if needed.
            eos_token: The token that ends a text, for `generate` of `transformers`. If not given,
                `config.json` names none, but for a GPT-2 of the published vocabulary.

        Raises:
            OSError: If a file cannot be written.
            TypeError: If `eos_token` is not an int.
            ValueError: If the weights are not of one floating dtype, or on the meta device, or
                `folder` is the empty text, or `eos_token` is not in the vocabulary.
        """
        from transformer_layers.checkpoints.checkpoint import write_checkpoint

        stops = require_stops(eos_token, self.vocab_size)
        entries = {"eos_token_id": stops[0]} if stops else {}
        write_checkpoint(self.codec, folder, self.config, self.state_dict(), entries)


def _of_all_alike(positions: Tensor, seq: int) -> Tensor:
    """Position ids of shape `(1, seq)` without their first axis; others as they are."""
    alike = positions.ndim == 2 and positions.shape[0] == 1 and positions.shape[1] == seq
    return positions[0] if alike else positions
