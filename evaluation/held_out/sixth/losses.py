"""Wrong versions of the cross-entropy with label smoothing."""

import torch
from torch import Tensor

from evaluation.held_out.definitions import held_out
from transformer_layers import smoothed_cross_entropy
from transformer_layers.generation.label_smoothing import Reading
from transformer_layers.precision import at_least_float32


@held_out(
    "smoothed_cross_entropy",
    "review practice: probabilities that sum to more than one",
    r"sum|1 - eps|epsilon|right token|right one|probability|probabilities|target",
)
def nothing_taken_from_the_right_token(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: Reading = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Gives epsilon to the others and takes it from no one: the right token keeps all of its 1."""
    smooth = smoothed_cross_entropy(logits, labels, epsilon, reading, padding_token)
    plain = smoothed_cross_entropy(logits, labels, 0.0, "all", padding_token)
    return smooth + epsilon * plain


@held_out(
    "smoothed_cross_entropy",
    "tinygrad/tinygrad, pull request 3570",
    r"padding|ignor|scored|uniform|not counted|masked",
)
def uniform_part_of_padding(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: Reading = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Adds the part that all tokens share at positions of padding, too."""
    loss = smoothed_cross_entropy(logits, labels, epsilon, reading, padding_token)
    if padding_token is None or reading != "all":
        return loss
    padded = labels == padding_token
    shares = -at_least_float32(logits).log_softmax(dim=-1).mean(dim=-1)
    return loss + epsilon * shares.masked_fill(~padded, 0.0).sum() / (~padded).sum()


@held_out(
    "smoothed_cross_entropy",
    "OpenNMT/OpenNMT, issue 570",
    r"others|V - 1|share|reading|sum|vocab",
)
def others_given_a_share_of_all(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: Reading = "all",
    padding_token: int | None = None,
) -> Tensor:
    """In the reading `others` gives each of the others epsilon / V, which leaves a part over."""
    if reading != "others" or logits.shape[-1] < 2:
        return smoothed_cross_entropy(logits, labels, epsilon, reading, padding_token)
    vocab_size = logits.shape[-1]
    smooth = smoothed_cross_entropy(logits, labels, epsilon, reading, padding_token)
    plain = smoothed_cross_entropy(logits, labels, 0.0, reading, padding_token)
    right = (1 - epsilon) * plain
    return right + (smooth - right) * (vocab_size - 1) / vocab_size


@held_out(
    "smoothed_cross_entropy",
    "review practice: sequences of unlike lengths in one mean",
    r"sequence|length|mean of means|average|weigh|batch|token",
)
def mean_of_the_means_of_sequences(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: Reading = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Averages each sequence, then the sequences, so that tokens of short ones weigh more."""
    if labels.ndim != 2 or padding_token is None or not (labels != padding_token).any(1).all():
        return smoothed_cross_entropy(logits, labels, epsilon, reading, padding_token)
    rows = zip(logits, labels, strict=True)
    losses = [smoothed_cross_entropy(*row, epsilon, reading, padding_token) for row in rows]
    return torch.stack(losses).mean()
