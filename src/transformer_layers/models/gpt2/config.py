"""The sizes of a GPT-2."""

from dataclasses import dataclass

from transformer_layers.attention.inputs import require_heads
from transformer_layers.validation import require_positive, require_probability, require_size


@dataclass(frozen=True)
class GPT2Config:
    """The sizes of a GPT-2, under the names of its published `config.json`.

    The defaults are those of the smallest published model. Its siblings have 24, 36 and 48 layers
    of 1024, 1280 and 1600 features and 16, 20 and 25 heads.

    Attributes:
        vocab_size: Number of tokens in the vocabulary.
        n_positions: Longest sequence, in tokens.
        n_embd: Features of a position, `d_model`.
        n_layer: Number of blocks.
        n_head: Number of heads of each block, a divisor of `n_embd`.
        dropout: Share that is dropped in training, the same in all four places. A `config.json`
            has three entries for it: `embd_pdrop`, `attn_pdrop` and `resid_pdrop`.
        layer_norm_epsilon: Added to the variance in every norm.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If a size is below 1, `n_head` does not divide `n_embd`, `dropout` is not within
            [0, 1], or `layer_norm_epsilon` is not greater than 0.

    Examples:
        >>> GPT2Config(n_layer=24, n_embd=1024, n_head=16)  # the second of the four sizes
        GPT2Config(vocab_size=50257, n_positions=1024, n_embd=1024, n_layer=24, n_head=16,
                   dropout=0.1, layer_norm_epsilon=1e-05)
    """

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    dropout: float = 0.1
    layer_norm_epsilon: float = 1e-5

    def __post_init__(self) -> None:
        """Refuses sizes of which no model can be built."""
        require_size("vocab_size", self.vocab_size)
        require_size("n_positions", self.n_positions)
        require_size("n_layer", self.n_layer)
        require_heads(self.n_embd, self.n_head, names=("n_embd", "n_head"))
        require_probability("dropout", self.dropout)
        require_positive("layer_norm_epsilon", self.layer_norm_epsilon)
