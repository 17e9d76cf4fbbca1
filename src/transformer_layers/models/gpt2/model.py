"""GPT-2, whole."""

import math
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
from transformer_layers.models.gpt2.block import GPT2Block
from transformer_layers.models.gpt2.config import GPT2Config
from transformer_layers.models.gpt2.conv1d import Conv1D
from transformer_layers.regularization.dropout import Dropout


class GPT2(nn.Module):
    r"""GPT-2: a stack of blocks that predicts each next token.

    It is the `model` of `src/model.py` in https://github.com/openai/gpt-2, described in section
    2.3 of "Language Models are Unsupervised Multitask Learners".

    .. math::
        x_0 &= W_{te}[\mathrm{ids}] + W_{pe}[0, 1, 2, \dots]
        \\
        x_i &= \mathrm{Block}_i(x_{i-1}), \qquad i = 1, \dots, N
        \\
        \mathrm{logits} &= \mathrm{LayerNorm}_f(x_N)\, W_{te}^\top

    The head is the token embedding itself, so there is no weight for it. The state dict has the
    keys of the published weights. Every weight matrix starts as normal(0, 0.02), those that write
    into the residual stream (`c_proj`) as normal(0, :math:`0.02 / \sqrt{2N}`) as the paper says;
    every bias starts as zeros, every gain as ones. In training dropout acts on the sum of the
    embeddings and in three places of each block.

    Args:
        config: The sizes.
        device: Of the parameters; torch's default device if not given.
        dtype: Of the parameters; torch's default dtype if not given.

    Attributes:
        config: The sizes.
        wte: Token embedding, :math:`W_{te}`, weight of shape `(vocab_size, n_embd)`.
        wpe: Position embedding, :math:`W_{pe}`, weight of shape `(n_positions, n_embd)`.
        h: The blocks, a list of :class:`GPT2Block`.
        ln_f: `torch.nn.LayerNorm` of the last block's output.

    Examples:
        >>> config = GPT2Config(vocab_size=50, n_positions=16, n_embd=12, n_layer=2, n_head=3)
        >>> model = GPT2(config).eval()
        >>> ids = torch.tensor([[3, 14, 15, 9, 26]])
        >>> model(ids).shape
        torch.Size([1, 5, 50])
        >>> print(GPT2(GPT2Config(), device="meta").extra_repr())
        124,439,808 parameters, vocab_size=50257, n_positions=1024, n_embd=768, n_layer=12,
        n_head=12
    """

    def __init__(
        self,
        config: GPT2Config,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        with nullcontext() if device is None else torch.device(device):
            self.wte = nn.Embedding(config.vocab_size, config.n_embd)
            self.wpe = nn.Embedding(config.n_positions, config.n_embd)
            self.drop = Dropout(config.dropout)
            eps = config.layer_norm_epsilon
            self.h = nn.ModuleList(
                GPT2Block(config.n_embd, config.n_head, config.dropout, eps)
                for _ in range(config.n_layer)
            )
            self.ln_f = nn.LayerNorm(config.n_embd, eps)
        self.to(dtype=dtype)
        self._initialize()

    @property
    def vocab_size(self) -> int:
        """Number of tokens in the vocabulary."""
        return self.config.vocab_size

    @property
    def max_seq(self) -> int:
        """Longest sequence, in tokens."""
        return self.config.n_positions

    def reset_parameters(self) -> None:
        """Draws all weights anew, as at construction; for a model that was made on the meta device.

        Examples:
            >>> config = GPT2Config(vocab_size=50, n_positions=16, n_embd=12, n_layer=2, n_head=3)
            >>> model = GPT2(config, device="meta").to_empty(device="cpu")
            >>> model.reset_parameters()
        """
        for layer in self.modules():
            if isinstance(layer, Conv1D | nn.LayerNorm):
                layer.reset_parameters()
        self._initialize()

    @torch.no_grad()
    def _initialize(self) -> None:
        # 2N sums add up in the residual stream: each term gets 1 / (2N) of the
        # variance. Conv1D has drawn the other matrices already.
        self.wte.weight.normal_(std=0.02)
        self.wpe.weight.normal_(std=0.02)
        for name, parameter in self.h.named_parameters():
            if name.endswith("c_proj.weight"):
                parameter.normal_(std=0.02 / math.sqrt(2 * self.config.n_layer))

    def forward(
        self,
        ids: Int[Tensor, "*batch seq"],
        caches: Sequence[KeyValueCache] | None = None,
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
            ValueError: If there are more positions than `n_positions`, an id is not in the
                vocabulary (on a GPU that is torch's own error), or the caches do not fit.
        """
        return self.logits(self.last_hidden_state(ids, caches))

    def last_hidden_state(
        self,
        ids: Int[Tensor, "*batch seq"],
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Float[Tensor, "*batch seq n_embd"]:
        """What the blocks and the last norm make of each position.

        Args:
            ids: See :meth:`forward`.
            caches: See :meth:`forward`.

        Returns:
            Shape `(..., seq, n_embd)`.

        Raises:
            TypeError: As :meth:`forward`.
            ValueError: As :meth:`forward`.
        """
        require_ids(self, ids, caches, len(self.h))
        positions = next_positions(ids.shape[-1], caches[0] if caches else None, ids.device)
        return all_grown_or_none(caches, lambda: self._last_hidden_state(ids, positions, caches))

    def _last_hidden_state(
        self, ids: Tensor, positions: Tensor, caches: Sequence[KeyValueCache] | None
    ) -> Tensor:
        x = self.drop(self._embed(ids) + self.wpe(positions))
        for i, block in enumerate(self.h):
            x = block(x, caches[i] if caches else None)
        return self.ln_f(x)

    def logits(
        self, hidden_state: Float[Tensor, "*batch seq n_embd"]
    ) -> Float[Tensor, "*batch seq vocab_size"]:
        """Scores every token by its embedding's inner product with each position.

        Args:
            hidden_state: What :meth:`last_hidden_state` returns, shape `(..., seq, n_embd)`.

        Returns:
            The logits, shape `(..., seq, vocab_size)`.
        """
        return nn.functional.linear(hidden_state, self.wte.weight)

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
        d_k = self.config.n_embd // self.config.n_head
        sizes = (batch, self.config.n_head, max_seq, d_k)
        return [KeyValueCache.like(self.wte.weight, *sizes, padding) for _ in self.h]

    def extra_repr(self) -> str:
        """The number of parameters and the sizes, for `print`."""
        count = sum(parameter.numel() for parameter in self.parameters())
        names = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
        sizes = ", ".join(f"{name}={getattr(self.config, name)}" for name in names)
        return f"{count:,} parameters, {sizes}"

    @classmethod
    def from_pretrained(
        cls, name_or_folder: str | os.PathLike[str], *, revision: str | None = None
    ) -> "GPT2":
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
            ValueError: If the files are not those of a GPT-2 that this class computes, are damaged,
                or do not belong together; the message names what is wrong. Pickle files are
                refused. Or if a folder is to have a revision.
        """
        # Imported here, since safetensors is for those who read files.
        from transformer_layers.checkpoints.checkpoint import load
        from transformer_layers.models.gpt2.checkpoint import CODEC

        return load(cls, CODEC, name_or_folder, revision=revision)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Writes what :meth:`from_pretrained` and `transformers.GPT2LMHeadModel` load.

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
            >>> config = GPT2Config(vocab_size=50, n_positions=16, n_embd=12, n_layer=2, n_head=3)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     GPT2(config).save_pretrained(folder)
            ...     GPT2.from_pretrained(folder).config == config
            True
        """
        from transformer_layers.checkpoints.checkpoint import write_checkpoint
        from transformer_layers.models.gpt2.checkpoint import CODEC

        write_checkpoint(CODEC, folder, self.config, self.state_dict())

    def _embed(self, ids: Tensor) -> Tensor:
        return embedded(ids, self.wte)
