"""Wrong versions of the smoothed cross-entropy."""

from typing import NamedTuple

import torch
from torch import Tensor

from evaluation.held_out.definitions import held_out
from transformer_layers.generation.decoder import require_tokens
from transformer_layers.generation.label_smoothing import READINGS, Reading
from transformer_layers.precision import at_least_float32
from transformer_layers.validation import require_floating, require_integers, require_probability


class _Parts(NamedTuple):
    """What all versions have in common."""

    right: Tensor  # (..., 1), 0 where there is padding
    scored: Tensor  # (...)
    share: Tensor  # (..., vocab_size), what each token has of epsilon
    one_hot: Tensor  # (..., vocab_size), 1 - epsilon at the right token


def _parts(
    logits: Tensor, labels: Tensor, epsilon: float, reading: Reading, padding: int | None
) -> _Parts:
    """Checks the arguments and spreads epsilon."""
    require_floating("logits", logits)
    require_integers("labels", labels)
    require_probability("epsilon", epsilon)
    if logits.shape[:-1] != labels.shape:
        raise ValueError(f"labels of {tuple(labels.shape)} for {tuple(logits.shape)}")
    if reading not in READINGS or (reading == "others_but_padding" and padding is None):
        raise ValueError(f"reading {reading!r} with padding_token {padding}")
    scored = torch.ones_like(labels, dtype=torch.bool) if padding is None else labels != padding
    size = logits.shape[-1]
    if not labels.is_meta and not torch.compiler.is_compiling():
        if not scored.any():
            raise ValueError("there must be a label to score")
        require_tokens(labels[scored], size, "labels")
    right = labels.masked_fill(~scored, 0).long()[..., None]
    share = torch.ones_like(at_least_float32(logits))
    if reading != "all":
        share = share.scatter(-1, right, 0.0)
    if reading == "others_but_padding":
        share[..., padding] = 0.0
    sharing = size - READINGS.index(reading)
    if sharing < 1:
        raise ValueError(f"{reading} leaves no token to share epsilon")
    one_hot = torch.zeros_like(share).scatter(-1, right, 1 - epsilon)
    return _Parts(right, scored, share * (epsilon / sharing), one_hot)


@held_out(
    "smoothed_cross_entropy", "pytorch/pytorch, issue 73205", r"padding|ignored|uniform|mask|scored"
)
def smoothed_with_uniform_part_of_padding(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: Reading = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Leaves padding out of the part of the right tokens, but not out of the uniform part."""
    parts = _parts(logits, labels, epsilon, reading, padding_token)
    log_probs = at_least_float32(logits).log_softmax(dim=-1)
    of_right = -(parts.one_hot * log_probs).sum(dim=-1).masked_fill(~parts.scored, 0.0)
    uniform = -(parts.share * log_probs).sum(dim=-1)
    return (of_right + uniform).sum() / parts.scored.sum()


@held_out(
    "smoothed_cross_entropy",
    "eladhoffer/utils.pytorch, issue 4",
    r"padding|divi|mean|count|number of|average",
)
def smoothed_mean_over_all_places(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: Reading = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Divides the sum by the number of all labels, those of padding among them."""
    parts = _parts(logits, labels, epsilon, reading, padding_token)
    log_probs = at_least_float32(logits).log_softmax(dim=-1)
    losses = -((parts.one_hot + parts.share) * log_probs).sum(dim=-1)
    return losses.masked_fill(~parts.scored, 0.0).mean()


@held_out("smoothed_cross_entropy", "espnet/espnet, issue 4358", r"KL|diverg|entropy of|constant")
def smoothed_divergence(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: Reading = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Gives the divergence, which is less than the cross-entropy by the labels' own entropy."""
    parts = _parts(logits, labels, epsilon, reading, padding_token)
    log_probs = at_least_float32(logits).log_softmax(dim=-1)
    target = parts.one_hot + parts.share
    losses = (torch.special.xlogy(target, target) - target * log_probs).sum(dim=-1)
    return losses.masked_fill(~parts.scored, 0.0).sum() / parts.scored.sum()


@held_out(
    "smoothed_cross_entropy", "review practice", r"sequence|mean of means|length|weigh|average|row"
)
def smoothed_mean_of_sequence_means(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: Reading = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Averages each sequence and then the averages, so tokens of short sequences weigh more."""
    parts = _parts(logits, labels, epsilon, reading, padding_token)
    log_probs = at_least_float32(logits).log_softmax(dim=-1)
    losses = -((parts.one_hot + parts.share) * log_probs).sum(dim=-1)
    losses = losses.masked_fill(~parts.scored, 0.0)
    if labels.ndim == 0:
        return losses
    counts = parts.scored.sum(dim=-1)
    means = losses.sum(dim=-1) / counts.clamp(min=1)
    return means.sum() / (counts > 0).sum()


@held_out(
    "smoothed_cross_entropy",
    "fastai/fastai, pull 1814",
    r"others|right (one|token)|share|V - 1|keeps|sum",
)
def smoothed_others_and_the_right_one(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: Reading = "all",
    padding_token: int | None = None,
) -> Tensor:
    """With the reading "others", gives a share of the others' size to the right token, too."""
    parts = _parts(logits, labels, epsilon, reading, padding_token)
    log_probs = at_least_float32(logits).log_softmax(dim=-1)
    share = parts.share
    if reading == "others":
        share = torch.full_like(share, epsilon / (logits.shape[-1] - 1))
    losses = -((parts.one_hot + share) * log_probs).sum(dim=-1)
    return losses.masked_fill(~parts.scored, 0.0).sum() / parts.scored.sum()


@held_out(
    "smoothed_cross_entropy",
    "review practice",
    r"log_?softmax|underflow|floor|clamp|large|extreme|confident|far",
)
def smoothed_log_of_floored_probabilities(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: Reading = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Takes the logarithm of probabilities of at least 1e-7, so no token costs more than 16.2."""
    parts = _parts(logits, labels, epsilon, reading, padding_token)
    log_probs = at_least_float32(logits).softmax(dim=-1).clamp(min=1e-7).log()
    losses = -((parts.one_hot + parts.share) * log_probs).sum(dim=-1)
    return losses.masked_fill(~parts.scored, 0.0).sum() / parts.scored.sum()
