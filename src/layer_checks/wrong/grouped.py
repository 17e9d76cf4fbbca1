"""Known wrong versions of `GroupedQueryAttention`."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.checks.grouped import grouped_query_attention
from layer_checks.wrong import attention
from transformer_layers import KeyValueCache, RotaryPositions


def _turned(x: Tensor, angles: Tensor) -> Tensor:
    """The features in halves, turned by angles of one for each pair."""
    first, second = x.chunk(2, dim=-1)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


@grouped_query_attention.right_otherwise
class _Grouped(nn.Module):
    """A right one in small steps, of which each wrong version changes one."""

    bias = False

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int,
        d_k: int | None = None,
        positions: Any = None,
        window: int | None = None,
        head_norm: Callable[[int], nn.Module] = nn.Identity,
    ) -> None:
        super().__init__()
        self.require(num_heads, num_kv_heads)
        self.readers = num_heads // num_kv_heads
        self.d_k = self.width(d_model, num_heads, d_k)
        self.positions, self.window = positions, window
        wide, narrow = num_heads * self.d_k, self.heads_of_keys(num_heads, num_kv_heads) * self.d_k
        self.q_proj = nn.Linear(d_model, wide, bias=self.bias)
        self.k_proj = nn.Linear(d_model, narrow, bias=self.bias)
        self.v_proj = nn.Linear(d_model, narrow, bias=self.bias)
        self.o_proj = nn.Linear(wide, d_model, bias=self.bias)
        self.q_norm, self.k_norm = head_norm(self.d_k), head_norm(self.d_k)

    def require(self, num_heads: int, num_kv_heads: int) -> None:
        if num_heads % num_kv_heads:
            raise ValueError(f"{num_kv_heads} heads of keys do not divide {num_heads} of queries")

    def width(self, d_model: int, num_heads: int, d_k: int | None) -> int:
        return d_k or d_model // num_heads

    def heads_of_keys(self, num_heads: int, num_kv_heads: int) -> int:
        return num_kv_heads

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        query, key, value = (
            each(x).unflatten(-1, (-1, self.d_k)).transpose(-3, -2)
            for each in (self.q_proj, self.k_proj, self.v_proj)
        )
        query, key = self.normed(query, key)
        past = cache.length if cache is not None else 0
        padding = self.padding(cache)
        if self.positions is not None:
            places = self.places(x, past)
            if padding is not None:
                places = (places - padding[:, None]).clamp(min=0)[:, None]
            query, key, value = self.placed(query, key, value, places)
        if cache is not None:
            key, value = cache.append(key, value)
        key, value = self.repeated(key), self.repeated(value)
        mask = self.mask(x.shape[-2], past).to(x.device)
        if padding is not None:
            mask = mask & (torch.arange(key.shape[-2]) >= padding[:, None, None])[:, None]
        weights = self.weights(query, key, mask)
        return self.o_proj((weights @ value).transpose(-3, -2).flatten(-2))

    def padding(self, cache: KeyValueCache | None) -> Tensor | None:
        return None if cache is None else cache.padding

    def normed(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        return self.q_norm(query), self.k_norm(key)

    def places(self, x: Tensor, past: int) -> Tensor:
        return torch.arange(past, past + x.shape[-2], device=x.device)

    def placed(
        self, query: Tensor, key: Tensor, value: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        return self.positions(query, places), self.positions(key, places), value

    def repeated(self, x: Tensor) -> Tensor:
        return x.repeat_interleave(self.readers, dim=-3) if x.shape[-3] else x

    def mask(self, seq: int, past: int) -> Tensor:
        causal = torch.ones(seq, past + seq, dtype=torch.bool).tril(past)
        return causal if self.window is None else causal.triu(past - self.window + 1)

    def weights(self, query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
        return attention.right_weights(query, key, mask)


@grouped_query_attention.wrong(
    "let neighboring heads of queries share a head of keys: repeat each, do not tile them all.",
    name="tiled",
    published="https://github.com/onnx/onnx/pull/7274",
)
class Tiled(_Grouped):
    """Gives head h of queries the head h modulo their number of keys."""

    def repeated(self, x: Tensor) -> Tensor:
        return x.repeat(*[1] * (x.ndim - 3), self.readers, 1, 1)


@grouped_query_attention.wrong("read the heads in their order.", name="groups in reverse")
class GroupsInReverse(_Grouped):
    """Gives the first heads of queries the last head of keys."""

    def repeated(self, x: Tensor) -> Tensor:
        return super().repeated(x.flip(-3))


@grouped_query_attention.wrong(
    "divide scores by the root of a head's own width, which need not be d_model / num_heads.",
    name="scale of d_model / num_heads",
    published="https://github.com/InternLM/lmdeploy/pull/2761",
)
class ScaleOfAnotherWidth(_Grouped):
    """Divides by the root of d_model / num_heads."""

    def weights(self, query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
        width = self.q_proj.in_features / (self.q_proj.out_features / self.d_k)
        return super().weights(query * (self.d_k / width) ** 0.5, key, mask)


@grouped_query_attention.wrong(
    "divide by the root of the width of one head, d_k.", name="divided by the root of d_model"
)
class RootOfDModel(_Grouped):
    """Divides by the root of the model's width."""

    def weights(self, query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
        return super().weights(query * (self.d_k / self.q_proj.in_features) ** 0.5, key, mask)


@grouped_query_attention.wrong(
    "make the table of angles for the width of one head, whose pairs have all frequencies from 1 "
    "to nearly 1 / base.",
    name="angles of d_model",
)
class AnglesOfDModel(_Grouped):
    """Turns the pairs of a head by the first angles of a table for the model's width."""

    def placed(
        self, query: Tensor, key: Tensor, value: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        table = RotaryPositions(self.q_proj.in_features, base=self.positions.base)
        frequencies = table.frequencies()[: self.d_k // 2]
        angles = places[..., None].double() * frequencies
        return _turned(query, angles), _turned(key, angles), value


@grouped_query_attention.wrong("take the width of a head that is asked for.", name="d_k ignored")
class WidthIgnored(_Grouped):
    """Has heads of d_model / num_heads features, whatever is asked for."""

    def width(self, d_model: int, num_heads: int, d_k: int | None) -> int:
        return max(d_model // num_heads, 1)


@grouped_query_attention.wrong(
    "make as many heads of keys as are asked for: that is what a cache saves.",
    name="as many keys as queries",
)
class AsManyKeysAsQueries(_Grouped):
    """Makes a head of keys for each of queries."""

    def heads_of_keys(self, num_heads: int, num_kv_heads: int) -> int:
        return num_heads

    def repeated(self, x: Tensor) -> Tensor:
        return x


@grouped_query_attention.wrong("mask the scores: a position must not see what follows it.")
class NotCausal(_Grouped):
    """Lets every position see all others."""

    def mask(self, seq: int, past: int) -> Tensor:
        return torch.ones(seq, past + seq, dtype=torch.bool)


@grouped_query_attention.wrong("hide what lies before the window.")
class WindowIgnored(_Grouped):
    """Takes the argument and hides nothing by it."""

    def mask(self, seq: int, past: int) -> Tensor:
        return torch.ones(seq, past + seq, dtype=torch.bool).tril(past)


@grouped_query_attention.wrong(
    "count the keys with oneself: a window of W has W keys.",
    name="one key more",
    published="https://github.com/huggingface/transformers/issues/39408",
)
class OneKeyMore(_Grouped):
    """Counts the keys besides oneself."""

    def mask(self, seq: int, past: int) -> Tensor:
        causal = torch.ones(seq, past + seq, dtype=torch.bool).tril(past)
        return causal if self.window is None else causal.triu(past - self.window)


@grouped_query_attention.wrong("give queries and keys their positions.")
class PositionsIgnored(_Grouped):
    """Takes the argument and does not call it."""

    def placed(
        self, query: Tensor, key: Tensor, value: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        return query, key, value


@grouped_query_attention.wrong("give values no positions: they are what is handed over.")
class ValuesTurned(_Grouped):
    """Gives values their positions, too."""

    def placed(
        self, query: Tensor, key: Tensor, value: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = super().placed(query, key, value, places)
        return query, key, self.positions(value, places)


@grouped_query_attention.wrong("turn queries and keys, both: scores depend on distances then.")
class KeysNotTurned(_Grouped):
    """Gives queries their positions, and keys none."""

    def placed(
        self, query: Tensor, key: Tensor, value: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        return self.positions(query, places), key, value


@grouped_query_attention.wrong(
    "count positions from what the cache holds: the next token does not stand at 0.",
    name="positions from 0 after a cache",
)
class PositionsFromZero(_Grouped):
    """Counts from 0 in each call."""

    def places(self, x: Tensor, past: int) -> Tensor:
        return torch.arange(x.shape[-2], device=x.device)


@grouped_query_attention.wrong("leave out the biases, unless they are asked for.")
class WithBiases(_Grouped):
    """Has biases."""

    bias = True


@grouped_query_attention.wrong("refuse heads of keys that do not divide those of queries.")
class UnevenHeadsTaken(_Grouped):
    """Takes any number of heads of keys."""

    def require(self, num_heads: int, num_kv_heads: int) -> None:
        pass


@grouped_query_attention.wrong(
    "norm the heads of queries and keys before they are turned: a gain for each feature does not "
    "commute with the rotation.",
    name="norm after the rotation",
    published="https://github.com/karpathy/nanochat/issues/743",
)
class NormAfterTheRotation(_Grouped):
    """Turns the heads and then norms them."""

    def normed(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        return query, key

    def placed(
        self, query: Tensor, key: Tensor, value: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = super().placed(query, key, value, places)
        return self.q_norm(query), self.k_norm(key), value


@grouped_query_attention.wrong("mask what is padding in the cache.")
class PaddingInTheCacheSeen(_Grouped):
    """Sees the positions that are padding, and counts them."""

    def padding(self, cache: KeyValueCache | None) -> Tensor | None:
        return None
