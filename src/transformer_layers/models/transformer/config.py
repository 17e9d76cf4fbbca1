"""The sizes and options of a Transformer with an encoder and a decoder."""

from dataclasses import dataclass
from typing import Literal

from transformer_layers.attention.inputs import require_heads
from transformer_layers.validation import require_probability, require_size

Activation = Literal["relu", "silu", "gelu"]
ACTIVATIONS = ("relu", "silu", "gelu")


@dataclass(frozen=True)
class TransformerConfig:
    """The sizes and options of a :class:`Transformer`.

    The defaults are the base model of https://arxiv.org/abs/1706.03762, table 3. Its big model has
    1024 features, 16 heads, `d_ff` 4096 and a dropout of 0.3.

    Attributes:
        vocab_size: Number of tokens in the vocabulary, which both languages share.
        d_model: Features of a position.
        num_layers: Layers of the encoder.
        num_heads: Heads of each of its attentions, a divisor of `d_model`.
        d_ff: Size inside its feed-forward networks.
        decoder_layers: Layers of the decoder; as many as the encoder has if not given.
        decoder_heads: Heads of each of its attentions; those of the encoder if not given.
        decoder_d_ff: Size inside its feed-forward networks; that of the encoder if not given.
        dropout: Share that is dropped in training, of all that the next two do not tell.
        attention_dropout: Share of the attention weights that is; `dropout` if not given.
        activation_dropout: Share of what the activation gives that is, which the paper has not.
        max_seq: Longest source and longest target, in tokens; None if there is no longest.
        start_token: What the decoder reads before the first token.
        end_token: What ends a sequence.
        padding_token: What fills up sequences that end before others; it is never scored.
        activation: "relu" as in the paper, "silu" or "gelu", inside the feed-forward networks.
        scaled_embedding: Whether embeddings are multiplied by the root of `d_model`, as in section
            3.4 of the paper.
        sines_first: Whether positions have their sines in front of their cosines, and are rounded
            to float32, as Marian's are; the paper's alternate.
        pre_norm: Whether norms stand inside the residuals, with one more behind each stack; the
            paper's stand behind the sums.
        logits_bias: Whether a bias is added to the logits, as Marian's is.
        banned_tokens: Tokens that `generate` never chooses.
        must_end: Whether `generate` ends a sequence also where it is cut.
        forced_token: With what it then ends; `end_token` if not given.
        renormalized: Whether the probabilities of tokens that are not banned sum to 1 in beam
            search, as in published models of Marian's.

    Raises:
        TypeError: If a size or a token is not an int.
        ValueError: If a size is below 1, heads do not divide `d_model`, a share is not within
            [0, 1], a token is not in the vocabulary, or there is no such activation.

    Examples:
        >>> config = TransformerConfig(vocab_size=50, d_model=12, num_heads=3)
        >>> config.heads_of_decoder, config.layers_of_decoder
        (3, 6)
    """

    vocab_size: int
    d_model: int = 512
    num_layers: int = 6
    num_heads: int = 8
    d_ff: int = 2048
    decoder_layers: int | None = None
    decoder_heads: int | None = None
    decoder_d_ff: int | None = None
    dropout: float = 0.1
    max_seq: int | None = None
    start_token: int = 1
    end_token: int = 2
    padding_token: int = 0
    activation: Activation = "relu"
    scaled_embedding: bool = True
    sines_first: bool = False
    pre_norm: bool = False
    logits_bias: bool = False
    banned_tokens: tuple[int, ...] = ()
    must_end: bool = True
    forced_token: int | None = None
    renormalized: bool = False
    attention_dropout: float | None = None
    activation_dropout: float = 0.0

    def __post_init__(self) -> None:
        """Refuses sizes of which no model can be built."""
        require_size("vocab_size", self.vocab_size)
        require_size("num_layers", self.num_layers)
        require_heads(self.d_model, self.num_heads)
        require_size("d_ff", self.d_ff)
        require_size("decoder_layers", self.layers_of_decoder)
        require_heads(self.d_model, self.heads_of_decoder, ("d_model", "decoder_heads"))
        require_size("decoder_d_ff", self.d_ff_of_decoder)
        require_probability("dropout", self.dropout)
        require_probability("attention_dropout", self.dropout_of_attention)
        require_probability("activation_dropout", self.activation_dropout)
        if self.max_seq is not None:
            require_size("max_seq", self.max_seq)
        tokens = {
            "start_token": self.start_token,
            "end_token": self.end_token,
            "padding_token": self.padding_token,
            "forced_token": self.end_token if self.forced_token is None else self.forced_token,
            **{f"banned_tokens[{i}]": token for i, token in enumerate(self.banned_tokens)},
        }
        for name, token in tokens.items():
            require_size(name, token, minimum=0)
            if token >= self.vocab_size:
                raise ValueError(
                    f"{name} must be below vocab_size = {self.vocab_size}, got {token}"
                )
        if self.end_token == self.padding_token:
            raise ValueError(
                "end_token and padding_token must differ, or nobody learns where a sequence ends; "
                f"got {self.end_token} for both"
            )
        if self.activation not in ACTIVATIONS:
            raise ValueError(
                f"activation must be one of {', '.join(ACTIVATIONS)}, got {self.activation!r}"
            )

    @property
    def layers_of_decoder(self) -> int:
        """Layers of the decoder."""
        return self.num_layers if self.decoder_layers is None else self.decoder_layers

    @property
    def heads_of_decoder(self) -> int:
        """Heads of each of the decoder's attentions."""
        return self.num_heads if self.decoder_heads is None else self.decoder_heads

    @property
    def d_ff_of_decoder(self) -> int:
        """Size inside the decoder's feed-forward networks."""
        return self.d_ff if self.decoder_d_ff is None else self.decoder_d_ff

    @property
    def dropout_of_attention(self) -> float:
        """Share of the attention weights that is dropped in training."""
        return self.dropout if self.attention_dropout is None else self.attention_dropout
