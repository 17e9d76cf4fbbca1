"""Known wrong versions of `soft_capped_attention`."""

import math

import torch
from torch import Tensor

from layer_checks.checks.soft_cap import soft_capped_attention
from transformer_layers.precision import at_least_float32


@soft_capped_attention.right_otherwise
def right_cap(
    query: Tensor, key: Tensor, value: Tensor, cap: float, mask: Tensor | None = None
) -> Tensor:
    """A right one, for wrong versions that err elsewhere."""
    return _attend(_capped(_scores(query, key), cap), value, mask).to(query.dtype)


def _scores(query: Tensor, key: Tensor) -> Tensor:
    scaled = at_least_float32(query) / math.sqrt(query.shape[-1])
    return scaled @ at_least_float32(key).transpose(-2, -1)


def _capped(scores: Tensor, cap: float) -> Tensor:
    if not cap > 0:
        raise ValueError(f"cap must be greater than 0, got {cap}")
    return cap * torch.tanh(scores / cap)


def _attend(scores: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    wide = at_least_float32(value)
    if mask is None:
        return scores.softmax(dim=-1) @ wide
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean, got {mask.dtype}")
    dead = ~mask.any(dim=-1, keepdim=True)
    weights = scores.masked_fill(~(mask | dead), -math.inf).softmax(dim=-1)
    return weights.masked_fill(dead, 0.0) @ wide


@soft_capped_attention.wrong(
    "cap the scores: without it a large score takes all the weight.",
    published="https://github.com/vllm-project/vllm-metal/issues/665",
)
def cap_ignored(
    query: Tensor, key: Tensor, value: Tensor, cap: float, mask: Tensor | None = None
) -> Tensor:
    """Takes the scores as they are."""
    _capped(query, cap)
    return _attend(_scores(query, key), value, mask).to(query.dtype)


@soft_capped_attention.wrong(
    "mask after the cap: a score of -inf that is capped is -cap, and gets weight.",
    published="https://github.com/onnx/onnx/issues/7865",
)
def cap_after_the_mask(
    query: Tensor, key: Tensor, value: Tensor, cap: float, mask: Tensor | None = None
) -> Tensor:
    """Makes -cap of minus infinity."""
    scores = _scores(query, key)
    if mask is not None:
        if mask.dtype != torch.bool:
            raise TypeError(f"mask must be boolean, got {mask.dtype}")
        scores = scores.masked_fill(~mask, -math.inf)
    return _attend(_capped(scores, cap), value, None).to(query.dtype)


@soft_capped_attention.wrong("divide the products by √d_k before the cap, not after it.")
def cap_before_the_scale(
    query: Tensor, key: Tensor, value: Tensor, cap: float, mask: Tensor | None = None
) -> Tensor:
    """Caps products, so that no score is larger than cap / √d_k."""
    root = math.sqrt(query.shape[-1])
    scores = _capped(_scores(query, key) * root, cap) / root
    return _attend(scores, value, mask).to(query.dtype)


@soft_capped_attention.wrong("multiply by the cap again: tanh alone stays below 1.")
def cap_not_multiplied(
    query: Tensor, key: Tensor, value: Tensor, cap: float, mask: Tensor | None = None
) -> Tensor:
    """Leaves out the product with the cap."""
    return _attend(_capped(_scores(query, key), cap) / cap, value, mask).to(query.dtype)


@soft_capped_attention.wrong("divide by the cap inside of tanh.")
def cap_not_divided(
    query: Tensor, key: Tensor, value: Tensor, cap: float, mask: Tensor | None = None
) -> Tensor:
    """Bends scores from 1 on, whatever the cap."""
    return _attend(cap * _capped(_scores(query, key), 1.0), value, mask).to(query.dtype)


@soft_capped_attention.wrong(
    "multiply tanh by the cap, not by the score.",
    published="https://github.com/unslothai/unsloth-zoo/pull/593",
)
def score_for_cap(
    query: Tensor, key: Tensor, value: Tensor, cap: float, mask: Tensor | None = None
) -> Tensor:
    """Multiplies the score by tanh, which bounds nothing and makes it positive."""
    scores = _scores(query, key)
    return _attend(scores * _capped(scores, cap) / cap, value, mask).to(query.dtype)


@soft_capped_attention.wrong(
    "use tanh: a clamp makes all scores above the cap equal, and stops their gradient.",
    name="clamp for tanh",
)
def clamped(
    query: Tensor, key: Tensor, value: Tensor, cap: float, mask: Tensor | None = None
) -> Tensor:
    """Cuts scores off."""
    _capped(query, cap)
    return _attend(_scores(query, key).clamp(-cap, cap), value, mask).to(query.dtype)


@soft_capped_attention.wrong("cap scores, not weights: those are below 1 anyway.")
def weights_capped(
    query: Tensor, key: Tensor, value: Tensor, cap: float, mask: Tensor | None = None
) -> Tensor:
    """Caps what comes out of the softmax."""
    keys = torch.eye(key.shape[-2], dtype=at_least_float32(key).dtype, device=key.device)
    weights = _attend(_scores(query, key), keys, mask)
    return (_capped(weights, cap) @ at_least_float32(value)).to(query.dtype)


@soft_capped_attention.wrong(
    "give a row that may attend to nothing the weights 0: the softmax of -inf alone is NaN.",
    name="NaN in empty rows",
)
def nan_in_empty_rows(
    query: Tensor, key: Tensor, value: Tensor, cap: float, mask: Tensor | None = None
) -> Tensor:
    """Takes the softmax of nothing but -inf."""
    scores = _capped(_scores(query, key), cap)
    if mask is not None:
        if mask.dtype != torch.bool:
            raise TypeError(f"mask must be boolean, got {mask.dtype}")
        scores = scores.masked_fill(~mask, -math.inf)
    return _attend(scores, value, None).to(query.dtype)


@soft_capped_attention.wrong(
    "convert bfloat16 to float32 as well: a score of 20 is off by up to 0.06."
)
def softmax_in_bfloat16(
    query: Tensor, key: Tensor, value: Tensor, cap: float, mask: Tensor | None = None
) -> Tensor:
    """Widens float16 alone."""
    if query.dtype != torch.bfloat16:
        return right_cap(query, key, value, cap, mask)
    scores = _capped(_scores(query, key).bfloat16(), cap)
    return _attend(scores, value, mask).to(query.dtype)


@soft_capped_attention.wrong(
    "refuse a mask that is not boolean: 0 means blocked to some and allowed to others."
)
def mask_of_numbers(
    query: Tensor, key: Tensor, value: Tensor, cap: float, mask: Tensor | None = None
) -> Tensor:
    """Takes a mask of numbers and blocks where it is 0, which is where others allow."""
    return right_cap(query, key, value, cap, None if mask is None else mask != 0)


@soft_capped_attention.wrong("refuse a cap of 0, which makes all scores NaN, and one below it.")
def any_cap_taken(
    query: Tensor, key: Tensor, value: Tensor, cap: float, mask: Tensor | None = None
) -> Tensor:
    """Asks nothing of the cap."""
    scores = cap * torch.tanh(_scores(query, key) / cap)
    return _attend(scores, value, mask).to(query.dtype)
