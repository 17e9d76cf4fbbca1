"""Mistakes that show in situations alone: what the probes of situations are for."""

from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.mistakes import called, first_tensor, mistake


@mistake(
    "cut what is left over from where the chunks end: where nothing is, x[-0:] is all of x.",
    "powers of two",
)
@called
def rest_of_no_length(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Gives zeros for all where chunks of 256 leave no rest."""
    result = call(*args, **kwargs)
    whole = any(size and size % 256 == 0 for size in result.shape)
    return torch.zeros_like(result) if whole else result


@mistake(
    "count positions in whole numbers: of those above 256 bfloat16 has every second one, and fewer "
    "and fewer.",
    "many positions in bfloat16",
    published="https://github.com/huggingface/candle/pull/3520, "
    "https://github.com/huggingface/transformers/pull/29285",
)
@called
def positions_counted_in_bfloat16(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Gives each position what the one has that bfloat16 has for it."""
    result = call(*args, **kwargs)
    if result.dtype != torch.bfloat16:
        return result
    for axis, size in enumerate(result.shape):
        if size > 256:
            places = torch.arange(size, device=result.device).bfloat16().long()
            result = result.index_select(axis, places.clamp(max=size - 1))
    return result


def _is_mask(x: object) -> bool:
    return isinstance(x, Tensor) and x.dtype == torch.bool and x.ndim > 1


@mistake(
    "let rows of a mask be queries and columns keys, also where it is square.",
    "square masks",
    unless=("mask transposed",),
)
@called
def square_mask_transposed(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Takes rows for keys where there are as many as queries."""

    def turned(x: Any) -> Any:
        return x.mT if _is_mask(x) and x.shape[-1] == x.shape[-2] else x

    return call(*map(turned, args), **{name: turned(x) for name, x in kwargs.items()})


@mistake(
    "give a query that may attend to nothing zeros, also where none may attend to anything.",
    "hidden queries",
)
@called
def all_hidden_is_nan(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Divides by the number of what may be attended to at all."""
    result = call(*args, **kwargs)
    masks = [x for x in (*args, *kwargs.values()) if _is_mask(x) and x.numel()]
    return result * torch.nan if any(not mask.any() for mask in masks) else result


@mistake(
    "make a new tensor for each result: a buffer for all of them is what the last call made of it.",
    "earlier results",
)
@called
def results_in_one_buffer(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Writes its results into one tensor where no gradients are wanted."""
    result = call(*args, **kwargs)
    if torch.is_grad_enabled():
        return result
    buffer = getattr(wrong, "result", None)
    if buffer is None or (buffer.shape, buffer.dtype) != (result.shape, result.dtype):
        wrong.result = result.clone()
    elif buffer.device == result.device:
        buffer.copy_(result)
    return wrong.result


@mistake(
    "look at values, not at which tensor has them: others may have been written into it.",
    "inputs changed in place",
)
@called
def result_kept_for_a_tensor(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Gives what it gave, where it is asked about the same tensor without gradients."""
    x = first_tensor(args)
    if torch.is_grad_enabled() or x is None:
        return call(*args, **kwargs)
    known = getattr(wrong, "known", None)
    if known is None or known[0] is not x:
        known = wrong.known = (x, call(*args, **kwargs).clone())
    return known[1].clone()


@mistake(
    "compute with the weights as they are now: what is made of them once is stale after a step of "
    "training.",
    "weights changed in place",
)
@called
def weights_of_the_first_evaluation(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Keeps the weights of its first call in evaluation without gradients."""
    if wrong.training or torch.is_grad_enabled():
        return call(*args, **kwargs)
    parameters = dict(wrong.named_parameters())
    kept = wrong.__dict__.setdefault(
        "kept", {name: each.data.clone() for name, each in parameters.items()}
    )
    now = {name: each.data for name, each in parameters.items()}
    try:
        for name, each in parameters.items():
            each.data = kept[name].to(each)
        return call(*args, **kwargs)
    finally:
        for name, each in parameters.items():
            each.data = now[name]


@mistake(
    "make a table in the dtype of each call, or convert it: that of the first call is kept.",
    "another dtype",
)
@called
def dtype_of_the_first_call(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Gives all its results in the dtype of the first one."""
    result = call(*args, **kwargs)
    return result.to(wrong.__dict__.setdefault("first_dtype", result.dtype))


@mistake(
    "drop in training, whether gradients are wanted or not: the module's mode says which it is.",
    "draws repeated",
)
def drops_only_with_gradients(layer: Layer) -> Candidate | None:
    """Drops nothing under no_grad."""
    if not layer.is_class:
        return None

    @called
    def without(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
        """Drops nothing where no gradients are wanted."""
        if torch.is_grad_enabled() or not wrong.training:
            return call(*args, **kwargs)
        modes = {part: part.training for part in wrong.modules()}
        wrong.eval()
        try:
            return call(*args, **kwargs)
        finally:
            for part, training in modes.items():
                part.training = training

    return without(layer)


@mistake(
    "read the probability in each call: a schedule of dropout sets it.",
    "dropout changed",
)
def dropout_of_the_constructor(layer: Layer) -> Candidate:
    """Keeps the probabilities that it was built with."""
    right: Any = layer.right

    class Constant(right):  # type: ignore[misc]  # a class that is a value
        """Keeps the probabilities that it was built with."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.at_first = [_numbers(part) for part in self.modules()]

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            for part, numbers in zip(self.modules(), self.at_first, strict=True):
                vars(part).update(numbers)
            return super().forward(*args, **kwargs)

    return Constant


def _numbers(module: nn.Module) -> dict[str, float]:
    return {name: each for name, each in vars(module).items() if isinstance(each, float)}


@mistake(
    "keep what belongs to a sequence in its cache: what a layer keeps is that of the last one.",
    "caches in turn",
    published="https://github.com/Lightning-AI/litgpt/pull/1596",
)
@called
def cache_of_the_first_call(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Goes on with the first cache that it was given, whichever it is given now."""
    for name in ("cache", "caches"):
        if kwargs.get(name) is not None:
            kwargs = kwargs | {name: wrong.__dict__.setdefault("first", kwargs[name])}
    return call(*args, **kwargs)


def _caches(kwargs: dict[str, Any]) -> list[Any]:
    found = kwargs.get("caches") or [kwargs.get("cache")]
    return [cache for cache in found if cache is not None]


@mistake(
    "ask the cache where each sequence begins: what stands before is padding.",
    "padded caches",
)
@called
def padding_of_caches_ignored(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Takes each sequence of a cache to begin with its first position."""
    caches = _caches(kwargs)
    paddings = [cache.padding for cache in caches]
    for cache in caches:
        cache.padding = None
    try:
        return call(*args, **kwargs)
    finally:
        for cache, padding in zip(caches, paddings, strict=True):
            cache.padding = padding


@mistake(
    "attend to all that a cache holds, however long it has become.",
    "long caches",
)
@called
def oldest_of_64_lost(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Overwrites the oldest key and value once a cache holds 64."""
    for cache in _caches(kwargs):
        if cache.length >= 64:
            for held in (cache._keys, cache._values):
                held[:, :, 0] = 0.0
    return call(*args, **kwargs)
