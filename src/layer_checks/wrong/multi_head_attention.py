"""Known wrong versions of `MultiHeadAttention`."""

import math
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from layer_checks.checks.attention import attention_weights
from layer_checks.checks.multi_head_attention import multi_head_attention
from layer_checks.kit.definitions import Candidate
from layer_checks.wrong import attention


@multi_head_attention.right_otherwise
class _MultiHeadAttention(nn.Module):
    """A right one in small steps, of which each wrong version changes one."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        self.require(d_model, num_heads)
        self.num_heads = num_heads
        self.dropout = dropout
        self.query_proj = nn.Linear(d_model, d_model, bias)
        self.key_proj = nn.Linear(d_model, d_model, bias)
        self.value_proj = nn.Linear(d_model, d_model, bias)
        self.output_proj = nn.Linear(d_model, d_model, bias)

    def require(self, d_model: int, num_heads: int) -> None:
        if d_model % num_heads:
            raise ValueError(f"d_model={d_model} is not divisible by num_heads={num_heads}")

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        if mask is not None:
            mask = self.over_heads(mask, query, key)
        weights = self.weights(
            self.split(self.query_proj(query)), self.split(self.key_proj(key)), mask
        )
        output = self.drop(weights) @ self.split(self.value_proj(value))
        return self.projected(self.merge(output), query)

    def weights(self, query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
        return attention.right_weights(query, key, mask)

    def over_heads(self, mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
        batch, q_seq, kv_seq = query.shape[:-2], query.shape[-2], key.shape[-2]
        if mask.shape == (q_seq, kv_seq):
            return mask
        if mask.shape not in ((*batch, q_seq, kv_seq), (*batch, 1, kv_seq)):
            raise ValueError(f"mask of shape {tuple(mask.shape)} does not fit")
        return mask.unsqueeze(-3)

    def drop(self, weights: Tensor) -> Tensor:
        return functional.dropout(weights, self.dropout, self.training)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)

    def merge(self, x: Tensor) -> Tensor:
        return x.transpose(-3, -2).flatten(-2)

    def projected(self, output: Tensor, query: Tensor) -> Tensor:
        return self.output_proj(output)


def _with_weights(weights: Candidate) -> type[nn.Module]:
    """Makes a mistake in the weights, in every head."""

    class WrongMultiHeadAttention(_MultiHeadAttention):
        def weights(self, query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
            return weights(query, key, mask)

    WrongMultiHeadAttention.__doc__ = weights.__doc__
    return WrongMultiHeadAttention


# Half precision and exp are settled where the weights are: in a layer the projections decide. The
# wrong axis is d_model here, below.
for version in attention_weights.wrong_versions:
    if version.name not in (
        "scaled after the product",
        "softmax in bfloat16",
        "-1e9 for -inf",
        "root of the wrong axis",
        "exp without the maximum",
    ):
        multi_head_attention.same_mistake(version, _with_weights(version.layer))


@multi_head_attention.wrong(
    "divide by the root of the width of one head, d_k = d_model / num_heads.",
    name="divided by the root of d_model",
)
class RootOfDModel(_MultiHeadAttention):
    """Divides by the root of the model's width."""

    def weights(self, query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
        return attention.right_weights(query / math.sqrt(self.num_heads), key, mask)


@multi_head_attention.wrong(
    "cut the last axis into heads, (seq, num_heads, d_k), and then swap seq and heads."
)
class HeadsSplitWithoutTransposing(_MultiHeadAttention):
    """Cuts the sequence into as many parts as there are heads."""

    def split(self, x: Tensor) -> Tensor:
        d_k = x.shape[-1] // self.num_heads
        return x.reshape(*x.shape[:-2], self.num_heads, x.shape[-2], d_k)


@multi_head_attention.wrong("swap heads and seq back before the heads are joined.")
class HeadsMergedWithoutTransposing(_MultiHeadAttention):
    """Lays the heads behind one another."""

    def merge(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:-3], x.shape[-2], -1)


