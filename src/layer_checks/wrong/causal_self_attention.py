"""Known wrong versions of `CausalSelfAttention`."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.checks.attention import attention_weights
from layer_checks.checks.causal_self_attention import causal_self_attention
from layer_checks.wrong import attention
from layer_checks.wrong.conv1d import OutputSizeFirst
from transformer_layers import Conv1D, KeyValueCache

_NOTES = "the GPT-2 notes, Attention"


@causal_self_attention.right_otherwise
class _CausalSelfAttention(nn.Module):
    """A right one in small steps, of which each wrong version changes one."""

    linear: type[nn.Module] = Conv1D

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.require(d_model, num_heads)
        self.num_heads = num_heads
        self.c_attn = self.linear(d_model, 3 * d_model)
        self.c_proj = self.linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def require(self, d_model: int, num_heads: int) -> None:
        if d_model % num_heads:
            raise ValueError(f"d_model={d_model} is not divisible by num_heads={num_heads}")

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        query, key, value = map(self.split, self.projections(x))
        past = cache.length if cache is not None else 0
        if cache is not None:
            key, value = cache.append(key, value)
        mask = self.mask(x.shape[-2], past).to(x.device)
        if cache is not None and cache.padding is not None:
            begun = torch.arange(mask.shape[-1]) >= cache.padding[:, None, None, None]
            mask = mask & begun.to(x.device)
        weights = self.weights(query, key, mask)
        output = self.merge(self.drop(weights) @ value)
        return self.drop_result(self.c_proj(output))

    def projections(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.c_attn(x).chunk(3, dim=-1)

    def mask(self, seq: int, past: int) -> Tensor:
        return torch.ones(seq, past + seq, dtype=torch.bool).tril(past)

    def weights(self, query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
        return attention.right_weights(query, key, mask)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)

    def merge(self, x: Tensor) -> Tensor:
        return x.transpose(-3, -2).flatten(-2)

    def drop(self, weights: Tensor) -> Tensor:
        return self.dropout(weights)

    def drop_result(self, x: Tensor) -> Tensor:
        return self.dropout(x)


def _with_weights(name: str) -> None:
    """Declares a mistake in the weights, made in every head."""
    (version,) = (each for each in attention_weights.wrong_versions if each.name == name)

    class WrongCausalSelfAttention(_CausalSelfAttention):
        def weights(self, query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
            return version.layer(query, key, mask)

    WrongCausalSelfAttention.__doc__ = version.layer.__doc__
    causal_self_attention.same_mistake(version, WrongCausalSelfAttention)


@causal_self_attention.wrong(
    "mask the scores: a position must not see what follows it. A mask that is only held hides "
    "nothing.",
    published=_NOTES,
)
class NotCausal(_CausalSelfAttention):
    """Lets every position see all others."""

    def mask(self, seq: int, past: int) -> Tensor:
        return torch.ones(seq, past + seq, dtype=torch.bool)

    def reset_parameters(self) -> None:  # for the block that has it as a part
        for part in self.children():
            if isinstance(part, Conv1D):
                part.reset_parameters()


_with_weights("not scaled")


@causal_self_attention.wrong("mask the scores, and divide them by √d_k.", published=_NOTES)
class NeitherCausalNorScaled(NotCausal):
    """Does neither, as the notes' listing once its arguments are put in order."""

    def weights(self, query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
        return attention.not_scaled(query, key, mask)


_with_weights("divided by d_k")


@causal_self_attention.wrong(
    "divide by the root of the width of one head, d_k = d_model / num_heads.",
    name="divided by the root of d_model",
)
class RootOfDModel(_CausalSelfAttention):
    """Divides by the root of the model's width."""

    def weights(self, query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
        return super().weights(query / math.sqrt(self.num_heads), key, mask)


_with_weights("softmax over the queries")
_with_weights("mask after the softmax")
_with_weights("mask added")
_with_weights("-10,000 for -inf")


@causal_self_attention.wrong("let no position attend to the next one.")
class OneAhead(_CausalSelfAttention):
    """Lets each position see the next one."""

    def mask(self, seq: int, past: int) -> Tensor:
        return torch.ones(seq, past + seq, dtype=torch.bool).tril(past + 1)


@causal_self_attention.wrong(
    "let rows be queries: row i allows the columns up to i (tril, not triu)."
)
class MaskTransposed(_CausalSelfAttention):
    """Lets each position see itself and what follows."""

    def mask(self, seq: int, past: int) -> Tensor:
        return torch.ones(seq, past + seq, dtype=torch.bool).triu(past)


@causal_self_attention.wrong(
    "with a past, the last query must see every key: shift the diagonal by the past.",
    published="torch, is_causal=True of scaled_dot_product_attention with fewer queries than keys",
)
class AlignedAtTheTopLeft(_CausalSelfAttention):
    """Counts from the first key where there is a past, as is_causal=True does."""

    def mask(self, seq: int, past: int) -> Tensor:
        return torch.ones(seq, past + seq, dtype=torch.bool).tril()


@causal_self_attention.wrong("swap heads and seq back before the heads are joined.")
class HeadsMergedWithoutTransposing(_CausalSelfAttention):
    """Lays the heads behind one another."""

    def merge(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:-3], x.shape[-2], -1)


@causal_self_attention.wrong("cut c_attn's output into query, key and value, in this order.")
class KeyBeforeQuery(_CausalSelfAttention):
    """Takes the parts of `c_attn` in another order."""

    def projections(self, x: Tensor) -> tuple[Tensor, ...]:
        key, query, value = self.c_attn(x).chunk(3, dim=-1)
        return query, key, value


@causal_self_attention.wrong(
    "give Conv1D the input size first; a Conv1D(nf, nx) takes the output size first.",
    published=_NOTES,
)
class SizesInTheWrongOrder(_CausalSelfAttention):
    """Gives its sizes to a linear layer that takes them in the other order, as the notes do."""

    linear = OutputSizeFirst


@causal_self_attention.wrong(
    "make the mask when it is needed, or register it with persistent=False.",
    published=f"{_NOTES}; graykode/gpt-2-Pytorch, GPT2/model.py",
)
class MaskInTheStateDict(_CausalSelfAttention):
    """Keeps the mask as a buffer, which every checkpoint then holds."""

    bias: Tensor

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.1) -> None:
        super().__init__(d_model, num_heads, dropout)
        self.register_buffer("bias", torch.ones(64, 64).tril())

    def mask(self, seq: int, past: int) -> Tensor:
        return self.bias[past : past + seq, : past + seq].bool()


