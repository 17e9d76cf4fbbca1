"""Cross-entropy against labels that leave some probability to other tokens."""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer_layers.generation.decoder import require_tokens
from transformer_layers.precision import at_least_float32
from transformer_layers.validation import require_floating, require_integers, require_probability

Reading = Literal["all", "others", "others_but_padding"]
READINGS = ("all", "others", "others_but_padding")


def smoothed_cross_entropy(
    logits: Float[Tensor, "*batch vocab_size"],
    labels: Int[Tensor, "*batch"],
    epsilon: float,
    reading: Reading = "all",
    padding_token: int | None = None,
) -> Float[Tensor, ""]:
    r"""Mean cross-entropy with label smoothing, in nats; labels of padding are not scored.

    Section 7 of https://arxiv.org/abs/1512.00567, used in section 5.4 of
    https://arxiv.org/abs/1706.03762 with :math:`\epsilon = 0.1`.

    .. math::
        L = -\frac{1}{|T|} \sum_{t \in T} \sum_v q_{tv} \log p_{tv}

    Works differ in where :math:`\epsilon` goes:

    * `all`: to all tokens alike, the right one among them, as in the paper that it comes from, in
      `torch.nn.functional.cross_entropy` and in `transformers`. The right one keeps
      :math:`1 - \epsilon + \epsilon / V`.
    * `others`: to the :math:`V - 1` other tokens, as in fairseq. The right one keeps
      :math:`1 - \epsilon`.
    * `others_but_padding`: to the :math:`V - 2` that are neither the right one nor padding, as in
      the Annotated Transformer.

    Args:
        logits: Score of each token, shape `(..., vocab_size)`.
        labels: The right tokens, int64 or int32 of shape `(...)`.
        epsilon: What is taken from the right token.
        reading: Which tokens share it.
        padding_token: A label that is not scored; all are if not given.

    Returns:
        A scalar; float16 and bfloat16 are summed up in float32.

    Raises:
        TypeError: If `logits` are not floating point, or `labels` not int64 or int32.
        ValueError: If there is nothing to score, a label is not in the vocabulary, `epsilon` not
            within [0, 1], no token is left to share it, or there is no such reading.

    Examples:
        >>> logits, labels = torch.zeros(1, 4), torch.tensor([2])
        >>> round(smoothed_cross_entropy(logits, labels, epsilon=0.1).item(), 4)  # ln 4
        1.3863
    """
    require_floating("logits", logits)
    require_integers("labels", labels)
    require_probability("epsilon", epsilon)
    if logits.shape[:-1] != labels.shape:
        raise ValueError(
            "labels must have the shape of logits without its last axis, got "
            f"{tuple(labels.shape)} for {tuple(logits.shape)}"
        )
    if reading not in READINGS:
        raise ValueError(f"reading must be one of {', '.join(READINGS)}, got {reading!r}")
    if reading == "others_but_padding" and padding_token is None:
        raise ValueError("others_but_padding needs a padding_token, got None")
    scored = torch.ones_like(labels, dtype=torch.bool)
    if padding_token is not None:
        scored = labels != padding_token
    _require_labels(labels, scored, logits.shape[-1])
    right = labels.masked_fill(~scored, 0).long()[..., None]
    log_probs = at_least_float32(logits).log_softmax(dim=-1)
    vocab_size = logits.shape[-1]
    share = torch.ones_like(log_probs)
    if reading != "all":
        share = share.scatter(-1, right, 0.0)
    if reading == "others_but_padding":
        share[..., padding_token] = 0.0
    sharing = vocab_size - READINGS.index(reading)
    if sharing < 1:
        raise ValueError(
            f"{reading} leaves no token to share epsilon, of vocab_size = {vocab_size}"
        )
    target = share * (epsilon / sharing)
    target = target.scatter_add(-1, right, torch.full_like(target[..., :1], 1 - epsilon))
    losses = -(target * log_probs).sum(dim=-1)
    return losses.masked_fill(~scored, 0.0).sum() / scored.sum()


def _require_labels(labels: Tensor, scored: Tensor, vocab_size: int) -> None:
    if labels.is_meta or torch.compiler.is_compiling():
        return
    if not scored.any():
        raise ValueError(f"there must be a label to score, got {scored.numel()} of padding")
    require_tokens(labels[scored], vocab_size, "labels")
