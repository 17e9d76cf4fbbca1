"""The sizes and options of a Llama, or of one of its relatives."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from transformer_layers.attention.inputs import require_heads
from transformer_layers.checkpoints.rotary_entries import RopeScaling
from transformer_layers.positions.scaling import DynamicNTKScaling, LongRoPEScaling
from transformer_layers.validation import require_positive, require_size


@dataclass(frozen=True)
class Family:
    """What models of one `model_type` have in common.

    Attributes:
        biased: Which projections of attention have a bias whatever the config says: none, or
            queries, keys and values.
        options: Entries of `config.json` that the family has, of those that not all have.
        defaults: Values of entries that a `config.json` may leave out, as `transformers` has them.
        fused: The maps that files have as one, under that one's name.
        renamed: Parts of a block's keys that files call otherwise, in the order in which they are
            replaced.
        rope_theta: Base of rotary positions where a `config.json` has none.
    """

    biased: bool
    options: Collection[str]
    defaults: Mapping[str, Any]
    fused: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    rope_theta: float = 10_000.0


_WINDOWS = ("sliding_window", "max_window_layers")
_MISTRAL = {"intermediate_size": 14336, "num_key_value_heads": 8, "sliding_window": 4096}
_QWEN = {"vocab_size": 151_936, "intermediate_size": 22016, "num_key_value_heads": 32}
_QWEN |= {"max_position_embeddings": 32_768, "sliding_window": 4096, "max_window_layers": 28}
_PHI: dict[str, float] = {"vocab_size": 32_064, "hidden_size": 3072, "intermediate_size": 8192}
_PHI |= {"max_position_embeddings": 4096, "rms_norm_eps": 1e-5}
_FUSED = {"q_proj": "qkv_proj", "k_proj": "qkv_proj", "v_proj": "qkv_proj"}
_FUSED |= {"gate_proj": "gate_up_proj", "up_proj": "gate_up_proj"}
_EXPERTS = ("num_experts", "num_experts_per_tok")
_SPARSE = ("moe_intermediate_size", "norm_topk_prob", "decoder_sparse_step", "mlp_only_layers")
_MIXTRAL: dict[str, float] = {"intermediate_size": 14336, "num_key_value_heads": 8}
_MIXTRAL |= {"max_position_embeddings": 131_072, "rms_norm_eps": 1e-5}
_MIXTRAL |= {"num_experts": 8, "num_experts_per_tok": 2}
_MIXTRAL_KEYS = {
    "mlp.router.scores": "block_sparse_moe.gate",
    "mlp.experts": "block_sparse_moe.experts",
}
_MIXTRAL_KEYS |= {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}
_QWEN_MOE = {**_QWEN, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24}
_QWEN_MOE |= {"num_key_value_heads": 4, "moe_intermediate_size": 768, "num_experts": 128}
_QWEN_MOE |= {"num_experts_per_tok": 8, "norm_topk_prob": False}
FAMILIES = {
    "llama": Family(False, ("attention_bias", "mlp_bias"), {}),
    "mistral": Family(False, _WINDOWS[:1], {**_MISTRAL, "max_position_embeddings": 131_072}),
    "qwen2": Family(True, _WINDOWS, _QWEN),
    "qwen3": Family(False, (*_WINDOWS, "attention_bias"), {**_QWEN, "head_dim": 128}),
    "olmo2": Family(False, ("attention_bias",), {"vocab_size": 50_304, "rms_norm_eps": 1e-5}),
    "phi3": Family(False, (*_WINDOWS[:1], "partial_rotary_factor"), _PHI, _FUSED),
    "mixtral": Family(False, (*_WINDOWS[:1], *_EXPERTS), _MIXTRAL, {}, _MIXTRAL_KEYS, 1e6),
    "qwen3_moe": Family(
        False,
        (*_WINDOWS[:1], "attention_bias", *_EXPERTS, *_SPARSE),
        _QWEN_MOE,
        renamed={"mlp.router.scores": "mlp.gate"},
    ),
}


@dataclass(frozen=True)
class LlamaConfig:
    """The sizes and options of a Llama, under the names of its published `config.json`.

    The defaults are those of Llama 2 with 7 billion parameters. What the name of a relative stands
    for, `model_type`: "mistral" is Llama; "qwen2" has biases for queries, keys and values; "qwen3"
    norms each head of queries and keys; "olmo2" norms all heads of them together, and what
    attention and feed-forward layer give, not what they take; "phi3" can turn a part of a head's
    features alone, and its files have queries, keys and values of one map; "mixtral" and
    "qwen3_moe" have experts in the place of feed-forward layers, and the latter is "qwen3" besides.

    Attributes:
        vocab_size: Number of tokens in the vocabulary.
        hidden_size: Features of a position, `d_model`.
        intermediate_size: Features between the maps of the feed-forward layers, `d_ff`.
        num_hidden_layers: Number of blocks.
        num_attention_heads: Heads of queries of each block.
        num_key_value_heads: Heads of keys and values; as many as of queries if not given.
        head_dim: Features of a head; `hidden_size / num_attention_heads` if not given.
        max_position_embeddings: Longest sequence, in tokens; `rope_scaling` can allow longer ones.
        rms_norm_eps: Added to the mean of squares in every norm.
        rope_theta: Base of the frequencies of rotary positions.
        rope_scaling: What changes these frequencies; nothing if not given.
        partial_rotary_factor: Which share of a head's features turns, the first ones.
        tie_word_embeddings: Whether the head is the token embedding.
        attention_bias: Whether attention's four maps have a bias.
        mlp_bias: Whether the feed-forward layers' three maps have a bias.
        sliding_window: How many keys a query sees at most, itself among them; all if not given.
        max_window_layers: How many blocks, the first ones, have no window.
        model_type: "llama", "mistral", "qwen2", "qwen3", "olmo2", "phi3", "mixtral" or "qwen3_moe".
        num_experts: How many experts a block has; as many as the family's first published model if
            not given, and 0 in families without any.
        num_experts_per_tok: How many of them a token is sent to.
        moe_intermediate_size: Features between the maps of an expert; `intermediate_size` if not
            given.
        norm_topk_prob: Whether the weights of a token's experts add up to 1.
        decoder_sparse_step: Every how many blocks one has experts, the last of each such group.
        mlp_only_layers: Numbers of blocks, from 0, that have none whatever their number is.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If a size is below 1, heads do not divide the features of a "llama" or the heads
            of keys those of queries, an odd number of features turns or none, a number is not
            greater than 0, or the family lacks an option.

    Examples:
        >>> config = LlamaConfig(num_key_value_heads=8, intermediate_size=14336, rope_theta=5e5)
        >>> config.num_key_value_heads, config.head_dim  # as Llama 3 has them
        (8, 128)
    """

    vocab_size: int = 32_000
    hidden_size: int = 4096
    intermediate_size: int = 11_008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10_000.0
    rope_scaling: RopeScaling | None = None
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    sliding_window: int | None = None
    max_window_layers: int = 0
    model_type: str = "llama"
    partial_rotary_factor: float = 1.0
    num_experts: int | None = None
    num_experts_per_tok: int = 2
    moe_intermediate_size: int | None = None
    norm_topk_prob: bool = True
    decoder_sparse_step: int = 1
    mlp_only_layers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Fills in what follows from other sizes, and refuses what no model can be made of."""
        if self.model_type not in FAMILIES:
            raise ValueError(
                f"model_type must be one of {', '.join(FAMILIES)}, got {self.model_type!r}"
            )
        for name in ("vocab_size", "intermediate_size", "num_hidden_layers"):
            require_size(name, getattr(self, name))
        require_size("max_position_embeddings", self.max_position_embeddings)
        require_size("max_window_layers", self.max_window_layers, minimum=0)
        if self.num_key_value_heads is None:
            object.__setattr__(self, "num_key_value_heads", self.num_attention_heads)
        require_heads(
            self.num_attention_heads,
            self.kv_heads,
            names=("num_attention_heads", "num_key_value_heads"),
        )
        if self.head_dim is None or self.model_type == "llama":  # as in transformers
            names = ("hidden_size", "num_attention_heads")
            require_heads(self.hidden_size, self.num_attention_heads, names=names)
        if self.head_dim is None:
            object.__setattr__(self, "head_dim", self.hidden_size // self.num_attention_heads)
        require_size("hidden_size", self.hidden_size)
        require_size("head_dim", self.d_k)
        if self.d_k % 2:
            raise ValueError(f"head_dim must be even, since features turn in pairs, got {self.d_k}")
        if not 0 < self.partial_rotary_factor <= 1 or self.d_rotary % 2 or self.d_rotary == 0:
            raise ValueError(
                "partial_rotary_factor must be above 0 and at most 1, with an even number of "
                f"features that turn, got {self.partial_rotary_factor} of {self.d_k}"
            )
        require_positive("rms_norm_eps", self.rms_norm_eps)
        require_positive("rope_theta", self.rope_theta)
        if self.sliding_window is not None:
            require_size("sliding_window", self.sliding_window)
        self._require_options()
        self._require_experts()

    def _require_options(self) -> None:
        nothing: dict[str, object] = {
            "attention_bias": False,
            "mlp_bias": False,
            "sliding_window": None,
        }
        nothing |= {"max_window_layers": 0, "partial_rotary_factor": 1.0, "num_experts": 0}
        if self.num_experts is None:
            count = FAMILIES[self.model_type].defaults.get("num_experts", 0)
            object.__setattr__(self, "num_experts", count)
        nothing |= {"moe_intermediate_size": None, "norm_topk_prob": True}
        nothing |= {"decoder_sparse_step": 1, "mlp_only_layers": ()}
        for name, none in nothing.items():
            value = getattr(self, name)
            if value != none and name not in FAMILIES[self.model_type].options:
                raise ValueError(f"a {self.model_type} has no {name}, got {value!r}")
        scaling = self.rope_scaling
        if self.model_type == "phi3" and not isinstance(scaling, LongRoPEScaling | None):
            raise ValueError(f"a phi3 has no rope_scaling but LongRoPEScaling, got {scaling}")
        if isinstance(scaling, LongRoPEScaling) and len(scaling.long_factor) != self.d_rotary // 2:
            raise ValueError(
                f"short_factor and long_factor must have a number for each of {self.d_rotary // 2} "
                f"pairs of features that turn, got {len(scaling.long_factor)}"
            )
        length = self.max_position_embeddings
        if (
            isinstance(scaling, DynamicNTKScaling)
            and scaling.original_max_position_embeddings != length
        ):
            raise ValueError(
                "a dynamic scaling must begin at max_position_embeddings, got "
                f"{scaling.original_max_position_embeddings} and {length}"
            )

    def _require_experts(self) -> None:
        if "num_experts" not in FAMILIES[self.model_type].options:
            return
        for name in ("num_experts", "num_experts_per_tok", "d_expert", "decoder_sparse_step"):
            require_size(name.replace("d_expert", "moe_intermediate_size"), getattr(self, name))
        if self.num_experts_per_tok > self.experts:
            raise ValueError(
                f"num_experts_per_tok must be at most num_experts, got {self.num_experts_per_tok} "
                f"of {self.num_experts}"
            )
        for block in self.mlp_only_layers:
            require_size("mlp_only_layers", block, minimum=0)

    @property
    def experts(self) -> int:
        """How many experts a block with experts has."""
        return self.num_experts or 0

    @property
    def d_expert(self) -> int:
        """Features between the maps of an expert."""
        return self.intermediate_size if (d := self.moe_intermediate_size) is None else d

    def has_experts(self, block: int) -> bool:
        """Whether a block has experts in the place of its feed-forward layer.

        Args:
            block: Its number, from 0.
        """
        sparse = self.experts > 0 and (block + 1) % self.decoder_sparse_step == 0
        return sparse and block not in self.mlp_only_layers

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.num_attention_heads if (kv := self.num_key_value_heads) is None else kv

    @property
    def d_k(self) -> int:
        """Features of a head."""
        return self.hidden_size // self.num_attention_heads if (d := self.head_dim) is None else d

    @property
    def d_rotary(self) -> int:
        """Features of a head that turn by positions."""
        return int(self.d_k * self.partial_rotary_factor)  # rounded down, as in transformers

    @property
    def biased(self) -> bool:
        """Whether the maps to queries, keys and values have a bias."""
        return self.attention_bias or FAMILIES[self.model_type].biased

    @property
    def max_seq(self) -> int:
        """Longest sequence, in tokens, with what `rope_scaling` allows beyond the config's length.

        A recipe for longer sequences adds a scaling, and may leave `max_position_embeddings`.

        Examples:
            >>> from transformer_layers import YaRNScaling
            >>> LlamaConfig(max_position_embeddings=40_960).max_seq
            40960
            >>> scaling = YaRNScaling(4.0, original_max_position_embeddings=32_768)
            >>> LlamaConfig(max_position_embeddings=40_960, rope_scaling=scaling).max_seq
            131072
        """
        length = self.max_position_embeddings
        return length if self.rope_scaling is None else self.rope_scaling.longest(length)

    def window_of(self, block: int) -> int | None:
        """How many keys a query of a block sees at most; None for all.

        Args:
            block: Its number, from 0.
        """
        return self.sliding_window if block >= self.max_window_layers else None