@multi_head_attention.wrong("project the values from `value`.")
class ValuesFromTheKeys(_MultiHeadAttention):
    """Projects the keys to values."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        return super().forward(query, key, key, mask)


@multi_head_attention.wrong("apply output_proj to the joined heads.")
class NoOutputProjection(_MultiHeadAttention):
    """Holds an output projection and does not use it."""

    def projected(self, output: Tensor, query: Tensor) -> Tensor:
        return output


@multi_head_attention.wrong(
    "return the attention alone; residual and norm belong to the encoder layer, which adds the "
    "input itself.",
    published="the notes' post, MultiHeadAttention",
)
class ResidualOfTheProjectedQuery(_MultiHeadAttention):
    """Adds the projected query and normalizes, as the notes do."""

    def projected(self, output: Tensor, query: Tensor) -> Tensor:
        total = self.output_proj(output) + self.query_proj(query)
        return functional.layer_norm(total, total.shape[-1:])


@multi_head_attention.wrong(
    "give a mask of a batch an axis for the heads: (batch, q, kv) must not be read as "
    "(num_heads, q, kv) where batch = num_heads.",
    published="the notes' post, MultiHeadAttention",
)
class AnyMaskBroadcasts(_MultiHeadAttention):
    """Lets a mask broadcast as it comes."""

    def over_heads(self, mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return mask


@multi_head_attention.wrong(
    "read a mask of two axes as (q, kv), also where there are as many sequences as queries."
)
class TwoAxesReadAsBatchAndKey(_MultiHeadAttention):
    """Takes a mask of two axes for one row a sequence."""

    def over_heads(self, mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
        if mask.ndim == 2 and query.ndim == 3 and mask.shape[0] == query.shape[0]:
            mask = mask[:, None, :]
        return super().over_heads(mask, query, key)


@multi_head_attention.wrong(
    "drop in training only: pass the training flag.",
    published="torch.nn.functional.scaled_dot_product_attention drops whenever dropout_p is not 0: "
    "MONAI 1.6.1, monai/networks/blocks/selfattention.py",
)
class DropoutInEvaluation(_MultiHeadAttention):
    """Drops whether it trains or not."""

    def drop(self, weights: Tensor) -> Tensor:
        return functional.dropout(weights, self.dropout)


@multi_head_attention.wrong("drop attention weights in training.")
class DropoutIgnored(_MultiHeadAttention):
    """Takes the argument and does not use it."""

    def drop(self, weights: Tensor) -> Tensor:
        return weights


@multi_head_attention.wrong(
    "refuse num_heads that do not divide d_model with a ValueError: an assert is gone under "
    "python -O.",
    published="the notes' post, MultiHeadAttention, under python -O",
)
class HeadsNotChecked(_MultiHeadAttention):
    """Cuts a width that the heads do not divide into other pieces."""

    def require(self, d_model: int, num_heads: int) -> None:
        pass

    def split(self, x: Tensor) -> Tensor:
        d_k = x.shape[-1] // self.num_heads
        seq = x.shape[-2] * x.shape[-1] // (self.num_heads * d_k)
        return x.reshape(*x.shape[:-2], seq, self.num_heads, d_k).transpose(-3, -2)


@multi_head_attention.wrong(
    "reshape to (..., seq, num_heads, d_k) with each size given: -1 is ambiguous in an empty "
    "batch.",
    published="the notes' post, MultiHeadAttention",
)
class LengthGuessed(_MultiHeadAttention):
    """Reshapes with -1 for the length, which is any number where there are no elements."""

    def split(self, x: Tensor) -> Tensor:
        d_k = x.shape[-1] // self.num_heads
        return x.reshape(*x.shape[:-2], -1, self.num_heads, d_k).transpose(-3, -2)


@multi_head_attention.wrong(
    "give query, key and value projections biases, unless bias=False.",
    published="the notes' post, MultiHeadAttention",
)
class ProjectionsWithoutBiases(_MultiHeadAttention):
    """Has no biases in the projections of query, key and value, as the notes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for projection in (self.query_proj, self.key_proj, self.value_proj):
            projection.register_parameter("bias", None)


@multi_head_attention.wrong("with bias=False, have no biases.", name="bias=False ignored")
class BiasAlways(_MultiHeadAttention):
    """Takes the argument `bias` and has biases all the same."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__(d_model, num_heads, dropout)


@multi_head_attention.wrong(
    "use what the mask holds: that there is one does not make it causal.",
    name="any mask taken for causal",
    published="whisper 20250625, whisper/model.py, MultiHeadAttention.qkv_attention",
)
class AnyMaskIsCausal(_MultiHeadAttention):
    """Lets each query see the keys up to its own place, whatever the mask holds."""

    def over_heads(self, mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return mask.new_ones(query.shape[-2], key.shape[-2]).tril()


@multi_head_attention.wrong("project the queries with query_proj, and the keys with key_proj.")
class KeyBeforeQuery(_MultiHeadAttention):
    """Exchanges the projections of queries and keys."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        self.query_proj, self.key_proj = self.key_proj, self.query_proj
        try:
            return super().forward(query, key, value, mask)
        finally:
            self.query_proj, self.key_proj = self.key_proj, self.query_proj


@multi_head_attention.wrong("drop attention weights alone; the layer around it drops the result.")
class ResultDroppedToo(_MultiHeadAttention):
    """Drops the result as well as the weights."""

    def projected(self, output: Tensor, query: Tensor) -> Tensor:
        projected = super().projected(output, query)
        return functional.dropout(projected, self.dropout, self.training)


@multi_head_attention.wrong(
    "leave the projections as nn.Linear draws them.",
    name="initialized as nn.MultiheadAttention",
    published="torch, nn.MultiheadAttention, where it is meant",
)
class InitializedByXavier(_MultiHeadAttention):
    """Starts from biases of zeros, and from weights within other bounds."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__(d_model, num_heads, dropout, bias)
        for projection in (self.query_proj, self.key_proj, self.value_proj, self.output_proj):
            nn.init.xavier_uniform_(projection.weight)
            if projection.bias is not None:
                nn.init.zeros_(projection.bias)


@multi_head_attention.wrong("drop nothing unless dropout is given.", name="drops by default")
class DropsByDefault(_MultiHeadAttention):
    """Has another default for dropout."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, bias: bool = True
    ) -> None:
        super().__init__(d_model, num_heads, dropout, bias)
