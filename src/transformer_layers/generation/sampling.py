"""Choosing the next token."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_layers.precision import at_least_float32
from transformer_layers.validation import require_floating, require_probability, require_size


def next_token_distribution(
    logits: Float[Tensor, "*batch vocab_size"],
    temperature: float,
    top_k: int | None = None,
    top_p: float | None = None,
    *,
    min_p: float | None = None,
) -> Float[Tensor, "*batch vocab_size"]:
    r"""The probability of each token as the next one.

    .. math::
        p_i = \frac{[i \in A]\, e^{z_i / \tau}}{\sum_{j \in A} e^{z_j / \tau}}

    :math:`z` are the logits and :math:`\tau` the temperature. :math:`A` are all tokens, or those
    that `top_k`, then `top_p`, and then `min_p` leave. `top_k` is the sampling of
    https://arxiv.org/abs/1805.04833, `top_p` the nucleus of eqs. 2 and 3 of
    https://arxiv.org/abs/1904.09751, `min_p` that of https://arxiv.org/abs/2407.01082. The order is
    that of `transformers`.

    Args:
        logits: Score of each token, shape `(..., vocab_size)`.
        temperature: Divides the logits; at 0 the most likely token has probability 1, the first
            one where several are equally likely.
        top_k: If given, only the `top_k` highest logits count, and those that equal the last of
            them after the division.
        top_p: If given, only the fewest most likely tokens count whose probabilities sum to
            `top_p` or more. Of equally likely ones the first counts first.
        min_p: If given, only those tokens count whose probability is at least `min_p` times that of
            the most likely one.

    Returns:
        Probabilities of the shape of `logits`, in its dtype but at least float32; they sum to 1.

    Raises:
        TypeError: If `logits` are not floating point, or `top_k` is no int.
        ValueError: If there is no token, the highest logit of a row is not finite, or an option is
            out of range.

    Examples:
        >>> logits = torch.tensor([0.0, 2.0, 1.0, -1.0]).log_softmax(dim=-1)
        >>> next_token_distribution(logits, temperature=1.0)
        tensor([0.0871, 0.6439, 0.2369, 0.0321])
        >>> next_token_distribution(logits, temperature=0.5, top_k=2)
        tensor([0.0000, 0.8808, 0.1192, 0.0000])
        >>> next_token_distribution(logits, temperature=1.0, top_p=0.9)
        tensor([0.0900, 0.6652, 0.2447, 0.0000])
        >>> next_token_distribution(logits, temperature=1.0, min_p=0.3)
        tensor([0.0000, 0.7311, 0.2689, 0.0000])
    """
    require_sampling(temperature, top_k, top_p, min_p=min_p)
    _require_logits(logits)
    wide = at_least_float32(logits)
    wide = wide - wide.amax(dim=-1, keepdim=True)  # no temperature overflows
    vocab_size = wide.shape[-1]
    if temperature == 0:
        best = wide.argmax(dim=-1)
        return nn.functional.one_hot(best, vocab_size).to(wide.dtype)
    # The dtype would round others to 0 or infinity, for 0 / 0 and inf / inf.
    limits = torch.finfo(wide.dtype)
    wide = wide / min(max(temperature, limits.tiny), limits.max)
    if top_k is not None:
        kth = wide.topk(min(top_k, vocab_size), dim=-1).values[..., -1:]
        wide = wide.masked_fill(wide < kth, -math.inf)
    if top_p is not None:
        ranked, order = wide.sort(dim=-1, descending=True, stable=True)
        # Less than top_p before a token is more than 1 - top_p from it on: a sum
        # of small numbers, which has digits where one near 1 has none left.
        from_here_on = ranked.softmax(dim=-1).flip(-1).cumsum(dim=-1).flip(-1)
        outside = from_here_on <= 1 - top_p
        outside[..., 0] = False  # also where 1 - top_p is rounded to 1
        outside = outside.scatter(-1, order, outside)
        wide = wide.masked_fill(outside, -math.inf)
    if min_p is not None:
        wide = wide.masked_fill(wide.exp() < min_p, -math.inf)  # the highest one is 0
    return wide.softmax(dim=-1)


def next_token(
    logits: Float[Tensor, "*batch vocab_size"],
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    *,
    min_p: float | None = None,
) -> Int[Tensor, "*batch"]:
    """Draws a token from :func:`next_token_distribution`; at temperature 0 the most likely one.

    Args:
        logits: Score of each token, shape `(..., vocab_size)`.
        temperature: Divides the logits.
        top_k: If given, how many tokens to draw from.
        top_p: If given, how much probability to draw from.
        generator: Source of the draws; torch's global one if not given.
        min_p: If given, how much of the highest probability a token must have to be drawn.

    Returns:
        A token for each row of logits, int64 of shape `(...)`.

    Raises:
        TypeError: If `logits` are not floating point, or `top_k` is no int.
        ValueError: If there is no token, the highest logit of a row is not finite, or an option is
            out of range.

    Examples:
        >>> next_token(torch.tensor([[0.0, 2.0, 1.0], [3.0, 2.0, 1.0]]))
        tensor([1, 0])
    """
    if temperature == 0:
        require_sampling(temperature, top_k, top_p, min_p=min_p)
        _require_logits(logits)
        return logits.argmax(dim=-1)
    probabilities = next_token_distribution(logits, temperature, top_k, top_p, min_p=min_p)
    rows = probabilities.reshape(-1, probabilities.shape[-1])
    return torch.multinomial(rows, 1, generator=generator).reshape(logits.shape[:-1])


def penalized(
    logits: Float[Tensor, "*batch vocab_size"], text: Int[Tensor, "*batch seq"], penalty: float
) -> Float[Tensor, "*batch vocab_size"]:
    r"""Logits in which tokens that stand in the text are less likely to come again.

    .. math::
        z'_i = \begin{cases}
            z_i / \theta & i \text{ in the text}, z_i \ge 0 \\
            z_i\, \theta & i \text{ in the text}, z_i < 0 \\
            z_i & \text{else}
        \end{cases}

    It is the penalized sampling of section 4.1 of https://arxiv.org/abs/1909.05858, which divides
    all logits: `transformers` multiplies those below 0, which would become more likely otherwise.
    How often a token stands there makes no difference.

    Args:
        logits: Score of each token, shape `(..., vocab_size)`.
        text: The tokens so far, int64 or int32 of shape `(..., seq)`.
        penalty: :math:`\theta`; above 1 the text is repeated less, below 1 more.

    Returns:
        The shape of `logits`, in its dtype but at least float32.

    Examples:
        >>> penalized(torch.tensor([2.0, -1.0, 2.0, -1.0]), torch.tensor([0, 1, 0]), 2.0)
        tensor([ 1., -2.,  2., -1.])
    """
    wide = at_least_float32(logits)
    met = torch.zeros_like(wide, dtype=torch.bool).scatter(-1, text.long(), True)
    return wide.where(~met, torch.where(wide < 0, wide * penalty, wide / penalty))


def require_sampling(
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    *,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
) -> None:
    """Refuses options of sampling that mean nothing.

    Args:
        temperature: A finite number, 0 or more.
        top_k: None, or 1 or more.
        top_p: None, or above 0 and at most 1.
        min_p: None, or from 0 to 1.
        repetition_penalty: A finite number above 0.

    Raises:
        TypeError: If `top_k` is no int.
        ValueError: If an option is out of range or NaN.
    """
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be 0 or a finite number above, got {temperature}")
    if top_k is not None:
        require_size("top_k", top_k)
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, got {top_p}")
    if min_p is not None:
        require_probability("min_p", min_p)
    if not 0 < repetition_penalty < math.inf:
        raise ValueError(
            f"repetition_penalty must be a finite number above 0, got {repetition_penalty}"
        )


def _require_logits(logits: Tensor) -> None:
    require_floating("logits", logits)
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ValueError(
            f"logits must have a last axis of one token or more, got shape {tuple(logits.shape)}"
        )
    highest = logits.amax(dim=-1)
    bad = highest[~highest.isfinite()]  # a NaN is higher than all other logits
    if bad.numel() > 0:
        raise ValueError(
            f"the highest logit of each row must be finite, got {bad[0].item()} in {bad.numel()} "
            f"of {highest.numel()} rows; no token can be chosen"
        )
