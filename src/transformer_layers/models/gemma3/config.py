"""The sizes and options of a Gemma 3."""

from dataclasses import dataclass

from transformer_layers.attention.inputs import require_heads
from transformer_layers.checkpoints.rotary_entries import RopeScaling
from transformer_layers.validation import require_positive, require_size

KINDS = ("sliding_attention", "full_attention")


@dataclass(frozen=True)
class Gemma3Config:
    """The sizes and options of a Gemma 3's text model, as its `config.json` names them.

    The defaults are those of `transformers`.

    Attributes:
        vocab_size: Number of tokens in the vocabulary.
        hidden_size: Features of a position, `d_model`.
        intermediate_size: Features between the maps of the feed-forward layers, `d_ff`.
        num_hidden_layers: Number of blocks.
        num_attention_heads: Heads of queries of each block.
        num_key_value_heads: Heads of keys and values.
        head_dim: Features of a head.
        max_position_embeddings: Longest sequence, in tokens.
        rms_norm_eps: Added to the mean of squares in every norm.
        rope_theta: Base of the rotation in blocks that see all positions.
        rope_scaling: What changes its frequencies; nothing if not given.
        rope_local_base_freq: Base of the rotation in blocks with a window.
        sliding_window: How many keys a query sees at most in such blocks, itself among them.
        layer_types: Of each block, "sliding_attention" or "full_attention"; every sixth block sees
            all positions if not given.
        query_pre_attn_scalar: The number by whose root scores are divided, in the place of
            `head_dim`.
        attention_bias: Whether attention's four maps have a bias.
        final_logit_softcapping: To which size a tanh bounds logits; none if not given.
        tie_word_embeddings: Whether the head is the token embedding.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If a size is below 1, heads of keys do not divide those of queries, `head_dim`
            is odd, a number is not greater than 0, or `layer_types` are not one for each block.

    Examples:
        >>> config = Gemma3Config(num_hidden_layers=7)
        >>> [kind == "full_attention" for kind in config.kinds]
        [False, False, False, False, False, True, False]
    """

    vocab_size: int = 262_208
    hidden_size: int = 2304
    intermediate_size: int = 9216
    num_hidden_layers: int = 26
    num_attention_heads: int = 8
    num_key_value_heads: int = 4
    head_dim: int = 256
    max_position_embeddings: int = 131_072
    rms_norm_eps: float = 1e-6
    rope_theta: float = 1_000_000.0
    rope_scaling: RopeScaling | None = None
    rope_local_base_freq: float = 10_000.0
    sliding_window: int = 4096
    layer_types: tuple[str, ...] | None = None
    query_pre_attn_scalar: int = 256
    attention_bias: bool = False
    final_logit_softcapping: float | None = None
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        """Refuses what no model can be made of."""
        for name in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers"):
            require_size(name, getattr(self, name))
        for name in ("head_dim", "max_position_embeddings", "sliding_window"):
            require_size(name, getattr(self, name))
        require_size("query_pre_attn_scalar", self.query_pre_attn_scalar)
        require_heads(
            self.num_attention_heads,
            self.num_key_value_heads,
            names=("num_attention_heads", "num_key_value_heads"),
        )
        if self.head_dim % 2:
            raise ValueError(
                f"head_dim must be even, since features turn in pairs, got {self.head_dim}"
            )
        for name in ("rms_norm_eps", "rope_theta", "rope_local_base_freq"):
            require_positive(name, getattr(self, name))
        if self.final_logit_softcapping is not None:
            require_positive("final_logit_softcapping", self.final_logit_softcapping)
        if self.layer_types is not None:
            kinds = self.layer_types
            if len(kinds) != self.num_hidden_layers or not set(kinds) <= set(KINDS):
                raise ValueError(
                    f"layer_types must have {' or '.join(KINDS)} for each of "
                    f"{self.num_hidden_layers} blocks, got {kinds}"
                )

    @property
    def max_seq(self) -> int:
        """Longest sequence, in tokens, with what `rope_scaling` allows beyond the config's."""
        length = self.max_position_embeddings
        return length if self.rope_scaling is None else self.rope_scaling.longest(length)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of each block, "sliding_attention" or "full_attention"."""
        if self.layer_types is not None:
            return self.layer_types
        return tuple(KINDS[(i + 1) % 6 == 0] for i in range(self.num_hidden_layers))

    def window_of(self, block: int) -> int | None:
        """How many keys a query of a block sees at most; None for all.

        Args:
            block: Its number, from 0.
        """
        return self.sliding_window if self.kinds[block] == KINDS[0] else None