@causal_self_attention.wrong("apply dropout to the result of c_proj too.", published=_NOTES)
class ResultNotDropped(_CausalSelfAttention):
    """Drops the weights alone."""

    def drop_result(self, x: Tensor) -> Tensor:
        return x


@causal_self_attention.wrong(
    "drop the weights, and the result of c_proj.", published="graykode/gpt-2-Pytorch, GPT2/model.py"
)
class DropoutIgnored(_CausalSelfAttention):
    """Takes the argument and does not use it."""

    def drop(self, weights: Tensor) -> Tensor:
        return weights

    def drop_result(self, x: Tensor) -> Tensor:
        return x


@causal_self_attention.wrong("drop in training only: pass the training flag.")
class DropoutInEvaluation(_CausalSelfAttention):
    """Drops whether it trains or not."""

    def drop(self, weights: Tensor) -> Tensor:
        return functional.dropout(weights, self.dropout.p)


@causal_self_attention.wrong(
    "count axes from the end, so that x may have any leading axes.", published=_NOTES
)
class BatchAxisNeeded(_CausalSelfAttention):
    """Counts axes from the front, as the notes do."""

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).permute(0, 2, 1, 3)


@causal_self_attention.wrong("attend to the keys and values of the cache.")
class CacheIgnored(_CausalSelfAttention):
    """Takes a cache and starts anew all the same."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        return super().forward(x)


@causal_self_attention.wrong(
    "refuse num_heads that do not divide d_model with a ValueError, at construction.",
    published=_NOTES,
)
class HeadsNotChecked(_CausalSelfAttention):
    """Fails in its first call only."""

    def require(self, d_model: int, num_heads: int) -> None:
        pass


@causal_self_attention.wrong(
    "draw the initial weights with standard deviation 0.02, and let biases be zeros.",
    name="initialized as nn.Linear",
)
class InitializedAsLinear(_CausalSelfAttention):
    """Starts from weights whose size depends on the width."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.1) -> None:
        super().__init__(d_model, num_heads, dropout)
        for weight in (self.c_attn.get_parameter("weight"), self.c_proj.get_parameter("weight")):
            nn.init.kaiming_uniform_(weight, a=math.sqrt(5), mode="fan_out")
