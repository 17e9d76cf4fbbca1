"""Checks of the inputs and the masks of attention: by shape and dtype, never by value."""

import itertools

import torch
from torch import Tensor


def require_attention_inputs(**tensors: Tensor) -> None:
    """Refuses inputs of attention that do not go together.

    Args:
        tensors: `query`, `key` and, if there is one, `value`, by these names and in this order.

    Raises:
        TypeError: If they are not of one floating dtype.
        ValueError: If their shapes do not go together.
    """
    names = ", ".join(tensors)
    dtypes = [x.dtype for x in tensors.values()]
    if not dtypes[0].is_floating_point or any(dtype != dtypes[0] for dtype in dtypes):
        raise TypeError(
            f"{names} must be of one floating dtype, got {', '.join(map(str, dtypes))}; convert "
            "them, for example with .to(torch.float32)"
        )
    shapes = [tuple(x.shape) for x in tensors.values()]
    found = f"got shapes {', '.join(map(str, shapes))}"
    if any(len(shape) < 2 for shape in shapes):
        raise ValueError(f"{names} must have two axes or more, (..., seq, d_k), {found}")
    if shapes[0][-1] != shapes[1][-1] or shapes[0][-1] == 0:
        raise ValueError(f"query and key must have the same d_k > 0 as last axis, {found}")
    if shapes[1][-2] != shapes[-1][-2]:
        raise ValueError(f"key and value must have the same kv_seq, {found}")
    if not all(_broadcast(a[:-2], b[:-2]) for a, b in itertools.combinations(shapes, 2)):
        raise ValueError(f"the leading axes of {names} must broadcast, {found}")


def require_boolean(mask: Tensor) -> None:
    """Refuses a mask of numbers, which some libraries add and others compare with 0.

    Args:
        mask: What was passed as a mask.

    Raises:
        TypeError: If `mask` is not boolean.
    """
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

    Args:
        mask: The mask, two axes or more.
        scores: The scores, shape `(..., q_seq, kv_seq)`.

    Raises:
        TypeError: If `mask` is not boolean.
        ValueError: If the shape of `mask` does not fit, or can be read in two ways.
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

    Args:
        mask: The mask.
        query: Shape `(..., q_seq, d_model)`.
        key: Shape `(..., kv_seq, d_model)`.

    Raises:
        TypeError: If `mask` is not boolean.
        ValueError: If the shape of `mask` is neither `(q_seq, kv_seq)` nor `(..., q_seq, kv_seq)`
            nor `(..., 1, kv_seq)`, with the leading axes of `query`.
    """
    require_boolean(mask)
    shape = tuple(mask.shape)
    leading, q_seq, kv_seq = tuple(query.shape[:-2]), query.shape[-2], key.shape[-2]
    allowed = [(q_seq, kv_seq)]
    if leading:
        allowed += [(*leading, q_seq, kv_seq), (*leading, 1, kv_seq)]
    if any(shape == each for each in allowed):
        return
    remedy = ""
    if leading and shape == (*leading, kv_seq):
        remedy = (
            "; for padding pass padding_mask(lengths, kv_seq) or mask[..., None, :], of shape "
            f"{allowed[-1]}"
        )
    elif len(shape) > len(leading) + 2:
        remedy = "; it has no axis for the heads, which share it"
    raise ValueError(
        f"mask must have the shape {' or '.join(map(str, allowed))} for query "
        f"{tuple(query.shape)} and key {tuple(key.shape)}, got {shape}{remedy}"
    )


def _expands(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` expands to `target`, which has as many axes."""
    return all(size in (target_size, 1) for size, target_size in zip(shape, target, strict=True))


def _broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """Whether tensors of these shapes broadcast, aligned at their last axes."""
    pairs = zip(reversed(first), reversed(second), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)
