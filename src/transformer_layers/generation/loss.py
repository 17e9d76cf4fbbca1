"""What a language model is trained on."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_layers.generation.decoder import Decoder, require_tokens
from transformer_layers.precision import at_least_float32
from transformer_layers.validation import require_integers


def next_token_loss(  # noqa: D417  # a method of models, whose first argument is the model
    model: Decoder, ids: Int[Tensor, "*batch seq"]
) -> Float[Tensor, ""]:
    r"""Mean cross-entropy of each token after the first, given those before it, in nats.

    .. math::
        L = -\frac{1}{B (S - 1)} \sum_b \sum_{s=1}^{S-1} \log p(\mathrm{ids}_{b, s+1}
        \mid \mathrm{ids}_{b, 1}, \dots, \mathrm{ids}_{b, s})

    The logits at a position are held against the token at the next one. float16 and bfloat16
    logits are summed up in float32.

    Args:
        ids: Tokens, int64 or int32 of shape `(..., seq)`; seq is at most one more than the model
            takes.

    Returns:
        A scalar.

    Raises:
        TypeError: If `ids` are not int64 or int32.
        ValueError: If there is nothing to predict, a sequence is too long, or an id is not in
            the vocabulary.
    """
    require_integers("ids", ids)
    if ids.ndim == 0 or ids.shape[-1] < 2 or ids.numel() == 0:
        raise ValueError(
            "ids must hold a sequence of two tokens or more, so that there is one to predict; "
            f"got shape {tuple(ids.shape)}"
        )
    scores = at_least_float32(model(ids[..., :-1]))
    _look_up(ids[..., -1:], scores)  # cross_entropy would leave out a -100
    following = ids[..., 1:].flatten().long()
    return nn.functional.cross_entropy(scores.flatten(0, -2), following)


def _look_up(ids: Tensor, scores: Tensor) -> None:
    try:
        scores[..., -1, :].detach().gather(-1, ids.long())
    except (IndexError, RuntimeError):
        require_tokens(ids, scores.shape[-1])
        raise
