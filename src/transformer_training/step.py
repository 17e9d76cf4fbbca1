"""One step of training, and what it needs: few lines, of which the rest is made."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.optim import AdamW, Optimizer

from transformer_layers.validation import require_size

# Sequences, each with the token after it; and what a model makes of them, a mean over their tokens.
Sequences = Int[Tensor, "batch seq_and_next"]
Loss = Callable[[Tensor], Tensor]


def learning_rate(step: int, steps: int, warmup: int, highest: float, last: float) -> float:
    r"""The learning rate of a step: up in a line, then down in half a cosine.

    .. math::
        \eta_t = \begin{cases}
            \eta_{\max}\, t / w & t \le w \\
            \eta_{\min} + \tfrac12 (\eta_{\max} - \eta_{\min})
            \bigl(1 + \cos \pi \tfrac{t - w}{T - w}\bigr) & t > w
        \end{cases}

    The cosine is that of https://arxiv.org/abs/1608.03983, eq. 5, without its restarts.

    Args:
        step: Number of the step, :math:`t`, from 1 to `steps`.
        steps: Number of steps, :math:`T`.
        warmup: Number of steps in which it rises, :math:`w`.
        highest: :math:`\eta_{\max}`.
        last: :math:`\eta_{\min}`.

    Returns:
        The learning rate, :math:`\eta_t`.

    Examples:
        >>> [learning_rate(step, 6, warmup=2, highest=1.0, last=0.0) for step in (1, 2, 4, 6)]
        [0.5, 1.0, 0.5, 0.0]
    """
    if step <= warmup:
        return highest * step / warmup
    fallen = (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2
    return last + (highest - last) * fallen


def inverse_sqrt_rate(step: int, d_model: int, warmup: int) -> float:
    r"""The learning rate of the Transformer's paper: up in a line, then down as a root.

    Equation 3 of https://arxiv.org/abs/1706.03762, which has 4,000 steps of warm-up. Its highest
    rate is that of step :math:`w`, :math:`(d\, w)^{-1/2}`.

    .. math::
        \eta_t = d^{-1/2} \min(t^{-1/2},\; t\, w^{-3/2})

    Args:
        step: Number of the step, :math:`t`, from 1 on: at step 0 the root has no inverse, and a
            program that counts from 0 makes its first step with a rate of zero, or fails.
        d_model: Features of a position, :math:`d`.
        warmup: Number of steps in which it rises, :math:`w`.

    Returns:
        The learning rate, :math:`\eta_t`.

    Raises:
        TypeError: If a number is not an int.
        ValueError: If one is below 1.

    Examples:
        >>> [inverse_sqrt_rate(step, d_model=4, warmup=4) for step in (1, 2, 4, 16)]
        [0.0625, 0.125, 0.25, 0.125]
    """
    for name, value in (("step", step), ("d_model", d_model), ("warmup", warmup)):
        require_size(name, value)
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def make_optimizer(
    model: nn.Module,
    lr: float,
    weight_decay: float,
    betas: tuple[float, float] = (0.9, 0.95),
    eps: float = 1e-8,
) -> AdamW:
    """AdamW (https://arxiv.org/abs/1711.05101, algorithm 2) that shrinks matrices only.

    A matrix that multiplies is made smaller at each step; biases and the gains of norms, which have
    one axis, and embeddings, whose rows a step may not have read, are not. A rule by the number of
    axes alone, which is common too, would make embeddings smaller as well.

    Args:
        model: The model.
        lr: The learning rate.
        weight_decay: Share of a matrix, times the learning rate, that a step takes away.
        betas: How long gradients and their squares are remembered.
        eps: What is added to the root of the squares' mean.

    Returns:
        The optimizer.

    Examples:
        >>> model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 2), nn.LayerNorm(2))
        >>> optimizer = make_optimizer(model, lr=0.1, weight_decay=0.5)
        >>> [(len(g["params"]), g["weight_decay"]) for g in optimizer.param_groups]
        [(4, 0.0), (1, 0.5)]
    """
    embeddings = {id(each.weight) for each in model.modules() if isinstance(each, nn.Embedding)}
    groups: dict[tuple[bool, object], list[nn.Parameter]] = {}
    for parameter in model.parameters():
        decays = parameter.ndim > 1 and id(parameter) not in embeddings
        groups.setdefault((decays, mesh_of(parameter)), []).append(parameter)
    return AdamW(
        [
            {"params": parameters, "weight_decay": weight_decay if decays else 0.0}
            for (decays, _), parameters in groups.items()
        ],
        lr=lr,
        betas=betas,
        eps=eps,
    )


def train_step(
    loss_of: Loss,
    optimizer: Optimizer,
    micro_batches: Sequence[Sequences],
    lr: float,
    clip: float = math.inf,
    unsent: Callable[[], AbstractContextManager[object]] = nullcontext,
    *,
    scored: Callable[[Any], Tensor | int] | None = None,
    mean_over_ranks: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    r"""Moves the weights once, by the mean gradient of some micro-batches.

    Without `scored` the step takes the mean of the micro-batches' means, which is that of all
    tokens only where each micro-batch scores as many. Padded ones, or ones with labels of -100, do
    not: pass `scored`, and the loss of micro-batch k, of :math:`K`, counts by its tokens
    :math:`n_k`.

    .. math::
        L = \sum_{k=1}^K \frac{n_k}{n} L_k, \qquad n = \frac1R \sum_{\text{ranks}} \sum_{k=1}^K n_k

    `DistributedDataParallel` and FSDP take the mean of the gradients of :math:`R` ranks, a mean of
    means again where ranks score different numbers. So :math:`n` is the mean over ranks of what a
    step scores: the weight is :math:`R` times the share in all tokens.

    Args:
        loss_of: Gives the mean loss of a micro-batch.
        optimizer: Has the weights.
        micro_batches: Sequences; as many in each, or `scored` tells how many tokens count.
        lr: The learning rate.
        clip: A longer gradient, of all weights together, is made as long as this.
        unsent: Gives the context of each micro-batch but the last, in which ranks may add up
            gradients without sending them: `Ranks.unsent`.
        scored: Gives the number of tokens of a micro-batch that its mean loss is a mean of. The
            first token of a sequence is none of them: of labels `(labels[:, 1:] != -100).sum()`.
        mean_over_ranks: Gives the mean of a scalar over the ranks whose gradients are averaged:
            `Ranks.mean`. Each rank calls it once; a process alone needs none.

    Returns:
        The mean loss before the step, and the gradient's length. With several ranks, this rank's
        share of the loss: its mean over ranks is the loss.

    Raises:
        ValueError: If a micro-batch has no scored token, of which there is no mean, or
            `mean_over_ranks` is given without `scored`.

    Examples:
        >>> layer = nn.Linear(1, 1, bias=False)
        >>> optimizer = make_optimizer(layer, lr=0.1, weight_decay=0.0)
        >>> parts = [torch.ones(3, 1), 5 * torch.ones(1, 1)]  # the gradients are 1 and 5
        >>> def length(**options):
        ...     return train_step(lambda x: layer(x).mean(), optimizer, parts, 0.1, **options)[1]
        >>> length(), length(scored=len)
        (tensor(3.), tensor(2.))
    """
    divisors = _divisors(micro_batches, optimizer, scored, mean_over_ranks)
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.zero_grad()
    total = torch.zeros(())
    for number, (ids, divisor) in enumerate(zip(micro_batches, divisors, strict=True), start=1):
        with unsent() if number < len(micro_batches) else nullcontext():
            loss = loss_of(ids) / divisor
            loss.backward()
        total = total.to(loss.device) + loss.detach()
    length = clip_gradients(optimizer, clip)
    optimizer.step()
    return total, length


def _divisors(
    micro_batches: Sequence[Any],
    optimizer: Optimizer,
    scored: Callable[[Any], Tensor | int] | None,
    mean_over_ranks: Callable[[Tensor], Tensor] | None,
) -> list[float]:
    """What the mean loss of each micro-batch is divided by, so that their sum is the step's."""
    if scored is None:
        if mean_over_ranks is not None:
            raise ValueError("mean_over_ranks is for the counts that scored gives; pass it, too")
        return [len(micro_batches)] * len(micro_batches)
    counts = [int(scored(ids)) for ids in micro_batches]
    _require_counts(counts, "micro-batch")
    mean = float(sum(counts))
    if mean_over_ranks is not None:
        device = optimizer.param_groups[0]["params"][0].device
        mean = mean_over_ranks(torch.tensor(mean, dtype=torch.float64, device=device)).item()
    return [mean / count for count in counts]


