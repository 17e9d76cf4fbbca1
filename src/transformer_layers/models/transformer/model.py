"""The Transformer of 2017, whole."""

import math
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer_layers.attention.cache import all_grown_or_none, require_caches
from transformer_layers.attention.masks import causal_mask, padding_mask
from transformer_layers.attention.memory import DecoderCache, reordered
from transformer_layers.attention.multi_head import MultiHeadAttention
from transformer_layers.blocks.decoder import (
    PreNormTransformerDecoderLayer,
    TransformerDecoderLayer,
)
from transformer_layers.blocks.encoder import (
    PreNormTransformerEncoderLayer,
    TransformerEncoderLayer,
)
from transformer_layers.blocks.stacks import TransformerDecoder, TransformerEncoder
from transformer_layers.feed_forward.activations import gelu
from transformer_layers.generation.beam_search import LengthPenalty, as_length_penalty, beam_search
from transformer_layers.generation.decoder import embedded, require_tokens
from transformer_layers.generation.evaluation import evaluating
from transformer_layers.generation.greedy import greedy_search
from transformer_layers.generation.label_smoothing import Reading, smoothed_cross_entropy
from transformer_layers.models.transformer.config import TransformerConfig
from transformer_layers.norms.layer_norm import LayerNorm
from transformer_layers.positions.sinusoidal import sines_then_cosines, sinusoidal_positions
from transformer_layers.regularization.dropout import Dropout
from transformer_layers.validation import require_integers, require_size

_ACTIVATIONS = {"relu": torch.relu, "silu": nn.functional.silu, "gelu": gelu}


