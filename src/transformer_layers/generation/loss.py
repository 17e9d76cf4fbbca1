"""What a language model is trained on."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer_layers.generation.decoder import Decoder, require_tokens
from transformer_layers.precision import at_least_float32
from transformer_layers.validation import require_integers

_NOT_SCORED = -100  # what torch's cross-entropy leaves out


def next_token_loss(  # noqa: D417  # a method of models, whose first argument is the model
    model: Decoder,
    ids: Int[Tensor, "*batch seq"],
    labels: Int[Tensor, "*batch seq"] | None = None,
    *,
    mask: Bool[Tensor, "batch *q_seq seq"] | None = None,
    positions: Int[Tensor, "*batch seq"] | None = None,
) -> Float[Tensor, ""]:
    r"""Mean cross-entropy of each token after the first, given those before it, in nats.

    .. math::
        L = -\frac{1}{|T|} \sum_{(b, s) \in T} \log p(\mathrm{ids}_{b, s+1}
        \mid \mathrm{ids}_{b, 1}, \dots, \mathrm{ids}_{b, s})

    Without labels the positions T are all but the last. The logits at a position are held against
    the token at the next one. float16 and bfloat16 logits are summed up in float32.

    With labels T are the positions whose next label is not -100: padding has that label, and in
    fine-tuning so has the prompt. The mean is over what is scored. So the mean of two batches'
    losses is that of both together only where both score as many tokens.

    Args:
        ids: Tokens, int64 or int32 of shape `(..., seq)`; seq is at most one more than the model
            takes.
        labels: The same tokens, not shifted, of the shape of `ids` and of an integer dtype, with
            -100 for each that is not scored. The first of a sequence is never scored. `ids` if not
            given.
        mask: What the positions of `ids` may attend to, as the model's `forward` takes it: of shape
            `(batch, seq)` or `(batch, seq, seq)`. All before them if not given.
        positions: Position ids of all of `ids`, as there; 0, 1, 2, ... if not given.

    Returns:
        A scalar.

    Raises:
        TypeError: If `ids` or `labels` are not int64 or int32.
        ValueError: If there is nothing to predict, a sequence is too long, an id or a label is
            not in the vocabulary, or the shapes differ.

    Examples:
        >>> import torch
        >>> from transformer_layers import GPT2, GPT2Config
        >>> config = GPT2Config(vocab_size=50, n_positions=16, n_embd=12, n_layer=2, n_head=3)
        >>> model = GPT2(config).eval()
        >>> ids = torch.tensor([[3, 14, 15, 9], [26, 5, 0, 0]])
        >>> labels = ids.masked_fill(ids == 0, -100)
        >>> expected = (3 * model.loss(ids[:1]) + model.loss(ids[1:, :2])) / 4
        >>> torch.allclose(model.loss(ids, labels), expected)
        True
    """
    require_integers("ids", ids)
    if ids.ndim == 0 or ids.shape[-1] < 2 or ids.numel() == 0:
        raise ValueError(
            "ids must hold a sequence of two tokens or more, so that there is one to predict; "
            f"got shape {tuple(ids.shape)}"
        )
    if labels is not None:
        _require_labels(labels, ids)
    given = _of_all_but_the_last(mask, positions)
    scores = at_least_float32(model(ids[..., :-1], **given))
    _look_up(ids[..., -1:], scores)  # cross_entropy would leave out a -100
    following = (ids if labels is None else labels)[..., 1:].flatten().long()
    try:
        return nn.functional.cross_entropy(scores.flatten(0, -2), following)
    except (IndexError, RuntimeError):
        require_tokens(following[following != _NOT_SCORED], scores.shape[-1], "labels")
        raise


def _of_all_but_the_last(mask: Tensor | None, positions: Tensor | None) -> dict[str, Tensor]:
    """What the model is told of the tokens that it reads: no decoder needs to know what is not."""
    given = {}
    if mask is not None:
        given["mask"] = mask[..., :-1, :-1] if mask.ndim == 3 else mask[..., :-1]
    if positions is not None:
        given["positions"] = positions[..., :-1]
    return given


def _require_labels(labels: Tensor, ids: Tensor) -> None:
    require_integers("labels", labels)
    if labels.shape != ids.shape:
        raise ValueError(
            "labels must be of the shape of ids, one for each token and not shifted, got "
            f"{tuple(labels.shape)} for {tuple(ids.shape)}"
        )
    has_values = not torch.compiler.is_compiling() and not labels.is_meta
    if has_values and (labels[..., 1:] == _NOT_SCORED).all():
        raise ValueError(
            f"labels must score a token after the first, got {_NOT_SCORED} for all of "
            f"{tuple(labels.shape)}"
        )


def _look_up(ids: Tensor, scores: Tensor) -> None:
    try:
        scores[..., -1, :].detach().gather(-1, ids.long())
    except (IndexError, RuntimeError):
        require_tokens(ids, scores.shape[-1])
        raise
