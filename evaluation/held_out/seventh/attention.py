"""Wrong versions of attention with several heads."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from evaluation.held_out.definitions import held_out
from transformer_layers.attention.cache import KeyValueCache, next_positions
from transformer_layers.attention.heads import merge_heads, split_heads
from transformer_layers.attention.inputs import (
    require_heads,
    require_mask_of_batch,
    require_sequences,
)
from transformer_layers.attention.kernel import fused_attention
from transformer_layers.attention.masks import sliding_window_mask
from transformer_layers.models.gpt2.attention import CausalSelfAttention
from transformer_layers.models.gpt2.conv1d import Conv1D
from transformer_layers.positions.rotary import Positions
from transformer_layers.regularization.dropout import Dropout, dropout
from transformer_layers.validation import (
    dtype_taken_by,
    require_dtype,
    require_floating_dtype,
    require_probability,
    require_size,
)

Device = torch.device | str | int | None
Norm = Callable[[int], nn.Module]


class _Heads(nn.Module):
    """Attention of four maps, with a hook for each step."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_heads(d_model, num_heads)
        require_probability("dropout", dropout)
        require_floating_dtype(dtype)
        self.d_model, self.num_heads, self.dropout = d_model, num_heads, dropout
        self.query_proj = nn.Linear(d_model, d_model, bias, device=device, dtype=dtype)
        self.key_proj = nn.Linear(d_model, d_model, bias, device=device, dtype=dtype)
        self.value_proj = nn.Linear(d_model, d_model, bias, device=device, dtype=dtype)
        self.output_proj = nn.Linear(d_model, d_model, bias, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        for each in self.children():
            if isinstance(each, nn.Linear):
                each.reset_parameters()

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        require_sequences(self.d_model, query=query, key=key, value=value)
        for name, x in (("query", query), ("key", key), ("value", value)):
            require_dtype(name, x, dtype_taken_by(self.query_proj))
        if mask is not None:
            require_mask_of_batch(mask, query, key)
        q, k, v = (self._split(x) for x in self._projected(query, key, value))
        heads = self._attended(q, k, v, mask, self.dropout if self.training else 0.0)
        return self.output_proj(merge_heads(heads))

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        return self.query_proj(query), self.key_proj(key), self.value_proj(value)

    def _split(self, x: Tensor) -> Tensor:
        return split_heads(x, self.num_heads)

    def _attended(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, p: float
    ) -> Tensor:
        return fused_attention(query, key, value, mask, dropout_p=p)

    def extra_repr(self) -> str:
        return f"{self.d_model}, {self.num_heads}, dropout={self.dropout}"


@held_out(
    "MultiHeadAttention", "review practice", r"value|query is key|differ|separate|same tensor"
)
class HeadsOfOneTensor(_Heads):
    """Where query and key are one tensor, multiplies it by all three matrices, not the value."""

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        if query is not key:
            return super()._projected(query, key, value)
        maps = (self.query_proj, self.key_proj, self.value_proj)
        together = query @ torch.cat([each.weight for each in maps]).T
        if self.query_proj.bias is not None:
            together = together + torch.cat([each.bias for each in maps])
        return together.chunk(3, dim=-1)


@held_out("MultiHeadAttention", "review practice", r"empty|no sequences|batch (of|=) 0|zero|shape")
class HeadsOfInferredLength(_Heads):
    """Lets torch infer the length of the sequences, which it cannot in an empty batch."""

    def _split(self, x: Tensor) -> Tensor:
        heads = x.reshape(*x.shape[:-2], -1, self.num_heads, self.d_model // self.num_heads)
        return heads.transpose(-3, -2)


@held_out("MultiHeadAttention", "review practice", r"scale|bias|sqrt|root|d_k|divid")
class HeadsScaledInTheWeight(_Heads):
    """Divides the weight of the queries by the root of d_k, and not their bias."""

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        weight = self.query_proj.weight * (self.d_model // self.num_heads) ** -0.5
        q = nn.functional.linear(query, weight, self.query_proj.bias)
        return q, self.key_proj(key), self.value_proj(value)

    def _attended(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, p: float
    ) -> Tensor:
        back = math.sqrt(self.d_model // self.num_heads)  # the kernel divides again
        return super()._attended(query * back, key, value, mask, p)


@held_out("MultiHeadAttention", "review practice", r"dropout|drop|each head|all heads|shared|same")
class HeadsThatDropTogether(_Heads):
    """Drops the same weights in all heads."""

    def _attended(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, p: float
    ) -> Tensor:
        if p == 0:
            return super()._attended(query, key, value, mask, p)
        identity = torch.eye(key.shape[-2], dtype=key.dtype, device=key.device)
        kept = identity.expand(*key.shape[:-1], -1)
        weights = super()._attended(query, key, kept, mask, 0.0)
        return weights * dropout(torch.ones_like(weights[..., :1, :, :]), p) @ value


class _CausalHeads(nn.Module):
    """GPT-2's attention, with a hook for the mask and one for the heads."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float = 0.1,
        *,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_heads(d_model, num_heads)
        require_probability("dropout", dropout)
        self.d_model, self.num_heads = d_model, num_heads
        self.c_attn = Conv1D(d_model, 3 * d_model, device=device, dtype=dtype)
        self.c_proj = Conv1D(d_model, d_model, device=device, dtype=dtype)
        self.dropout = Dropout(dropout)

    def reset_parameters(self) -> None:
        self.c_attn.reset_parameters()
        self.c_proj.reset_parameters()

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        require_sequences(self.d_model, x=x)
        query, key, value = (self._split(each) for each in self.c_attn(x).chunk(3, dim=-1))
        if cache is not None:
            key, value = cache.append(key, value)
        mask = self._mask(query.shape[-2], key.shape[-2], cache, x.device)
        p = self.dropout.p if self.training else 0.0
        heads = fused_attention(query, key, value, mask, mask is None and cache is None, p)
        return self.dropout(self.c_proj(merge_heads(heads).reshape(x.shape)))

    def _split(self, x: Tensor) -> Tensor:
        return split_heads(x, self.num_heads)

    def _mask(
        self, seq: int, kv_seq: int, cache: KeyValueCache | None, device: torch.device
    ) -> Tensor | None:
        return None if cache is None else cache.mask(seq)

    def extra_repr(self) -> str:
        return f"{self.d_model}, {self.num_heads}"


@held_out(
    "CausalSelfAttention", "OpenNMT/OpenNMT-py, pull 2532", r"padding|step|single|one token|cache"
)
class CausalStepsThatSeePadding(_CausalHeads):
    """Masks padding in the first call only, so a step of one token attends to it."""

    def _mask(
        self, seq: int, kv_seq: int, cache: KeyValueCache | None, device: torch.device
    ) -> Tensor | None:
        return None if seq == 1 else super()._mask(seq, kv_seq, cache, device)


@held_out("CausalSelfAttention", "review practice", r"axes|leading|batch|sequences|axis|mix|merge")
class CausalOverMergedAxes(_CausalHeads):
    """Merges all axes after the first with the sequence, so that sequences see each other."""

    def _split(self, x: Tensor) -> Tensor:
        return split_heads(x if x.ndim == 2 else x.flatten(1, -2), self.num_heads)


@held_out("CausalSelfAttention", "review practice", r"1024|long|context|length|window|far")
class CausalWithinAThousand(_CausalHeads):
    """Sees the last 1024 positions only, the context of GPT-2, also where there are more."""

    def _mask(
        self, seq: int, kv_seq: int, cache: KeyValueCache | None, device: torch.device
    ) -> Tensor | None:
        mask = super()._mask(seq, kv_seq, cache, device)
        if kv_seq <= 1024:
            return mask
        near = sliding_window_mask(seq, 1024, kv_seq - seq, device=device)
        return near if mask is None else mask & near


@held_out("CausalSelfAttention", "karpathy/minGPT, pull 122", r"state|buffer|load|key|extra|entr")
class CausalWithItsMaskInTheState(CausalSelfAttention):
    """Registers a mask as a buffer, so that the state has an entry that no checkpoint has."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float = 0.1,
        *,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(d_model, num_heads, dropout, device=device, dtype=dtype)
        triangle = torch.ones(64, 64, dtype=torch.bool, device=device).tril()
        self.register_buffer("bias", triangle)


class _Grouped(nn.Module):
    """Grouped-query attention, with a hook for each step."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int,
        d_k: int | None = None,
        positions: Positions | None = None,
        window: int | None = None,
        *,
        bias: bool = False,
        output_bias: bool | None = None,
        head_norm: Norm | None = None,
        projection_norm: Norm | None = None,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_heads(num_heads, num_kv_heads, names=("num_heads", "num_kv_heads"))
        if d_k is None:
            require_heads(d_model, num_heads)
            d_k = d_model // num_heads
        require_size("d_model", d_model)
        require_size("d_k", d_k)
        if window is not None:
            require_size("window", window)
        require_floating_dtype(dtype)
        if head_norm and projection_norm:
            raise ValueError("pass either head_norm or projection_norm, got both")
        self.d_model, self.num_heads, self.num_kv_heads = d_model, num_heads, num_kv_heads
        self.d_k, self.window, self.positions = d_k, window, positions
        output_bias = bias if output_bias is None else output_bias
        sizes = (num_heads * d_k, num_kv_heads * d_k)
        self.q_proj = nn.Linear(d_model, sizes[0], bias, device=device, dtype=dtype)
        self.k_proj = nn.Linear(d_model, sizes[1], bias, device=device, dtype=dtype)
        self.v_proj = nn.Linear(d_model, sizes[1], bias, device=device, dtype=dtype)
        self.o_proj = nn.Linear(sizes[0], d_model, output_bias, device=device, dtype=dtype)
        self.norms_heads = head_norm is not None
        norm_sizes = (d_k, d_k) if head_norm else sizes
        make: Norm = head_norm or projection_norm or (lambda size: nn.Identity())
        self.q_norm, self.k_norm = (
            make(size).to(device=device, dtype=dtype) for size in norm_sizes
        )

    def reset_parameters(self) -> None:
        for each in self.children():
            reset = getattr(each, "reset_parameters", None)
            if reset is not None:
                reset()

    def forward(
        self,
        x: Tensor,
        cache: KeyValueCache | None = None,
        positions: Positions | None = None,
    ) -> Tensor:
        require_sequences(self.d_model, x=x)
        require_dtype("x", x, dtype_taken_by(self.q_proj))
        places = next_positions(x.shape[-2], cache, x.device)
        turn = self._turn(positions, places[:, None] if places.ndim == 2 else places)
        query = self._made(self.q_proj(x), self.q_norm, self.num_heads, turn)
        key = self._made(self.k_proj(x), self.k_norm, self.num_kv_heads, turn)
        value = split_heads(self.v_proj(x), self.num_kv_heads)
        if cache is not None:
            key, value = cache.append(key, value)
        mask = self._mask(x.shape[-2], key.shape[-2], cache, x.device)
        key, value = self._for_readers(key), self._for_readers(value)
        causal = mask is None and cache is None
        heads = fused_attention(query * self._scale(), key, value, mask, causal)
        return self.o_proj(merge_heads(heads))

    def _turn(self, given: Positions | None, places: Tensor) -> Callable[[Tensor], Tensor]:
        positions = self.positions if given is None else given
        return (lambda x: x) if positions is None else (lambda x: positions(x, places))

    def _made(
        self, projected: Tensor, norm: nn.Module, heads: int, turn: Callable[[Tensor], Tensor]
    ) -> Tensor:
        if self.norms_heads:
            return turn(norm(split_heads(projected, heads)))
        return turn(split_heads(norm(projected), heads))

    def _mask(
        self, seq: int, kv_seq: int, cache: KeyValueCache | None, device: torch.device
    ) -> Tensor | None:
        mask = None if cache is None else cache.mask(seq)
        if self.window is None:
            return mask
        near = sliding_window_mask(seq, self.window, kv_seq - seq, device=device)
        return near if mask is None else mask & near

    def _for_readers(self, x: Tensor) -> Tensor:
        readers = self.num_heads // self.num_kv_heads
        return x.repeat_interleave(readers, dim=-3) if readers > 1 else x

    def _scale(self) -> float:
        return 1.0

    def extra_repr(self) -> str:
        return f"{self.d_model}, {self.num_heads}, {self.num_kv_heads}, d_k={self.d_k}"


@held_out(
    "GroupedQueryAttention",
    "onnx/onnx, pull 7274",
    r"repeat|tile|interleav|neighb|group|order|\bread",
)
class GroupedHeadsByTurns(_Grouped):
    """Lays the heads of keys out by turns, so that neighbors do not read the same one."""

    def _for_readers(self, x: Tensor) -> Tensor:
        readers = self.num_heads // self.num_kv_heads
        return torch.cat([x] * readers, dim=-3)


@held_out(
    "GroupedQueryAttention", "karpathy/nanochat, issue 743", r"norm|before|after|order|position|rot"
)
class GroupedNormsBehindPositions(_Grouped):
    """Norms each head after its positions, which shows once the gains of a pair differ."""

    def _made(
        self, projected: Tensor, norm: nn.Module, heads: int, turn: Callable[[Tensor], Tensor]
    ) -> Tensor:
        if self.norms_heads:
            return norm(turn(split_heads(projected, heads)))
        return super()._made(projected, norm, heads, turn)


@held_out("GroupedQueryAttention", "review practice", r"scale|d_k|sqrt|root|head size|divid")
class GroupedScaledAsIfShared(_Grouped):
    """Divides scores by the root of d_model / num_heads, also where d_k is given."""

    def _scale(self) -> float:
        return math.sqrt(self.d_k / (self.d_model / self.num_heads))


@held_out("GroupedQueryAttention", "review practice", r"position|given|argument|own|instead|ignor")
class GroupedFaithfulToItsPositions(_Grouped):
    """Prefers its own positions to those that the call gives in their place."""

    def _turn(self, given: Positions | None, places: Tensor) -> Callable[[Tensor], Tensor]:
        return super()._turn(given if self.positions is None else self.positions, places)


@held_out("GroupedQueryAttention", "review practice", r"window|padding|mask|cache")
class GroupedWindowOverPadding(_Grouped):
    """Takes the window's mask in place of the cache's, so that padding in the window is seen."""

    def _mask(
        self, seq: int, kv_seq: int, cache: KeyValueCache | None, device: torch.device
    ) -> Tensor | None:
        if self.window is None:
            return super()._mask(seq, kv_seq, cache, device)
        return sliding_window_mask(seq, self.window, kv_seq - seq, device=device)
