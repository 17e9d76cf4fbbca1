"""Llama, whole."""

import os
from collections.abc import Sequence
from contextlib import nullcontext

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_layers.attention.cache import KeyValueCache, all_grown_or_none, next_positions
from transformer_layers.generation import loop
from transformer_layers.generation.decoder import embedded, require_ids
from transformer_layers.generation.loss import next_token_loss
from transformer_layers.models.llama.block import block_of, norm_of
from transformer_layers.models.llama.config import LlamaConfig
from transformer_layers.positions.rotary import Positions, RotaryPositions

Caches = Sequence[KeyValueCache] | None


class LlamaStack(nn.Module):
    """The part of a :class:`Llama` below its head, under the names of the published weights.

    Args:
        config: The sizes and options.

    Attributes:
        embed_tokens: Token embedding, weight of shape `(vocab_size, hidden_size)`.
        layers: The blocks.
        norm: Of the last block's output.
    """

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        block = block_of(config)
        self.layers = nn.ModuleList(block(config, i) for i in range(config.num_hidden_layers))
        self.norm = norm_of(config)(config.hidden_size)

    def forward(
        self, ids: Int[Tensor, "*batch seq"], rotation: Positions, caches: Caches = None
    ) -> Float[Tensor, "*batch seq d_model"]:
        """What the blocks and the last norm make of each position.

        Args:
            ids: Tokens, of shape `(..., seq)`.
            rotation: Of their positions.
            caches: Keys and values of the positions before, a cache for each block.

        Returns:
            Shape `(..., seq, hidden_size)`.
        """
        x = embedded(ids, self.embed_tokens)
        for i, block in enumerate(self.layers):
            x = block(x, caches[i] if caches else None, rotation)
        return self.norm(x)


