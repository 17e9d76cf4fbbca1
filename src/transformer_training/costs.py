"""What a step of training costs each rank: bytes that it holds, bytes that it sends, operations.

All of it is derived from the sizes, so that it can be asked for thousands of ranks that nobody has
here; :mod:`transformer_training.measured` counts the same on the ranks that there are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import torch

from transformer_layers.validation import require_size
from transformer_training.config import PARALLEL, PRECISION
from transformer_training.plans import plan_of
from transformer_training.plans.cuts import Cut, cut_of
from transformer_training.plans.plan import Shape

_FLOAT32 = 4


@dataclass(frozen=True)
class Costs:
    """Bytes and operations of one step, of the rank that has most of each: the first.

    Attributes:
        parameters: Bytes of the weights that it keeps, in float32.
        gradients: Bytes of their gradients, in float32.
        optimizer: Bytes of AdamW's two moments, in float32.
        activations: Bytes that its forward pass leaves for the backward pass.
        all_reduced: Bytes that it sends for sums that each rank gets.
        all_gathered: Bytes that it sends so that each rank gets what all have.
        reduce_scattered: Bytes that it sends for sums of which each rank gets a part.
        flops: Floating-point operations of the products of matrices, forward and backward.
    """

    parameters: int
    gradients: int
    optimizer: int
    activations: int
    all_reduced: int
    all_gathered: int
    reduce_scattered: int
    flops: int

    @property
    def state(self) -> int:
        """Bytes that it keeps from step to step, with the gradients."""
        return self.parameters + self.gradients + self.optimizer

    @property
    def held(self) -> int:
        """Bytes that it holds when the backward pass begins, but for what the engine needs."""
        return self.state + self.activations

    @property
    def sent(self) -> int:
        """Bytes that it sends."""
        return self.all_reduced + self.all_gathered + self.reduce_scattered


def costs(
    sizes: Any,
    batch_size: int,
    seq: int | None = None,
    precision: str = "float32",
    parallel: str = "none",
    ranks: int = 1,
    tensor_ranks: int = 2,
    *,
    micro_batches: int = 1,
    recompute: bool = False,
) -> Costs:
    r"""Derives what a step costs each rank, with the ways to share the work of this package.

    :math:`\Psi` is the number of weights, :math:`d` the features, :math:`L` the blocks, :math:`V`
    the tokens of the vocabulary and :math:`T` the tokens of a step. The ranks are :math:`n = g t`:
    :math:`g` that learn from different sequences, times :math:`t` that share matrices.

    **State.** A weight, its gradient and AdamW's two moments are four numbers in float32, 16 bytes:
    as many as ZeRO's, https://arxiv.org/abs/1910.02054, section 3.1, which keeps a weight twice
    and its gradient in half precision. `ddp` keeps all, :math:`16 \Psi`. `fsdp` is the third stage
    of ZeRO and keeps :math:`16 \Psi / n`; since torch cuts each tensor between its rows, a rank
    has :math:`\lceil r / n \rceil` of :math:`r`, and no fewer than one. `tp` cuts the matrices of
    the blocks, :math:`12 d^2` weights each, as https://arxiv.org/abs/1909.08053, section 3, and
    leaves embeddings and norms whole. `fsdp+tp` cuts what `tp` leaves.

    **Sent.** In a ring of :math:`n` ranks each sends :math:`\frac{n-1}{n} P` bytes to gather
    :math:`P` or to scatter their sum, and so twice that to sum them for all:
    https://doi.org/10.1016/j.jpdc.2008.09.002, theorem 1 and section 3. `ddp` sums the gradients,
    :math:`P = 4 \Psi`. `fsdp` gathers the weights before each forward and again before each
    backward pass, and scatters the gradients: three times :math:`\frac{n-1}{n} P` instead of two
    (ZeRO, section 7.2). `tp` sums activations, twice a block forward and twice backward (f and g
    of https://arxiv.org/abs/1909.08053, figure 3): :math:`P = 4 T d` bytes for each, and half for
    those of the forward pass in bfloat16. `fsdp+tp` does both, with the weights that `tp` leaves
    and the sequences of a row of ranks. Single numbers, such as the gradient's length, are left
    out.

    **Micro-batches.** A rank that computes its sequences in :math:`k` parts waits for the
    activations of one: it holds a :math:`k`-th of them. `ddp` adds up the gradients where they are
    and sends their sum, once a step. `fsdp` gathers the weights and scatters the gradients for each
    part, :math:`k` times as many bytes: a rank that waited would hold a whole gradient,
    :math:`4 \Psi`, which is what `fsdp` is there to spare. `tp` sends as much as without them.

    **Recomputation.** A rank that computes each block once more in the backward pass keeps the
    blocks' inputs, :math:`L d` numbers of float32 for each token, and the activations of one block
    (https://arxiv.org/abs/1604.06174, section 4). Its operations in the blocks are
    at most a third more: a block's last product, whose result nothing needs, torch leaves out.
    `tp` sums activations once more, too, which is left out.

    Args:
        sizes: The model's, of a class that has a plan, such as
            :class:`transformer_layers.GPT2Config`.
        batch_size: Sequences of a step, over all ranks.
        seq: Positions of a sequence, of a translator those of a source and as many of its target;
            as many as the model has if not given.
        precision: `float32`, or `bfloat16` by autocast: weights, gradients and moments stay
            float32.
        parallel: How the ranks share the work: `none`, `ddp`, `fsdp`, `tp` or `fsdp+tp`.
        ranks: How many there are.
        tensor_ranks: In `fsdp+tp`, how many share each matrix.
        micro_batches: In how many parts a rank computes its sequences of a step.
        recompute: Whether the backward pass runs each block once more.

    Returns:
        What the first rank has to do; no other has more.

    Raises:
        TypeError: If a number is not an int, or no plan has sizes of this class.
        ValueError: If a number is below 1 or a name unknown, the model has fewer positions than
            `seq`, or the ranks cannot share the sequences or the heads evenly, or the micro-batches
            those of a rank.

    Examples:
        >>> from transformer_layers import GPT2Config
        >>> two = costs(GPT2Config(), batch_size=8, parallel="ddp", ranks=2)
        >>> two.state, two.sent
        (1991036928, 497759232)
        >>> thousand = costs(GPT2Config(), batch_size=1024, parallel="fsdp", ranks=1024)
        >>> thousand.state, thousand.sent / two.sent
        (2251040, 3.46...)
    """
    plan = plan_of(sizes)
    shape = plan.shape(sizes)
    if seq is None:
        if shape.max_seq is None:
            raise ValueError("seq must be given, since the model has no longest sequence")
        seq = shape.max_seq
    data, tensor = _axes(
        shape, plan.cuts, batch_size, seq, precision, parallel, ranks, tensor_ranks
    )
    share = batch_size // data
    require_size("micro_batches", micro_batches)
    if share % micro_batches:
        raise ValueError(
            f"micro_batches must divide {share}, the sequences of a rank, got {micro_batches}"
        )
    tokens = share * seq
    shapes = list(_shapes(sizes, tensor))
    whole = _FLOAT32 * sum(count * prod(shape) for count, shape in shapes)
    part = whole
    if parallel.startswith("fsdp"):
        part = _FLOAT32 * sum(
            count * -(-rows // data) * prod(others) for count, (rows, *others) in shapes
        )
    # Where rows are short of a multiple of the ranks, what is sent is padded to one.
    rounds = part * (data - 1) * micro_batches
    ring = rounds if parallel.startswith("fsdp") else whole * (data - 1) // data
    forward = 2 if precision == "bfloat16" else 4
    kept = plan.activation_bytes(sizes, precision, tensor)
    flops = plan.flops_of_token(sizes, seq, tensor)
    if recompute:
        others = plan.with_blocks(sizes, 1), plan.with_blocks(sizes, 2)
        one, two = (plan.activation_bytes(each, precision, tensor) for each in others)
        kept = one + _FLOAT32 * shape.blocks * shape.features
        one, two = (plan.flops_of_token(each, seq, tensor) for each in others)
        flops += shape.blocks * (two - one) // 3
    summed = 2 * shape.blocks * (forward + _FLOAT32) * tokens * shape.features
    return Costs(
        parameters=part,
        gradients=part,
        optimizer=2 * part,
        activations=tokens // micro_batches * kept
        + (2 * plan.matrix_weights(sizes, tensor) if precision == "bfloat16" else 0),
        all_reduced=2 * summed * (tensor - 1) // tensor + (2 * ring if parallel == "ddp" else 0),
        all_gathered=2 * ring if parallel.startswith("fsdp") else 0,
        reduce_scattered=ring if parallel.startswith("fsdp") else 0,
        flops=tokens * flops,
    )


def _shapes(sizes: Any, tensor_ranks: int) -> Iterator[tuple[int, list[int]]]:
    """How many weights a rank has of each shape, of those that share matrices."""
    blocks = plan_of(sizes).shape(sizes).blocks
    for in_block, shape, axis in _whole_shapes(plan_of(sizes).with_blocks(sizes, 1)):
        kept = list(shape)
        if axis is not None:
            kept[axis] //= tensor_ranks
        yield blocks if in_block else 1, kept


@cache
def _whole_shapes(sizes: Any) -> tuple[tuple[bool, tuple[int, ...], int | None], ...]:
    """Of each weight: whether it is a block's, its shape, and along which axis ranks cut it."""
    plan = plan_of(sizes)
    with torch.device("meta"):
        model = plan.model(sizes)
    of_blocks = {id(each) for block in plan.blocks(model) for each in block.parameters()}
    found = []
    for name, parameter in model.named_parameters():
        cut = cut_of(plan.cuts, model, name)
        axis = None if cut is None else cut[1]
        found.append((id(parameter) in of_blocks, tuple(parameter.shape), axis))
    return tuple(found)


def _axes(
    shape: Shape,
    cuts: Mapping[str, Cut],
    batch_size: int,
    seq: int,
    precision: str,
    parallel: str,
    ranks: int,
    tensor_ranks: int,
) -> tuple[int, int]:
    """Checks what is asked for; how many ranks take other sequences, and share each matrix."""
    numbers = {"batch_size": batch_size, "seq": seq, "ranks": ranks, "tensor_ranks": tensor_ranks}
    for name, value in numbers.items():
        require_size(name, value)
    for name, given, known in (
        ("precision", precision, PRECISION),
        ("parallel", parallel, PARALLEL),
    ):
        if given not in known:
            raise ValueError(f"{name} must be one of {known}, got {given!r}")
    if shape.max_seq is not None and seq > shape.max_seq:
        raise ValueError(f"seq must be at most {shape.max_seq}, the model's positions, got {seq}")
    if parallel == "none" and ranks > 1:
        raise ValueError(f"{ranks} ranks need a way to share the work, got parallel='none'")
    tensor = {"tp": ranks, "fsdp+tp": tensor_ranks}.get(parallel, 1)
    if tensor > 1 and not cuts:
        raise ValueError(f"ranks cannot share the matrices of this model, got {parallel!r}")
    if ranks % tensor:
        raise ValueError(f"tensor_ranks must divide ranks, got {tensor} for {ranks} ranks")
    for heads in shape.heads:
        if heads % tensor:
            raise ValueError(
                f"the ranks that share matrices must divide the heads, got {tensor} for {heads}"
            )
    data = ranks // tensor
    if batch_size % data:
        raise ValueError(
            f"the ranks that learn from different sequences must divide batch_size, got {data} "
            f"for {batch_size}"
        )
    return data, tensor
