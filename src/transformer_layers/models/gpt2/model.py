"""GPT-2, whole."""

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_layers.attention.cache import KeyValueCache, require_caches
from transformer_layers.generation.evaluation import in_evaluation
from transformer_layers.generation.loop import as_batch, new_tokens, require_stops, up_to_stop
from transformer_layers.generation.sampling import next_token, require_sampling
from transformer_layers.models.gpt2.block import GPT2Block
from transformer_layers.models.gpt2.config import GPT2Config
from transformer_layers.models.gpt2.conv1d import Conv1D
from transformer_layers.precision import at_least_float32, autocast_dtype
from transformer_layers.regularization.dropout import Dropout
from transformer_layers.validation import require_integers, require_size

# One tensor for prompts of the same length, a list of tensors for those of different lengths.
Prompts = TypeVar("Prompts", Tensor, list[Tensor])


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
        past = self._past(ids, caches)
        positions = torch.arange(past, past + ids.shape[-1], device=ids.device)
        if caches and caches[0].padding is not None:
            positions = (positions - caches[0].padding[:, None]).clamp(min=0)
        try:
            return self._last_hidden_state(ids, positions, caches)
        except BaseException:  # all caches have grown, or none, also after an interrupt
            for cache in caches or ():
                cache.length = past
            raise

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

    def loss(self, ids: Int[Tensor, "*batch seq"]) -> Float[Tensor, ""]:
        r"""Mean cross-entropy of each token after the first, given those before it, in nats.

        .. math::
            L = -\frac{1}{B (S - 1)} \sum_b \sum_{s=1}^{S-1} \log p(\mathrm{ids}_{b, s+1}
            \mid \mathrm{ids}_{b, 1}, \dots, \mathrm{ids}_{b, s})

        The logits at a position are held against the token at the next one. float16 and bfloat16
        logits are summed up in float32.

        Args:
            ids: Tokens, int64 or int32 of shape `(..., seq)`; seq is at most `n_positions + 1`.

        Returns:
            A scalar.

        Raises:
            TypeError: If `ids` are not int64 or int32.
            ValueError: If there is nothing to predict, a sequence is too long, or an id is not in
                the vocabulary.
        """
        require_integers("ids", ids)
        if ids.ndim == 0 or ids.shape[-1] < 2 or ids.numel() == 0:
            raise ValueError(
                "ids must hold a sequence of two tokens or more, so that there is one to predict; "
                f"got shape {tuple(ids.shape)}"
            )
        scores = at_least_float32(self(ids[..., :-1]))
        self._embed(ids[..., -1])  # looks them up too: cross_entropy would leave out a -100
        following = ids[..., 1:].flatten().long()
        return nn.functional.cross_entropy(scores.flatten(0, -2), following)

    def generate(
        self,
        ids: Prompts,
        max_new_tokens: int,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: torch.Generator | None = None,
        eos_token: int | Sequence[int] | None = None,
    ) -> Prompts:
        """Continues each prompt, one token at a time.

        The keys and values of earlier positions are kept, so that each step after the first
        computes one position. Dropout is off, whatever the model's mode, which stays as it is.

        Prompts of different lengths are a list of tensors. They are computed as one batch, in which
        the shorter ones have padding in front: nothing attends to it, and a prompt's positions are
        counted from its own first token. So greedy tokens are those of each prompt by itself.

        Args:
            ids: The prompts, int64 or int32: a tensor of shape `(batch, seq)`, or a list of tensors
                of shape `(seq,)`, each with its own length.
            max_new_tokens: Number of tokens to add at most.
            temperature: What the logits are divided by before a token is drawn; 0 takes the most
                likely token.
            top_k: If given, tokens are drawn from the `top_k` most likely ones.
            top_p: If given, tokens are drawn from the fewest most likely ones whose probabilities
                sum to `top_p` or more; after `top_k`.
            generator: Source of the draws; torch's global one if not given.
            eos_token: If given, the token, or the tokens, of which the first new one ends a
                sequence, and is its last.

        Returns:
            The prompts with their new tokens. Those of a tensor are of shape
            `(batch, seq + max_new_tokens)`, or shorter if all sequences have ended before; one that
            ends before others is filled up with `eos_token`, the first of several. Those of a list
            are a list of tensors, without filling.

        Raises:
            TypeError: If `ids` are not int64 or int32, or a count or a token is no int.
            ValueError: If a shape does not fit, a prompt holds no position, the result could be
                longer than `n_positions`, an id is not in the vocabulary, an option is out of
                range, or the highest logit is not finite.

        Examples:
            >>> config = GPT2Config(vocab_size=50, n_positions=16, n_embd=12, n_layer=2, n_head=3)
            >>> model = GPT2(config)
            >>> model.generate(torch.tensor([[3, 14], [15, 9]]), max_new_tokens=5).shape
            torch.Size([2, 7])
            >>> prompts = [torch.tensor([3, 14, 15]), torch.tensor([9])]
            >>> [len(each) for each in model.generate(prompts, max_new_tokens=5)]
            [8, 6]
        """
        stream = self.stream(ids, max_new_tokens, temperature, top_k, top_p, generator, eos_token)
        steps: list[Tensor] = [new[:, None] for new in stream]
        if isinstance(ids, Tensor):
            return torch.cat([ids, *steps], dim=1)
        if not steps:
            return [prompt.clone() for prompt in ids]
        stops = require_stops(eos_token, self.config.vocab_size)
        rows = zip(ids, torch.cat(steps, dim=1), strict=True)
        return [torch.cat([prompt, up_to_stop(new, stops)]) for prompt, new in rows]

    def stream(
        self,
        ids: Int[Tensor, "batch seq"] | list[Int[Tensor, " _"]],
        max_new_tokens: int,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: torch.Generator | None = None,
        eos_token: int | Sequence[int] | None = None,
    ) -> Iterator[Int[Tensor, " batch"]]:
        """Yields the new tokens of :meth:`generate`, each as soon as it is chosen.

        Args:
            ids: See :meth:`generate`, as for all arguments and errors. The errors of arguments come
                with the call, not with the first token.
            max_new_tokens: See there.
            temperature: See there.
            top_k: See there.
            top_p: See there.
            generator: See there.
            eos_token: See there.

        Returns:
            An iterator over tensors of shape `(batch,)`, a token for each prompt. A sequence that
            has ended goes on with `eos_token`, until all have.

        Examples:
            >>> config = GPT2Config(vocab_size=50, n_positions=16, n_embd=12, n_layer=2, n_head=3)
            >>> model = GPT2(config)
            >>> for tokens in model.stream(torch.tensor([[3, 14]]), max_new_tokens=2):
            ...     print(tokens.shape)
            torch.Size([1])
            torch.Size([1])
        """
        batch, padding = as_batch(ids)
        require_size("max_new_tokens", max_new_tokens, minimum=0)
        require_sampling(temperature, top_k, top_p)
        stops = require_stops(eos_token, self.config.vocab_size)
        total = batch.shape[1] + max_new_tokens
        self._require_room(total)
        self._require_tokens(batch)
        caches = self.new_caches(batch.shape[0], total, padding)
        model = in_evaluation(self)

        def read(new: Tensor) -> Tensor:
            return model.logits(model.last_hidden_state(new, caches)[:, -1])

        def choose(logits: Tensor) -> Tensor:
            return next_token(logits, temperature, top_k, top_p, generator)

        return new_tokens(read, choose, batch, max_new_tokens, stops)

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
        weight, heads = self.wte.weight, self.config.n_head
        d_k, dtype = self.config.n_embd // heads, autocast_dtype(weight)
        return [
            KeyValueCache(
                batch, heads, max_seq, d_k, dtype=dtype, device=weight.device, padding=padding
            )
            for _ in self.h
        ]

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
        from transformer_layers.models.gpt2.checkpoint import read_checkpoint  # imports safetensors

        config, weights = read_checkpoint(name_or_folder, revision=revision)
        with torch.device("meta"):
            model = cls(config)
        model.load_state_dict(weights, assign=True)
        return model.eval()

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
        from transformer_layers.models.gpt2.checkpoint import write_checkpoint

        write_checkpoint(folder, self.config, self.state_dict())

    def _past(self, ids: Tensor, caches: Sequence[KeyValueCache] | None) -> int:
        # Refuses what does not fit, and counts the positions that the caches hold.
        require_integers("ids", ids)
        if ids.ndim == 0:
            raise ValueError("ids must have an axis of positions, got a single number")
        past = 0 if caches is None else require_caches(caches, len(self.h))
        self._require_room(past + ids.shape[-1])
        return past

    def _require_room(self, seq: int) -> None:
        if seq > self.config.n_positions:
            raise ValueError(
                f"the model has n_positions = {self.config.n_positions} positions, got a sequence "
                f"of {seq}"
            )

    def _embed(self, ids: Tensor) -> Tensor:
        try:
            return self.wte(ids)
        except IndexError:
            self._require_tokens(ids)
            raise

    def _require_tokens(self, ids: Tensor) -> None:
        if ids.is_meta or ids.numel() == 0:
            return
        least, most = ids.min(), ids.max()
        if least < 0 or most >= self.config.vocab_size:
            raise ValueError(
                f"ids must be in [0, {self.config.vocab_size}), got values from {least} to {most}"
            )