class Llama(nn.Module):
    r"""Llama and its relatives: a stack of blocks that predicts each next token.

    It is GPT-2 with four changes: rotary positions, RMSNorm, gated feed-forward layers, and fewer
    heads of keys than of queries. https://arxiv.org/abs/2302.13971, section 2.2, has the first
    three, https://arxiv.org/abs/2307.09288, section 2.2, the fourth. By its config it is Llama 2 or
    3, Mistral, Qwen 2 or 3, or OLMo 2 (see :class:`LlamaConfig`).

    .. math::
        x_0 &= E[\mathrm{ids}]
        \\
        x_i &= \mathrm{Block}_i(x_{i-1}), \qquad i = 1, \dots, N
        \\
        \mathrm{logits} &= \mathrm{RMSNorm}(x_N)\, W^\top

    The state dict has the keys of the published weights; where the head is the token embedding,
    there is no `lm_head.weight`. Every matrix starts as normal(0, 0.02), every bias as zeros, every
    gain as ones.

    Args:
        config: The sizes and options.
        device: Of the parameters; torch's default device if not given.
        dtype: Of the parameters; torch's default dtype if not given.

    Attributes:
        config: The sizes and options.
        model: The embedding, the blocks and the last norm.
        lm_head: `nn.Linear`, weight of shape `(vocab_size, hidden_size)`; None where the head is
            the embedding.
        rotary: The rotary positions of all blocks.

    Examples:
        >>> config = LlamaConfig(50, 12, 20, 2, 3, 1, max_position_embeddings=16)
        >>> model = Llama(config).eval()
        >>> ids = torch.tensor([[3, 14, 15, 9, 26]])
        >>> model(ids).shape
        torch.Size([1, 5, 50])
        >>> print(Llama(LlamaConfig(), device="meta").extra_repr())
        6,738,415,616 parameters, vocab_size=32000, hidden_size=4096, num_hidden_layers=32,
        num_attention_heads=32, num_key_value_heads=32
    """

    def __init__(
        self,
        config: LlamaConfig,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.lm_head: nn.Linear | None = None
        with nullcontext() if device is None else torch.device(device):
            self.model = LlamaStack(config)
            if not config.tie_word_embeddings:
                self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.rotary = RotaryPositions(config.d_k, config.rope_theta, scaling=config.rope_scaling)
        self.to(dtype=dtype)
        self._initialize()

    @property
    def vocab_size(self) -> int:
        """Number of tokens in the vocabulary."""
        return self.config.vocab_size

    @property
    def max_seq(self) -> int:
        """Longest sequence, in tokens."""
        return self.config.max_position_embeddings

    def reset_parameters(self) -> None:
        """Draws all weights anew, as at construction; for a model that was made on the meta device.

        Examples:
            >>> config = LlamaConfig(50, 12, 20, 2, 3, 1)
            >>> model = Llama(config, device="meta").to_empty(device="cpu")
            >>> model.reset_parameters()
        """
        self._initialize()

    @torch.no_grad()
    def _initialize(self) -> None:
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                parameter.normal_(std=0.02)
            else:
                parameter.fill_(0.0 if name.endswith("bias") else 1.0)

    def forward(
        self, ids: Int[Tensor, "*batch seq"], caches: Caches = None
    ) -> Float[Tensor, "*batch seq vocab_size"]:
        """Scores every token of the vocabulary as the one that follows, at each position.

        Args:
            ids: Tokens, int64 or int32 of shape `(..., seq)`; with caches `(batch, seq)`.
            caches: Keys and values of the positions before `ids`, a cache for each block, as
                :meth:`new_caches` makes them. Those of `ids` are added.

        Returns:
            The logits, shape `(..., seq, vocab_size)`. Those at position s score the token at
            s + 1, and depend on the tokens up to s.

        Raises:
            TypeError: If `ids` are not int64 or int32.
            ValueError: If there are more positions than `max_position_embeddings`, an id is not in
                the vocabulary (on a GPU that is torch's own error), or the caches do not fit.
        """
        return self.logits(self.last_hidden_state(ids, caches))

    def last_hidden_state(
        self, ids: Int[Tensor, "*batch seq"], caches: Caches = None
    ) -> Float[Tensor, "*batch seq hidden_size"]:
        """What the blocks and the last norm make of each position.

        Args:
            ids: See :meth:`forward`, as for the errors.
            caches: See :meth:`forward`.

        Returns:
            Shape `(..., seq, hidden_size)`.
        """
        require_ids(self, ids, caches, len(self.model.layers))
        places = next_positions(ids.shape[-1], caches[0] if caches else None, ids.device)
        if places.ndim == 2:  # of each sequence its own, the same for all of its heads
            places = places[:, None]
        rotation = self.rotary.at(places, self.model.embed_tokens.weight.dtype)
        return all_grown_or_none(caches, lambda: self.model(ids, rotation, caches))

    def logits(
        self, hidden_state: Float[Tensor, "*batch seq hidden_size"]
    ) -> Float[Tensor, "*batch seq vocab_size"]:
        """Scores every token by its row of the head.

        Args:
            hidden_state: What :meth:`last_hidden_state` returns, shape `(..., seq, hidden_size)`.

        Returns:
            The logits, shape `(..., seq, vocab_size)`.
        """
        if self.lm_head is not None:
            return self.lm_head(hidden_state)
        return nn.functional.linear(hidden_state, self.model.embed_tokens.weight)

    loss = next_token_loss
    generate = loop.generate
    stream = loop.stream

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
        sizes = (batch, self.config.kv_heads, max_seq, self.config.d_k)
        weight = self.model.embed_tokens.weight
        return [KeyValueCache.like(weight, *sizes, padding) for _ in self.model.layers]

    def extra_repr(self) -> str:
        """The number of parameters and the sizes, for `print`."""
        count = sum(parameter.numel() for parameter in self.parameters())
        names = ["vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"]
        names.append("num_key_value_heads")
        sizes = ", ".join(f"{name}={getattr(self.config, name)}" for name in names)
        return f"{count:,} parameters, {sizes}"

    @classmethod
    def from_pretrained(
        cls, name_or_folder: str | os.PathLike[str], *, revision: str | None = None
    ) -> "Llama":
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
        from transformer_layers.models.llama.checkpoint import CODEC

        return load(cls, CODEC, name_or_folder, revision=revision)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Writes what :meth:`from_pretrained` and the class of `transformers` load.

        Whoever else saves there, and wherever the process is killed: :meth:`from_pretrained` finds
        the model from before, or this one.

        Args:
            folder: Where `config.json` and `model.safetensors` are written; made if needed.

        Raises:
            OSError: If a file cannot be written.
            ValueError: If the weights are not of one floating dtype, or on the meta device, or
                `folder` is the empty text.

        Examples:
            >>> import tempfile
            >>> config = LlamaConfig(50, 12, 20, 2, 3, 1)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     Llama(config).save_pretrained(folder)
            ...     Llama.from_pretrained(folder).config == config
            True
        """
        from transformer_layers.checkpoints.checkpoint import write_checkpoint
        from transformer_layers.models.llama.checkpoint import CODEC

        write_checkpoint(CODEC, folder, self.config, self.state_dict())
