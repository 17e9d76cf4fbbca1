"""Checks of the inputs and the masks of attention: by shape and dtype, never by value.

A wrong dtype is a TypeError, a wrong shape or number a ValueError.
"""

import itertools

import torch
from torch import Tensor

from transformer_layers.validation import require_last_axis, require_size


def require_attention_inputs(**tensors: Tensor) -> None:
    """Refuses inputs of attention that are not of one floating dtype, or whose shapes do not fit.

    They are `query`, `key` and, if there is one, `value`, by these names and in this order.
    """
    dtypes = [x.dtype for x in tensors.values()]
    if not dtypes[0].is_floating_point or any(dtype != dtypes[0] for dtype in dtypes):
        raise TypeError(
            f"{_names(tensors)} must be of one floating dtype, got "
            f"{', '.join(map(str, dtypes))}; convert them, for example with .to(torch.float32)"
        )
    shapes = [x.shape for x in tensors.values()]
    if any(len(shape) < 2 for shape in shapes):
        raise ValueError(f"{_names(tensors)} must have two axes or more, {_found(tensors)}")
    if shapes[0][-1] != shapes[1][-1] or shapes[0][-1] == 0:
        raise ValueError(
            f"query and key must have the same d_k > 0 as last axis, {_found(tensors)}"
        )
    if shapes[1][-2] != shapes[-1][-2]:
        raise ValueError(f"key and value must have the same kv_seq, {_found(tensors)}")
    if not all(_broadcast(a[:-2], b[:-2]) for a, b in itertools.combinations(shapes, 2)):
        raise ValueError(f"the leading axes of {_names(tensors)} must broadcast, {_found(tensors)}")


def require_heads(
    d_model: int, num_heads: int, names: tuple[str, str] = ("d_model", "num_heads")
) -> None:
    """Refuses sizes of which no whole number of features per head comes out.

    `names` is what the two are called, for the errors.
    """
    size_name, heads_name = names
    require_size(size_name, d_model)
    require_size(heads_name, num_heads)
    if d_model % num_heads != 0:
        raise ValueError(
            f"{size_name} must be divisible by {heads_name}, got {size_name}={d_model} and "
            f"{heads_name}={num_heads}"
        )


def require_sequences(d_model: int, **inputs: Tensor) -> None:
    """Refuses inputs of a layer that are no sequences, or not sequences of one batch.

    They are `x`, or `query`, `key` and `value`, by these names and in this order, each of shape
    `(..., seq, d_model)`, with the same leading axes, and `value` as long as `key`.
    """
    for name, x in inputs.items():
        require_last_axis(name, x, "d_model", d_model)
    shapes = [x.shape for x in inputs.values()]
    if any(len(shape) < 2 for shape in shapes):
        raise ValueError(
            f"{_names(inputs)} must have two axes or more, (..., seq, d_model), {_found(inputs)}"
        )
    if any(shape[:-2] != shapes[0][:-2] for shape in shapes):
        raise ValueError(f"{_names(inputs)} must have the same leading axes, {_found(inputs)}")
    if any(shape[-2] != shapes[-1][-2] for shape in shapes[1:]):
        raise ValueError(f"key and value must have the same kv_seq, {_found(inputs)}")


def require_boolean(mask: Tensor) -> None:
    """Refuses a mask of numbers, which some libraries add and others compare with 0."""
    if mask.dtype != torch.bool:
        raise TypeError(
            f"mask must be boolean with True = may attend, got {mask.dtype}; pass mask == 0 if it "
            "was to be added to the scores (0 or -inf), mask == 1 if it holds ones and zeros"
        )


def require_mask_of_scores(mask: Tensor, scores: Tensor) -> None:
    """Refuses a mask that does not broadcast to the scores, or does so in one of two ways.

    Two axes are always `(q_seq, kv_seq)`. Broadcasting aligns a mask's further axes with the last
    of the scores' leading axes; where they would fit the first ones as well, one of the two is
    meant and nothing says which.
    """
    require_boolean(mask)
    shape, target = tuple(mask.shape), tuple(scores.shape)
    offset = len(target) - len(shape)
    fits = len(shape) >= 2 and offset >= 0 and _expands(shape, target[offset:])
    if not fits:
        raise ValueError(
            f"mask must have the shape of the scores {target}, (..., q_seq, kv_seq), or broadcast "
            f"to it with two axes or more, got {shape}"
        )
    leading = shape[:-2]
    if offset and any(size != 1 for size in leading) and _expands(leading, target[: len(leading)]):
        raise ValueError(
            f"mask of shape {shape} fits the scores {target} in two ways, its first axis being "
            f"axis 0 or axis {offset} of theirs; give it {len(target)} axes, with 1 where it is "
            "shared"
        )


def require_mask_of_batch(mask: Tensor, query: Tensor, key: Tensor) -> None:
    """Refuses a mask that is neither one for all sequences nor one for each.

    The shape must be `(q_seq, kv_seq)`, or the leading axes of `query` followed by it or by
    `(1, kv_seq)`.
    """
    require_boolean(mask)
    shape, leading = tuple(mask.shape), tuple(query.shape[:-2])
    q_seq, kv_seq = query.shape[-2], key.shape[-2]
    if shape == (q_seq, kv_seq):
        return
    if leading and shape in ((*leading, q_seq, kv_seq), (*leading, 1, kv_seq)):
        return
    allowed = [f"{(q_seq, kv_seq)}"]
    if leading:
        allowed += [f"{(*leading, q_seq, kv_seq)}", f"{(*leading, 1, kv_seq)}"]
    remedy = ""
    if leading and shape == (*leading, kv_seq):
        remedy = (
            "; for padding pass padding_mask(lengths, kv_seq) or mask[..., None, :], of shape "
            f"{allowed[-1]}"
        )
    elif len(shape) > len(leading) + 2:
        remedy = "; it has no axis for the heads, which share it"
    raise ValueError(
        f"mask must have the shape {' or '.join(allowed)} for query "
        f"{tuple(query.shape)} and key {tuple(key.shape)}, got {shape}{remedy}"
    )


def _expands(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` expands to `target`, which has as many axes."""
    return all(size in (target_size, 1) for size, target_size in zip(shape, target, strict=True))


def _broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """Whether tensors of these shapes broadcast, aligned at their last axes."""
    pairs = zip(reversed(first), reversed(second), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def _names(tensors: dict[str, Tensor]) -> str:
    """The names of tensors, for an error."""
    return ", ".join(tensors)


def _found(tensors: dict[str, Tensor]) -> str:
    """The shapes of tensors, for an error; not made before there is one, since that costs time."""
    shapes = ", ".join(str(tuple(x.shape)) for x in tensors.values())
    return f"got shape {shapes}" if len(tensors) == 1 else f"got shapes {shapes}"
