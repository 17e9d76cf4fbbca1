"""The small translators of the pages: the same on every page, whatever a page has drawn before."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim.swa_utils import AveragedModel

from transformer_layers import Transformer, TransformerConfig, attention_weights
from transformer_layers.attention.heads import split_heads
from transformer_layers.attention.multi_head import MultiHeadAttention
from transformer_layers.generation.beam_search import LengthPenalty
from transformer_layers.generation.evaluation import evaluating
from transformer_training.toy_language.model import by_itself
from transformer_training.toy_translation.ablations import ABLATIONS
from transformer_training.toy_translation.language import (
    END,
    PADDING,
    START,
    WORDS,
    batch,
    decode,
    draw,
    held_out,
    source_mask,
)

_LONGEST = 10  # tokens of a sentence, with the one that ends it
_APART = 10  # updates from one checkpoint to the next


def trained_translator(
    without: str | None = None,
    *,
    num_layers: int = 1,
    num_heads: int = 2,
    d_model: int = 32,
    d_ff: int = 64,
    steps: int = 400,
    batch_size: int = 64,
    lr: float = 5e-3,
    epsilon: float = 0.0,
    dropout: float = 0.0,
    sentences: int | None = None,
    checkpoints: int = 1,
    seed: int = 0,
) -> Transformer:
    """Trains a small Transformer to translate, with a part taken out if one is named.

    It is the same model wherever it is trained: it is seeded by itself and trained in float64.
    Torch's generators are left as they were. The model comes back in torch's default dtype.

    Args:
        without: The part that is taken out before training, a name in `ABLATIONS`; none if not
            given.
        num_layers: Layers of the encoder, and of the decoder.
        num_heads: Heads of each attention, a divisor of `d_model`.
        d_model: Features of a position.
        d_ff: Size inside the feed-forward networks.
        steps: Updates. The learning rate rises in the first tenth of them, and falls in a line.
        batch_size: Pairs of each update.
        lr: Highest learning rate of Adam.
        epsilon: Of label smoothing.
        dropout: Share that is dropped in training.
        sentences: How many pairs it learns from; all that are not held out, if not given.
        checkpoints: The weights are the mean of those of so many checkpoints, ten updates apart,
            the last one behind the last update.
        seed: Of the first weights and of the pairs.

    Returns:
        The model, in evaluation mode.

    Raises:
        ValueError: If no part has the name, or there are not as many pairs or checkpoints.

    Examples:
        >>> trained_translator(steps=0).config.d_model
        32
    """
    if without is not None and without not in ABLATIONS:
        raise ValueError(f"the parts are {', '.join(ABLATIONS)}; got {without!r}")
    if not 1 <= checkpoints <= max(1, steps // _APART):
        raise ValueError(
            f"{steps} updates have {max(1, steps // _APART)} checkpoints, {_APART} updates apart; "
            f"got {checkpoints}"
        )
    make = Transformer if without is None else ABLATIONS[without]
    with by_itself(seed) as dtype:
        model = make(
            TransformerConfig(
                len(WORDS),
                d_model,
                num_layers,
                num_heads,
                d_ff,
                dropout=dropout,
                start_token=START,
                end_token=END,
                padding_token=PADDING,
            )
        )
        learning = [each for each in model.parameters() if each.requires_grad]
        optimizer = torch.optim.Adam(learning, lr=lr, betas=(0.9, 0.98), eps=1e-9, fused=True)
        averaged = AveragedModel(model)  # changes nothing, and draws nothing
        for step in range(1, steps + 1):
            for group in optimizer.param_groups:
                group["lr"] = lr * min(10 * step / steps, (steps + 1 - step) / (0.9 * steps))
            source_ids, target_ids = draw(batch_size, among=sentences)
            loss = model.loss(source_ids, target_ids, source_mask(source_ids), epsilon)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            left = (steps - step) // _APART
            if (steps - step) % _APART == 0 and left < checkpoints:
                averaged.update_parameters(model)
        if checkpoints > 1:
            model.load_state_dict(averaged.module.state_dict())
        trained = model.eval().to(dtype)  # here, where no inference mode makes it untrainable
    return trained


def translated(
    model: Transformer,
    texts: Sequence[str],
    beams: int = 1,
    length_penalty: float | LengthPenalty = 0.0,
) -> list[str]:
    """What a model makes of sentences.

    Args:
        model: A translator of :func:`trained_translator`.
        texts: English sentences.
        beams: How many beginnings are kept, see `Transformer.generate`.
        length_penalty: See there.

    Returns:
        Its translations.

    Raises:
        ValueError: If there is no sentence, or the language lacks a word.

    Examples:
        >>> translated(trained_translator(steps=200), ["the cat near the dogs today is old ."])
        ['heute ist die Katze bei den Hunden alt .']
    """
    source_ids = batch(texts)
    mask = source_mask(source_ids)
    ids = model.generate(source_ids, _LONGEST, beams, length_penalty, source_mask=mask)
    return [decode(row) for row in ids]


def share_exact(
    model: Transformer,
    kind: str | None = None,
    beams: int = 1,
    length_penalty: float | LengthPenalty = 0.0,
) -> float:
    """The share of held-out sentences that a model translates without a mistake.

    Args:
        model: A translator.
        kind: Of sentences, one of `toy_language.VERBS`; all if not given.
        beams: See :func:`translated`.
        length_penalty: See `Transformer.generate`.

    Returns:
        The share, from 0 to 1.

    Raises:
        ValueError: If no kind has the name.
    """
    asked = [pair for pair in held_out() if kind is None or pair.kind == kind]
    if not asked:
        kinds = dict.fromkeys(pair.kind for pair in held_out())
        raise ValueError(f"the kinds are {', '.join(kinds)}; got {kind!r}")
    found = translated(model, [pair.source for pair in asked], beams, length_penalty)
    right = sum(text == pair.target for text, pair in zip(found, asked, strict=True))
    return right / len(asked)


@torch.no_grad()
def attention_to_source(
    model: Transformer, source: str, target: str
) -> Float[Tensor, "layers heads target_seq source_seq"]:
    """The weights of the attention by which each word of a target is found in the source.

    Args:
        model: A translator.
        source: An English sentence.
        target: A German one, which the model reads.

    Returns:
        Of each layer and head, a row for each word of the target and for `END`: with what weights
        the words of the source, and its `END`, are read when that word is predicted.

    Raises:
        ValueError: If a language lacks a word.

    Examples:
        >>> weights = attention_to_source(trained_translator(steps=0), "the cat .", "die Katze .")
        >>> weights.shape, round(weights.sum(dim=-1).mean().item(), 4)
        (torch.Size([1, 2, 4, 4]), 1.0)
    """
    found = []

    def note(attention: MultiHeadAttention, inputs: tuple[Tensor, ...]) -> None:
        query, key = attention.query_proj(inputs[0]), attention.key_proj(inputs[1])
        heads = attention.num_heads
        found.append(attention_weights(split_heads(query, heads), split_heads(key, heads))[0])

    attentions = [layer.get_submodule("cross_attention") for layer in model.decoder.layers]
    hooks = [attention.register_forward_pre_hook(note) for attention in attentions]
    try:
        with evaluating(model) as evaluated:
            evaluated(batch([source]), evaluated.shifted(batch([target])))
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(found)