class Transformer(nn.Module):
    r"""The Transformer: an encoder reads a source, and a decoder writes a target beside it.

    Section 3 of https://arxiv.org/abs/1706.03762. One matrix :math:`E` embeds the tokens of both
    languages and scores each as the next one (section 3.4); positions are added as sines and
    cosines.

    .. math::
        m &= \mathrm{Encoder}(\sqrt{d}\, E[\mathrm{source}] + PE)
        \\
        y &= \mathrm{Decoder}(\sqrt{d}\, E[\mathrm{target}] + PE,\; m)
        \\
        \mathrm{logits} &= y\, E^\top

    In training dropout acts on both sums of embeddings and positions, and in the layers (section
    5.4); on attention weights and behind activations with shares of their own, if the config has
    them. The embedding starts as normal(0, :math:`d^{-1/2}`), so that the factor brings it to
    variance 1; the layers start as they draw themselves.

    By its config it is also Marian's model, of which there are published translators.

    Args:
        config: The sizes and options.
        device: Of the parameters; torch's default device if not given.
        dtype: Of the parameters; torch's default dtype if not given.

    Attributes:
        config: The sizes and options.
        embedding: Weight of shape `(vocab_size, d_model)`, :math:`E`.
        encoder: :class:`TransformerEncoder`.
        decoder: :class:`TransformerDecoder`.
        logits_bias: Buffer of shape `(1, vocab_size)`, initially zeros; None where there is none.

    Examples:
        >>> config = TransformerConfig(50, d_model=12, num_layers=2, num_heads=3, d_ff=16)
        >>> model = Transformer(config).eval()
        >>> source, target = torch.tensor([[14, 15, 9, 2]]), torch.tensor([[1, 26, 5]])
        >>> model(source, target).shape
        torch.Size([1, 3, 50])
        >>> print(Transformer(TransformerConfig(37_000), device="meta").extra_repr())
        63,082,496 parameters, vocab_size=37000, d_model=512, num_layers=6, num_heads=8, d_ff=2048
    """

    def __init__(
        self,
        config: TransformerConfig,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        with nullcontext() if device is None else torch.device(device):
            self.embedding = nn.Embedding(config.vocab_size, config.d_model)
            self.encoder = _encoder(config)
            self.decoder = _decoder(config)
            bias = torch.zeros(1, config.vocab_size) if config.logits_bias else None
        for module in self.modules():
            if isinstance(module, MultiHeadAttention):
                module.dropout = config.dropout_of_attention
        self.register_buffer("logits_bias", bias)
        self.logits_bias: Tensor | None
        self.dropout = Dropout(config.dropout)
        self.to(dtype=dtype)
        self._initialize()

    @property
    def vocab_size(self) -> int:
        """Number of tokens in the vocabulary."""
        return self.config.vocab_size

    @property
    def max_seq(self) -> int | None:
        """Longest source and longest target, in tokens; None if there is no longest."""
        return self.config.max_seq

    def reset_parameters(self) -> None:
        """Draws all weights anew, as at construction; for a model that was made on the meta device.

        Examples:
            >>> config = TransformerConfig(50, d_model=12, num_layers=2, num_heads=3, d_ff=16)
            >>> model = Transformer(config, device="meta").to_empty(device="cpu")
            >>> model.reset_parameters()
        """
        self.encoder.reset_parameters()
        self.decoder.reset_parameters()
        self._initialize()

    @torch.no_grad()
    def _initialize(self) -> None:
        self.embedding.weight.normal_(std=self.config.d_model**-0.5)
        if self.logits_bias is not None:
            self.logits_bias.zero_()

    def forward(
        self,
        source_ids: Int[Tensor, "batch source_seq"],
        target_ids: Int[Tensor, "batch target_seq"],
        source_mask: Bool[Tensor, "batch 1 source_seq"] | None = None,
    ) -> Float[Tensor, "batch target_seq vocab_size"]:
        """Scores every token as the one that follows, at each position of the target.

        Args:
            source_ids: Tokens of the source, int64 or int32 of shape `(batch, source_seq)`.
            target_ids: Tokens of the target, which begins with the start token, of shape
                `(batch, target_seq)`.
            source_mask: Which positions of each source are not padding, as
                :func:`padding_mask` makes it; all if not given.

        Returns:
            The logits, shape `(batch, target_seq, vocab_size)`. Those at position t score the token
            at t + 1, and depend on the source and on the target up to t.

        Raises:
            TypeError: If ids are not int64 or int32, or the mask is not boolean.
            ValueError: If shapes do not fit, a sequence is too long, or an id is not in the
                vocabulary (on a GPU that is torch's own error).
        """
        memory = self.encode(source_ids, source_mask)
        return self.logits(self.decode(target_ids, memory, source_mask))

    def encode(
        self,
        source_ids: Int[Tensor, "batch source_seq"],
        source_mask: Bool[Tensor, "batch 1 source_seq"] | None = None,
    ) -> Float[Tensor, "batch source_seq d_model"]:
        """What the encoder makes of each position of the source: the memory.

        Args:
            source_ids: See :meth:`forward`, as for the errors.
            source_mask: See there.

        Returns:
            Shape `(batch, source_seq, d_model)`.
        """
        self._require_ids("source_ids", source_ids)
        return self.encoder(self._embed(source_ids), source_mask)

    def decode(
        self,
        target_ids: Int[Tensor, "rows target_seq"],
        memory: Float[Tensor, "batch source_seq d_model"],
        source_mask: Bool[Tensor, "batch 1 source_seq"] | None = None,
        caches: Sequence[DecoderCache] | None = None,
    ) -> Float[Tensor, "rows target_seq d_model"]:
        """What the decoder makes of each position of the target.

        Args:
            target_ids: See :meth:`forward`, as for the errors.
            memory: What :meth:`encode` gives, the same tensor at each call with the same caches.
            source_mask: See :meth:`forward`.
            caches: A cache for each layer, as :meth:`new_caches` makes them; those of `target_ids`
                are added. Then each row of the memory may have several rows of targets.

        Returns:
            Shape `(rows, target_seq, d_model)`.
        """
        past = 0
        if caches is not None:
            past = require_caches(caches, self.config.layers_of_decoder)
        self._require_ids("target_ids", target_ids, past)
        mask = None
        if caches is None:
            mask = causal_mask(target_ids.shape[1], device=target_ids.device)
        return all_grown_or_none(
            caches,
            lambda: self.decoder(self._embed(target_ids, past), memory, mask, source_mask, caches),
        )

    def logits(
        self, hidden_state: Float[Tensor, "*batch seq d_model"]
    ) -> Float[Tensor, "*batch seq vocab_size"]:
        """Scores every token by its embedding's inner product with each position.

        Args:
            hidden_state: What :meth:`decode` returns, shape `(..., seq, d_model)`.

        Returns:
            The logits, shape `(..., seq, vocab_size)`.
        """
        logits = nn.functional.linear(hidden_state, self.embedding.weight)
        return logits if self.logits_bias is None else logits + self.logits_bias

    def loss(
        self,
        source_ids: Int[Tensor, "batch source_seq"],
        target_ids: Int[Tensor, "batch target_seq"],
        source_mask: Bool[Tensor, "batch 1 source_seq"] | None = None,
        epsilon: float = 0.0,
        reading: Reading = "all",
    ) -> Float[Tensor, ""]:
        """Mean cross-entropy of each target token, given the source and those before it, in nats.

        Args:
            source_ids: See :meth:`forward`.
            target_ids: Tokens of the target, of shape `(batch, target_seq)`, without the start
                token and with the end token, then padding, which is not scored.
            source_mask: See :meth:`forward`.
            epsilon: Of label smoothing, see :func:`smoothed_cross_entropy`; the paper has 0.1.
            reading: See there.

        Returns:
            A scalar.

        Raises:
            TypeError: As :meth:`forward`.
            ValueError: As :meth:`forward`, or if there is nothing to score.
        """
        require_integers("target_ids", target_ids)
        logits = self(source_ids, self.shifted(target_ids), source_mask)
        return smoothed_cross_entropy(
            logits, target_ids, epsilon, reading, self.config.padding_token
        )

    def shifted(
        self, target_ids: Int[Tensor, "batch target_seq"]
    ) -> Int[Tensor, "batch target_seq"]:
        """What the decoder reads to predict a target: the start token, then all but the last.

        Args:
            target_ids: Tokens of the target, of shape `(batch, target_seq)`.

        Returns:
            The same shape.
        """
        start = torch.full_like(target_ids[:, :1], self.config.start_token)
        return torch.cat([start, target_ids[:, :-1]], dim=1)

    def generate(
        self,
        source_ids: Int[Tensor, "batch source_seq"] | list[Int[Tensor, " _"]],
        max_new_tokens: int,
        beams: int = 1,
        length_penalty: float | LengthPenalty = 0.0,
        *,
        source_mask: Bool[Tensor, "batch 1 source_seq"] | None = None,
        exhaustive: bool = False,
    ) -> Int[Tensor, "batch new"]:
        """Writes a target for each source; dropout is off, whatever the model's mode.

        A source ends with the end token, as in training: `tokenizer.encode(text)` of our tokenizers
        lacks it, and a translator that `python -m transformer_training` trained is asked with
        `torch.tensor([*tokenizer.encode(text).tolist(), model.config.end_token])`.

        The paper decodes with 4 beams, `PaperLengthPenalty(0.6)`, and up to 50 tokens more than the
        source has (section 6.1).

        Args:
            source_ids: Tokens of the sources, of shape `(batch, source_seq)`, or a list of tensors
                of shape `(source_seq,)`, each with its own length.
            max_new_tokens: Most tokens of a target. One that has not ended by then is cut, and its
                last token is the end token, unless the config says otherwise.
            beams: How many beginnings of each target are kept, see :func:`beam_search`; 1 takes the
                most likely token at each step, and ends with the first end token.
            length_penalty: With several beams, the exponent of :class:`PlainLengthPenalty`, or a
                function of the number of tokens, such as :class:`PaperLengthPenalty`.
            source_mask: Which positions of each source are not padding, as :func:`padding_mask`
                makes it; all if not given. A list of sources needs none.
            exhaustive: See :func:`beam_search`.

        Returns:
            The targets without the start token, each with the end token, then padding, of shape
            `(batch, new)`; `new` is the length of the longest.

        Raises:
            TypeError: If ids are not int64 or int32, the mask is not boolean, or a count is no int.
            ValueError: If shapes do not fit, a sequence could become longer than the model takes,
                an id is not in the vocabulary, or an option is out of range.

        Examples:
            >>> config = TransformerConfig(50, d_model=12, num_layers=2, num_heads=3, d_ff=16)
            >>> model = Transformer(config)
            >>> source = torch.tensor([[14, 15, 9, 2], [3, 5, 8, 2]])
            >>> model.generate(source, max_new_tokens=5, beams=3).shape[0]
            2
        """
        source_ids, source_mask = self._as_batch(source_ids, source_mask)
        require_size("max_new_tokens", max_new_tokens, minimum=0)
        require_size("beams", beams)
        penalty = as_length_penalty(length_penalty)
        self._require_room("target", max_new_tokens)
        require_tokens(source_ids, self.vocab_size, "source_ids")
        config = self.config
        with evaluating(self) as model:
            memory = model.encode(source_ids, source_mask)
            caches = model.new_caches(len(source_ids) * beams, max_new_tokens)
            first = source_ids.new_full((len(source_ids),), config.start_token)
            end = config.end_token if config.forced_token is None else config.forced_token
            forced = end if config.must_end else None

            def read(last: Tensor) -> Tensor:
                logits = model.logits(model.decode(last, memory, source_mask, caches)[:, -1])
                if config.renormalized:
                    logits[:, list(config.banned_tokens)] = -math.inf
                return logits

            def reorder(rows: Tensor) -> None:
                reordered(caches, rows)

            ends = config.end_token, config.padding_token
            if beams == 1:
                return greedy_search(
                    read, first, max_new_tokens, *ends, banned=config.banned_tokens, forced=forced
                )
            return beam_search(
                read,
                reorder,
                first,
                beams,
                max_new_tokens,
                *ends,
                penalty,
                banned=config.banned_tokens,
                forced=forced,
                exhaustive=exhaustive,
            )

    def new_caches(self, batch: int, max_seq: int) -> list[DecoderCache]:
        """Empty caches of the decoder, one for each layer.

        Args:
            batch: Number of targets.
            max_seq: Number of positions there is to be room for.

        Returns:
            As many caches as the decoder has layers, on the device of the model and of its dtype.

        Raises:
            TypeError: If a size is not an int.
            ValueError: If a size is negative.
        """
        heads = self.config.heads_of_decoder
        sizes = (batch, heads, max_seq, self.config.d_model // heads)
        return [DecoderCache.like(self.embedding.weight, *sizes) for _ in self.decoder.layers]

    def extra_repr(self) -> str:
        """The number of parameters and the sizes, for `print`."""
        count = sum(parameter.numel() for parameter in self.parameters())
        names = ("vocab_size", "d_model", "num_layers", "num_heads", "d_ff")
        sizes = ", ".join(f"{name}={getattr(self.config, name)}" for name in names)
        return f"{count:,} parameters, {sizes}"

    @classmethod
    def from_pretrained(
        cls, name_or_folder: str | os.PathLike[str], *, revision: str | None = None
    ) -> "Transformer":
        """Loads a published translation model of Marian's, in the dtype it is stored in.

        Args:
            name_or_folder: A folder with `config.json` and `model.safetensors` (or its parts and
                `model.safetensors.index.json`) and, of Marian's, `generation_config.json` if there
                is one; or a name on the Hugging Face hub, which needs the package
                `huggingface_hub` and, if its cache has not the files, a network.
            revision: The branch, the tag or the commit on the hub; its main branch if not given.

        Returns:
            The model, in evaluation mode.

        Raises:
            FileNotFoundError: If there is no such file.
            OSError: If a file cannot be opened.
            TypeError: If `revision` is no str.
            ValueError: If the files are not those of a model that this class computes, are damaged,
                or do not belong together; the message names what is wrong.
        """
        # Imported here, since safetensors is for those who read files.
        from transformer_layers.checkpoints.checkpoint import load
        from transformer_layers.models.transformer.checkpoint import CODEC

        return load(cls, CODEC, name_or_folder, revision=revision)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Writes what :meth:`from_pretrained` and, of Marian's form, `transformers` load.

        Args:
            folder: Where `config.json` and `model.safetensors` are written; made if needed.

        Raises:
            OSError: If a file cannot be written.
            ValueError: If the weights are not of one floating dtype, or on the meta device.

        Examples:
            >>> import tempfile
            >>> config = TransformerConfig(50, d_model=12, num_layers=2, num_heads=3, d_ff=16)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     Transformer(config).save_pretrained(folder)
            ...     Transformer.from_pretrained(folder).config == config
            True
        """
        from transformer_layers.checkpoints.checkpoint import write_checkpoint
        from transformer_layers.models.transformer.checkpoint import CODEC

        write_checkpoint(CODEC, folder, self.config, self.state_dict())

    def _embed(self, ids: Tensor, past: int = 0) -> Tensor:
        x = embedded(ids, self.embedding)
        if self.config.scaled_embedding:
            x = x * math.sqrt(self.config.d_model)
        seq = past + ids.shape[1]
        positions = sinusoidal_positions(seq, self.config.d_model, dtype=torch.float64)[past:]
        if self.config.sines_first:
            positions = sines_then_cosines(positions).float()
        return self.dropout(x + positions.to(x))

    def _as_batch(
        self, source_ids: Tensor | list[Tensor], source_mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        if isinstance(source_ids, Tensor):
            return source_ids, source_mask
        if source_mask is not None:
            raise ValueError(
                "a list of sources needs no source_mask; got one of shape "
                f"{tuple(source_mask.shape)}"
            )
        for i, each in enumerate(source_ids):
            require_integers(f"source_ids[{i}]", each)
            if each.ndim != 1 or len(each) == 0:
                raise ValueError(
                    f"source_ids[{i}] must be of shape (source_seq,), with a token or more, got "
                    f"{tuple(each.shape)}"
                )
        if not source_ids:
            raise ValueError("source_ids must hold a source, got an empty list")
        lengths = torch.tensor([len(each) for each in source_ids], device=source_ids[0].device)
        padding = self.config.padding_token
        batch = nn.utils.rnn.pad_sequence(source_ids, batch_first=True, padding_value=padding)
        return batch, padding_mask(lengths, batch.shape[1])

    def _require_ids(self, name: str, ids: Tensor, past: int = 0) -> None:
        require_integers(name, ids)
        if ids.ndim != 2:
            raise ValueError(f"{name} must be of shape (batch, seq), got {tuple(ids.shape)}")
        self._require_room(name.removesuffix("_ids"), past + ids.shape[1])

    def _require_room(self, name: str, seq: int) -> None:
        if self.max_seq is not None and seq > self.max_seq:
            raise ValueError(f"the model has {self.max_seq} positions, got a {name} of {seq}")


class _DroppedActivation(nn.Module):
    """An activation with dropout behind it."""

    def __init__(self, activation: Callable[[Tensor], Tensor], dropout: float) -> None:
        super().__init__()
        self.activation = activation
        self.dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Maps each element, and drops some in training."""
        return self.dropout(self.activation(x))


def _activation(config: TransformerConfig) -> Callable[[Tensor], Tensor]:
    activation = _ACTIVATIONS[config.activation]
    if config.activation_dropout == 0:
        return activation
    return _DroppedActivation(activation, config.activation_dropout)


def _encoder(config: TransformerConfig) -> TransformerEncoder:
    kind = PreNormTransformerEncoderLayer if config.pre_norm else TransformerEncoderLayer
    sizes = config.d_model, config.num_heads, config.d_ff, config.dropout
    return TransformerEncoder(
        [kind(*sizes, activation=_activation(config)) for _ in range(config.num_layers)],
        LayerNorm(config.d_model) if config.pre_norm else None,
    )


def _decoder(config: TransformerConfig) -> TransformerDecoder:
    kind = PreNormTransformerDecoderLayer if config.pre_norm else TransformerDecoderLayer
    sizes = config.d_model, config.heads_of_decoder, config.d_ff_of_decoder, config.dropout
    return TransformerDecoder(
        [kind(*sizes, activation=_activation(config)) for _ in range(config.layers_of_decoder)],
        LayerNorm(config.d_model) if config.pre_norm else None,
    )