def _require_counts(counts: Sequence[int], of: str) -> None:
    if not counts or min(counts) < 1:
        raise ValueError(f"each {of} must score a token or more, got counts {list(counts)}")


def clip_gradients(optimizer: Optimizer, longest: float) -> Float[Tensor, ""]:
    """Shortens the gradient of all weights together, where it is too long.

    `torch.nn.utils.clip_grad_norm_` does so where all weights lie alike; ranks that share matrices
    have some in parts and others whole.

    Args:
        optimizer: Has the weights.
        longest: The greatest length.

    Returns:
        The length as it was.
    """
    groups: dict[object, list[Tensor]] = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                groups.setdefault(mesh_of(parameter), []).append(parameter.grad)
    lengths = [whole(nn.utils.get_total_norm(gradients)) for gradients in groups.values()]
    length = torch.linalg.vector_norm(torch.stack(lengths))
    share = (longest / (length + 1e-6)).clamp(max=1.0).item()
    if share < 1:
        for gradient in (each for gradients in groups.values() for each in gradients):
            gradient.mul_(share)
    return length


@torch.no_grad()
def evaluate(
    model: nn.Module,
    loss_of: Callable[[Any], Tensor],
    batches: Iterable[Any],
    *,
    scored: Callable[[Any], Tensor | int] | None = None,
) -> Float[Tensor, ""]:
    r"""The mean loss of all scored tokens, without dropout; the model is then in training mode.

    The loss of batch k, of :math:`K`, counts by its scored tokens :math:`n_k`, as in
    :func:`train_step`, so that it does not matter how sequences are put into batches.

    .. math::
        L = \sum_{k=1}^K \frac{n_k}{n} L_k, \qquad n = \sum_{k=1}^K n_k

    Args:
        model: The model.
        loss_of: Gives the mean loss of a batch.
        batches: Sequences, or whatever `loss_of` takes.
        scored: Gives the number of tokens of a batch that its mean loss is a mean of, see
            :func:`train_step`; needed where labels of -100 leave some out. If not given, a batch's
            own attribute `scored`, as :class:`ChatBatch` has it, and of a tensor of sequences all
            tokens but the first of each.

    Returns:
        The mean, in nats where `loss_of` is in nats.

    Raises:
        TypeError: If `scored` is not given, and a batch is no tensor and has no such attribute.
        ValueError: If there is no batch, or one has no scored token.

    Examples:
        >>> batches = [torch.ones(3, 2), 5 * torch.ones(1, 2)]  # three sequences of a token, one
        >>> evaluate(nn.Identity(), torch.mean, batches)
        tensor(2.)
        >>> evaluate(nn.Identity(), torch.mean, batches, scored=lambda batch: 1)
        tensor(3.)
    """
    losses, counts = [], []
    model.eval()
    try:
        for batch in batches:
            counts.append(int((scored or _scored_of)(batch)))
            losses.append(loss_of(batch))
    finally:
        model.train()
    _require_counts(counts, "batch")
    found = torch.stack(losses)
    # 1 for each, and so the plain mean to its last digit, where batches score as many.
    weights = [count * len(counts) / sum(counts) for count in counts]
    return (found * found.new_tensor(weights)).mean()


def _scored_of(batch: Any) -> int:
    """How many tokens of a batch are scored, where all are, or where it says so itself."""
    if isinstance(batch, Tensor):
        return batch[..., 1:].numel()
    if not hasattr(batch, "scored"):
        raise TypeError(
            "scored must be given for batches that are neither a tensor of sequences nor have an "
            f"attribute scored, got a batch of {type(batch).__name__}: pass what counts its "
            "tokens, such as scored=lambda batch: (batch[1][:, 1:] != -100).sum() for ids and "
            "labels"
        )
    return int(batch.scored)


def whole(tensor: Tensor) -> Tensor:
    """A tensor that ranks hold in parts, put together; any other as it is."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def mesh_of(tensor: Tensor) -> object:
    """Which ranks hold a tensor in parts: torch's functions do not take two kinds at once."""
    return tensor.device_mesh if isinstance(tensor, DTensor) else None
