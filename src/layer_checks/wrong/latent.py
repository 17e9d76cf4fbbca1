"""Known wrong versions of `MultiHeadLatentAttention`."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.checks.latent import multi_head_latent_attention
from layer_checks.wrong import attention
from transformer_layers import LatentCache, LlamaRMSNorm


@multi_head_latent_attention.right_otherwise
class _Latent(nn.Module):
    """A right one in small steps, of which each wrong version changes one.

    Behind what a cache holds it is computed in the latents, else with keys and values.
    """

    bias = False

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        kv_rank: int,
        d_nope: int,
        d_rope: int,
        d_v: int | None = None,
        q_rank: int | None = None,
        positions: Any = None,
        scale: float | None = None,
    ) -> None:
        super().__init__()
        self.require(d_rope)
        self.d_model, self.num_heads, self.kv_rank = d_model, num_heads, kv_rank
        self.d_nope, self.d_rope = d_nope, self.width(d_nope, d_rope)
        self.d_v, self.q_rank = self.value_width(d_nope, d_v), q_rank
        self.positions, self.scale = positions, self.scale_of(scale)
        wide, width = num_heads * (d_nope + self.d_rope), d_nope + self.d_v
        if q_rank is None:
            self.q_proj = nn.Linear(d_model, wide, bias=self.bias)
        else:
            self.q_a_proj = nn.Linear(d_model, q_rank, bias=self.bias)
            self.q_a_layernorm = LlamaRMSNorm(q_rank)
            self.q_b_proj = nn.Linear(q_rank, wide, bias=self.bias)
        turned = self.turned_keys() * self.d_rope
        self.kv_a_proj_with_mqa = nn.Linear(d_model, kv_rank + turned, bias=self.bias)
        self.kv_a_layernorm = LlamaRMSNorm(kv_rank)
        self.kv_b_proj = nn.Linear(kv_rank, num_heads * width, bias=self.bias)
        self.o_proj = nn.Linear(num_heads * self.d_v, d_model, bias=self.bias)

    def require(self, d_rope: int) -> None:
        if d_rope % 2:
            raise ValueError(f"features turn in pairs, got {d_rope} of them")

    def width(self, d_nope: int, d_rope: int) -> int:
        return d_rope

    def value_width(self, d_nope: int, d_v: int | None) -> int:
        return d_v or d_nope

    def scale_of(self, given: float | None) -> float:
        return (self.d_nope + self.d_rope) ** -0.5 if given is None else given

    def turned_keys(self) -> int:
        return 1

    def forward(self, x: Tensor, cache: LatentCache | None = None) -> Tensor:
        past = 0 if cache is None else cache.length
        padding = None if cache is None else cache.padding
        places = self.places(x, past)
        if padding is not None:
            places = (places - padding[:, None]).clamp(min=0)[:, None]
        query = self.queries(x).unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)
        plain, turned = self.parts(query)
        latent, key = self.latent_and_key(self.kv_a_proj_with_mqa(x))
        latent = self.normed(latent)[..., None, :, :]
        key = key.unflatten(-1, (self.turned_keys(), -1)).transpose(-3, -2)
        plain, turned, latent, key = self.placed(plain, turned, latent, key, places)
        if cache is not None:
            rows, _ = cache.append(torch.cat([latent, key], dim=-1))
            latent, key = rows.split([self.kv_rank, self.d_rope], dim=-1)
        mask = self.mask(x.shape[-2], past).to(x.device)
        if padding is not None:
            mask = mask & (torch.arange(key.shape[-2]) >= padding[:, None, None])[:, None]
        attend = self.absorbed if past else self.naive
        heads = attend(plain, turned, latent, key, mask)
        return self.o_proj(heads.transpose(-3, -2).flatten(-2))

    def queries(self, x: Tensor) -> Tensor:
        if self.q_rank is None:
            return self.q_proj(x)
        return self.q_b_proj(self.normed_query(self.q_a_proj(x)))

    def normed_query(self, latent: Tensor) -> Tensor:
        return self.q_a_layernorm(latent)

    def normed(self, latent: Tensor) -> Tensor:
        return self.kv_a_layernorm(latent)

    def parts(self, query: Tensor) -> tuple[Tensor, Tensor]:
        return query[..., : self.d_nope], query[..., self.d_nope :]

    def latent_and_key(self, made: Tensor) -> tuple[Tensor, Tensor]:
        return made[..., : self.kv_rank], made[..., self.kv_rank :]

    def places(self, x: Tensor, past: int) -> Tensor:
        return torch.arange(past, past + x.shape[-2], device=x.device)

    def placed(
        self, plain: Tensor, turned: Tensor, latent: Tensor, key: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return plain, self.turn(turned, places), latent, self.turn(key, places)

    def turn(self, x: Tensor, places: Tensor) -> Tensor:
        """Turns neighbours, or what the positions that are given turn."""
        if self.positions is not None:
            return self.positions(x, places)
        pairs = x.shape[-1] // 2
        exponents = torch.arange(pairs, dtype=torch.float64, device=x.device) / pairs
        angles = places[..., None] * 10_000.0**-exponents
        return self.turned_by(x, angles)

    def turned_by(self, x: Tensor, angles: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        cos, sin = angles.cos().to(wide.dtype), angles.sin().to(wide.dtype)
        pairs = wide[..., : 2 * angles.shape[-1]].unflatten(-1, (-1, 2))
        first, second = pairs.unbind(-1)
        turned = torch.stack([first * cos - second * sin, second * cos + first * sin], dim=-1)
        turned = torch.cat([turned.flatten(-2), wide[..., 2 * angles.shape[-1] :]], dim=-1)
        return turned.to(x.dtype)

    def mask(self, seq: int, past: int) -> Tensor:
        return torch.ones(seq, past + seq, dtype=torch.bool).tril(past)

    def naive(
        self, plain: Tensor, turned: Tensor, latent: Tensor, key: Tensor, mask: Tensor
    ) -> Tensor:
        made = self.kv_b_proj(latent.squeeze(-3))
        of_latent, value = self.keys_and_values(made)
        key = torch.cat([of_latent, key.expand(*of_latent.shape[:-1], -1)], dim=-1)
        query = torch.cat([plain, turned], dim=-1)
        return self.weights(query * self.beyond(query), key, mask) @ value

    def keys_and_values(self, made: Tensor) -> tuple[Tensor, Tensor]:
        made = made.unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)
        return made[..., : self.d_nope], made[..., self.d_nope :]

    def absorbed(
        self, plain: Tensor, turned: Tensor, latent: Tensor, key: Tensor, mask: Tensor
    ) -> Tensor:
        of_keys, of_values = self.absorbed_weights(self.kv_b_proj.weight)
        query = torch.cat([plain @ of_keys, turned], dim=-1)
        rows = torch.cat([latent, key], dim=-1)
        query = query * self.beyond_absorbed(query)
        return self.weights(query, rows, mask) @ latent @ of_values.mT

    def absorbed_weights(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Of each head, that which a query is multiplied by, and that which makes values."""
        weight = weight.unflatten(0, (self.num_heads, -1))
        return weight[:, : self.d_nope], weight[:, self.d_nope :]

    def beyond(self, query: Tensor) -> float:
        """The scale over the root by which the weights divide."""
        return self.scale * math.sqrt(query.shape[-1])

    def beyond_absorbed(self, query: Tensor) -> float:
        return self.beyond(query)

    def weights(self, query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
        return attention.right_weights(query, key, mask)


@multi_head_latent_attention.wrong(
    "in the latents, too, scale by the root of d_nope + d_rope: the products are those of the "
    "heads' keys.",
    name="scale of the latent's width",
    published="https://github.com/ollama/ollama/pull/13893",
)
class ScaleOfTheLatent(_Latent):
    """Divides by the root of kv_rank + d_rope where it computes in the latents."""

    def beyond_absorbed(self, query: Tensor) -> float:
        return 1.0


@multi_head_latent_attention.wrong(
    "count the turned features as well: a key has d_nope + d_rope.", name="scale without d_rope"
)
class ScaleWithoutTurned(_Latent):
    """Divides by the root of d_nope."""

    def scale_of(self, given: float | None) -> float:
        return self.d_nope**-0.5 if given is None else given


@multi_head_latent_attention.wrong(
    "divide scores by the root of a key's own width, which is not d_model / num_heads.",
    name="scale of d_model / num_heads",
    published="https://github.com/NVIDIA/Megatron-LM/issues/1501",
)
class ScaleOfAnotherWidth(_Latent):
    """Divides by the root of d_model / num_heads."""

    def scale_of(self, given: float | None) -> float:
        return (self.d_model / self.num_heads) ** -0.5 if given is None else given


@multi_head_latent_attention.wrong(
    "divide by the root, do not multiply by it.",
    published="https://github.com/AI-Hypercomputer/maxtext/issues/1370",
)
class ScaleInverted(_Latent):
    """Multiplies by the root of d_nope + d_rope."""

    def scale_of(self, given: float | None) -> float:
        return (self.d_nope + self.d_rope) ** 0.5 if given is None else given


@multi_head_latent_attention.wrong(
    "take the scale that is given: models whose positions were scaled have another.",
    published="https://github.com/huggingface/transformers/pull/47435",
)
class ScaleIgnored(_Latent):
    """Scales by the root, whatever is asked for."""

    def scale_of(self, given: float | None) -> float:
        return super().scale_of(None)


@multi_head_latent_attention.wrong("norm the latent before keys and values are made of it.")
class LatentNotNormed(_Latent):
    """Leaves out the norm of keys' and values' latent."""

    def normed(self, latent: Tensor) -> Tensor:
        return latent


@multi_head_latent_attention.wrong("norm the latent of queries, too.")
class QueriesNotNormed(_Latent):
    """Leaves out the norm of queries' latent."""

    def normed_query(self, latent: Tensor) -> Tensor:
        return latent


@multi_head_latent_attention.wrong("norm the latent alone: the turned key is not in it.")
class TurnedKeyNormed(_Latent):
    """Norms the turned key with the latent."""

    def latent_and_key(self, made: Tensor) -> tuple[Tensor, Tensor]:
        latent, key = super().latent_and_key(made)
        return latent, key * torch.rsqrt(made.square().mean(-1, keepdim=True) + 1e-6)


@multi_head_latent_attention.wrong(
    "make one turned key for all heads: each by itself is what a cache would have to hold.",
    name="turned key for each head",
)
class KeyForEachHead(_Latent):
    """Makes a turned key for each head."""

    def turned_keys(self) -> int:
        return self.num_heads


@multi_head_latent_attention.wrong(
    "turn no latent: between the two matrices that are absorbed there may be no position."
)
class LatentTurned(_Latent):
    """Turns the beginning of the latent, too."""

    def placed(
        self, plain: Tensor, turned: Tensor, latent: Tensor, key: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        plain, turned, latent, key = super().placed(plain, turned, latent, key, places)
        first = self.turn(latent[..., : self.d_rope], places)
        return plain, turned, torch.cat([first, latent[..., self.d_rope :]], dim=-1), key


@multi_head_latent_attention.wrong(
    "turn the last part of a query alone: the plain part meets keys that no position turned."
)
class PlainPartTurned(_Latent):
    """Turns the plain part of queries, too."""

    def placed(
        self, plain: Tensor, turned: Tensor, latent: Tensor, key: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        positions, self.positions = self.positions, None
        first = self.turn(plain, places)
        self.positions = positions
        return first, *super().placed(plain, turned, latent, key, places)[1:]


@multi_head_latent_attention.wrong(
    "turn the parts that are to be turned: without them no score knows an order.",
    name="not turned",
    published="https://github.com/kube-dojo/kube-dojo.github.io/pull/1541",
)
class NotTurned(_Latent):
    """Has the parts, and does not turn them."""

    def turn(self, x: Tensor, places: Tensor) -> Tensor:
        return x


@multi_head_latent_attention.wrong("turn the key, too: scores depend on distances then.")
class KeyNotTurned(_Latent):
    """Turns queries alone."""

    def placed(
        self, plain: Tensor, turned: Tensor, latent: Tensor, key: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return plain, self.turn(turned, places), latent, key


@multi_head_latent_attention.wrong(
    "take angles in the order of the pairs: both features of a pair turn by one.",
    name="angles of halves for neighbours",
    published="https://github.com/NVIDIA/Megatron-LM/issues/3900",
)
class AnglesOfHalves(_Latent):
    """Turns neighbours by angles that stand as those of halves do."""

    def turned_by(self, x: Tensor, angles: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        both = torch.cat([angles, angles], dim=-1)
        first, second = wide.unflatten(-1, (-1, 2)).unbind(-1)
        across = torch.stack([-second, first], dim=-1).flatten(-2)
        turned = wide * both.cos().to(wide.dtype) + across * both.sin().to(wide.dtype)
        return turned.to(x.dtype)


@multi_head_latent_attention.wrong(
    "count positions from what the cache holds: the next token does not stand at 0.",
    name="positions from 0 after a cache",
)
class PositionsFromZero(_Latent):
    """Counts from 0 in each call."""

    def places(self, x: Tensor, past: int) -> Tensor:
        return torch.arange(x.shape[-2], device=x.device)


@multi_head_latent_attention.wrong("call the positions that are given.")
class PositionsIgnored(_Latent):
    """Turns by its own angles, whatever is given."""

    def turn(self, x: Tensor, places: Tensor) -> Tensor:
        given, self.positions = self.positions, None
        turned = super().turn(x, places)
        self.positions = given
        return turned


@multi_head_latent_attention.wrong(
    "the width of what is turned is an argument of its own, not that of the plain part.",
    name="d_nope for d_rope",
    published="https://github.com/junfanz1/MiniGPT-and-DeepSeek-MLA-Multi-Head-Latent-Attention/"
    "issues/1",
)
class PlainWidthForTurned(_Latent):
    """Turns as many features as it does not turn."""

    def width(self, d_nope: int, d_rope: int) -> int:
        return d_nope


@multi_head_latent_attention.wrong("give values the width that is asked for.", name="d_v ignored")
class ValueWidthIgnored(_Latent):
    """Makes values as wide as the plain part of keys."""

    def value_width(self, d_nope: int, d_v: int | None) -> int:
        return d_nope


@multi_head_latent_attention.wrong(
    "a value is as wide as the plain part of a key unless it is told.", name="d_v of whole keys"
)
class ValuesAsWideAsKeys(_Latent):
    """Makes values as wide as whole keys where no width is given."""

    def value_width(self, d_nope: int, d_v: int | None) -> int:
        return d_v or d_nope + self.d_rope


@multi_head_latent_attention.wrong(
    "the plain part of a head's query stands before the turned one.", name="turned part first"
)
class TurnedPartFirst(_Latent):
    """Takes the first features of a query for those that are turned."""

    def parts(self, query: Tensor) -> tuple[Tensor, Tensor]:
        return query[..., self.d_rope :], query[..., : self.d_rope]


@multi_head_latent_attention.wrong(
    "the latent stands before the turned key.", name="turned key first"
)
class TurnedKeyFirst(_Latent):
    """Takes the first features for the turned key."""

    def latent_and_key(self, made: Tensor) -> tuple[Tensor, Tensor]:
        return made[..., self.d_rope :], made[..., : self.d_rope]


@multi_head_latent_attention.wrong(
    "cut what is made of a latent into heads first: each has its key and its value side by side.",
    name="keys of all heads before values",
)
class KeysBeforeValues(_Latent):
    """Takes the keys of all heads, and then the values of all."""

    def keys_and_values(self, made: Tensor) -> tuple[Tensor, Tensor]:
        keys = self.num_heads * self.d_nope
        return (
            made[..., :keys].unflatten(-1, (self.num_heads, -1)).transpose(-3, -2),
            made[..., keys:].unflatten(-1, (self.num_heads, -1)).transpose(-3, -2),
        )

    def absorbed_weights(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = weight.tensor_split([self.num_heads * self.d_nope])
        return keys.unflatten(0, (self.num_heads, -1)), values.unflatten(0, (self.num_heads, -1))


@multi_head_latent_attention.wrong(
    "absorb the matrix of each head: the heads are the first axis of its rows, not the last.",
    name="absorbed across heads",
)
class AbsorbedAcrossHeads(_Latent):
    """Takes every third row for a head's where it computes in the latents."""

    def absorbed_weights(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        weight = weight.unflatten(0, (-1, self.num_heads)).transpose(0, 1)
        return weight[:, : self.d_nope], weight[:, self.d_nope :]


@multi_head_latent_attention.wrong(
    "absorb the keys' matrix into queries, and the values' behind what they read.",
    name="absorbed matrices exchanged",
)
class AbsorbedExchanged(_Latent):
    """Takes the last rows of a head's matrix for the keys' where it computes in the latents."""

    def absorbed_weights(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        weight = weight.unflatten(0, (self.num_heads, -1))
        return weight[:, -self.d_nope :], weight[:, : -self.d_nope]


@multi_head_latent_attention.wrong("mask the scores: a position must not see what follows it.")
class NotCausal(_Latent):
    """Lets every position see all others."""

    def mask(self, seq: int, past: int) -> Tensor:
        return torch.ones(seq, past + seq, dtype=torch.bool)


@multi_head_latent_attention.wrong(
    "mask behind a cache as well, where several positions come at once."
)
class NotCausalBehindACache(_Latent):
    """Lets the positions of a later piece see each other."""

    def mask(self, seq: int, past: int) -> Tensor:
        causal = torch.ones(seq, past + seq, dtype=torch.bool)
        return causal if past else causal.tril()


@multi_head_latent_attention.wrong("leave out the biases, unless they are asked for.")
class WithBiases(_Latent):
    """Has biases."""

    bias = True


@multi_head_latent_attention.wrong("refuse a width of which no pairs can be made.")
class OddWidthTaken(_Latent):
    """Takes any width, and leaves the last feature unturned."""

    def require(self, d_rope: int) -> None:
        pass
