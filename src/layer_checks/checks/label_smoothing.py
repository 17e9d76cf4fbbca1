"""The checks of `smoothed_cross_entropy`, against `torch.nn.functional.cross_entropy`."""

import inspect
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from layer_checks.evidence.evidence import Evidence, equivalent, holds, raises
from layer_checks.evidence.gradients import same_gradients
from layer_checks.kit.arguments import CannotTakeError, signature_of
from layer_checks.kit.candidates import outputs_and_gradients, randn64
from layer_checks.kit.definitions import Candidate, Form, Layer
from layer_checks.kit.probes import Probing, probe

# 7 labels out of 5 tokens, of which one is padding: neither the first nor the last.
_LABELS, _VOCAB_SIZE, _PADDING = 7, 5, 3
_EPSILON = 0.3


def _others(logits: Tensor, labels: Tensor, epsilon: float, but: int | None = None) -> Tensor:
    """With epsilon to the other tokens, but one: torch's loss of these probabilities."""
    vocab_size = logits.shape[-1]
    sharing = vocab_size - (1 if but is None else 2)
    target = torch.full_like(logits, epsilon / sharing)
    if but is not None:
        target[:, but] = 0.0
    target.scatter_(1, labels[:, None], 1 - epsilon)
    return functional.cross_entropy(logits, target)


def _inputs() -> tuple[Tensor, Tensor]:
    """Logits, and labels of which none is padding."""
    words = torch.tensor([token for token in range(_VOCAB_SIZE) if token != _PADDING])
    return 2 * randn64(_LABELS, _VOCAB_SIZE), words[torch.randint(len(words), (_LABELS,))]


def _padded() -> tuple[Tensor, Tensor]:
    """The same, with padding in the middle and at the end."""
    logits, labels = _inputs()
    labels[[2, 5, 6]] = _PADDING
    return logits, labels


def _with_padding(candidate: Candidate) -> Callable[..., Tensor]:
    return partial(candidate, epsilon=_EPSILON, padding_token=_PADDING)


def _torch() -> Callable[..., Tensor]:
    return partial(functional.cross_entropy, label_smoothing=_EPSILON, ignore_index=_PADDING)


def _same(
    ours: Callable[..., Tensor],
    theirs: Callable[..., Tensor],
    logits: Tensor,
    labels: Tensor,
    atol: float,
) -> Evidence:
    """Checks that value and gradients are the same."""
    equivalent(ours(logits, labels), theirs(logits, labels), atol=atol)
    return same_gradients(ours, theirs, logits, labels, atol=atol)


def _example(candidate: Candidate) -> object:
    return candidate(torch.randn(3, 4), torch.tensor([1, 0, 3]), epsilon=0.1)


def _probe(candidate: Candidate) -> Iterator[Tensor]:
    yield from outputs_and_gradients(partial(candidate, epsilon=_EPSILON), {}, *_inputs())
    yield candidate(*_inputs(), epsilon=0.0)[None]
    yield candidate(*_inputs(), epsilon=1.0)[None]
    yield from outputs_and_gradients(_with_padding(candidate), {}, *_padded())
    logits, labels = _padded()
    yield candidate(logits, labels, epsilon=_EPSILON, padding_token=0)[None]
    for reading in ("others", "others_but_padding"):
        yield _with_padding(candidate)(*_padded(), reading=reading)[None]


_SYNONYMS: dict[str, list[str]] = {
    "logits": "input inputs x pred preds prediction output outputs y_hat scores".split(),
    "labels": "target targets gold label y trg tgt".split(),
    "epsilon": "label_smoothing smoothing eps eps_ls smooth smooth_eps ls".split(),
    "padding_token": "ignore_index padding_idx pad_idx pad_id pad trg_pad_idx pad_token_id "
    "ignore_id".split(),
}


def _forms(candidate: Candidate) -> Iterator[Form]:
    """That of a module that is built with its smoothing."""
    theirs = signature_of(candidate) if inspect.isclass(candidate) else None
    named = theirs.parameters if theirs is not None else {}
    epsilon_name, padding_name = (
        next((each for each in named if each in {known, *_SYNONYMS[known]}), "")
        for known in ("epsilon", "padding_token")
    )
    if epsilon_name:
        yield Form(
            "a module that is built with its epsilon", _built_with(epsilon_name, padding_name)
        )


def _built_with(epsilon_name: str, padding_name: str) -> Callable[..., Tensor]:
    def call(
        made: Candidate,
        logits: Tensor,
        labels: Tensor,
        epsilon: float,
        reading: str = "all",
        padding_token: int | None = None,
    ) -> Any:
        if reading != "all":
            raise CannotTakeError("it takes no reading", "reading")
        options: dict[str, Any] = {epsilon_name: epsilon}
        if padding_token is not None:
            if not padding_name:
                raise CannotTakeError("it takes no padding_token", "padding_token")
            options[padding_name] = padding_token
        return made(**options)(logits, labels)

    return call


smoothed_cross_entropy = Layer(
    "smoothed_cross_entropy",
    'smoothed_cross_entropy(logits, labels, epsilon, reading="all", padding_token=None)',
    _example,
    probe=_probe,
    synonyms=_SYNONYMS,
    forms=_forms,
    by_name=("reading", "padding_token"),
    not_mistakes={"small values flushed to zero"},  # they move it by as little as they are
)


@smoothed_cross_entropy.check("Where all logits are equal, it is ln V.", weak=True)
def equal_logits(candidate: Candidate) -> Evidence:
    logits, labels = torch.zeros(3, 4, dtype=torch.float64), torch.tensor([1, 0, 3])
    return equivalent(candidate(logits, labels, epsilon=0.1), math.log(4), atol=1e-12)


@smoothed_cross_entropy.check("With epsilon = 0 it is the cross-entropy.", weak=True)
def no_smoothing(candidate: Candidate) -> Evidence:
    logits, labels = _inputs()
    expected = functional.cross_entropy(logits, labels)
    return equivalent(candidate(logits, labels, epsilon=0.0), expected, atol=1e-12)


@smoothed_cross_entropy.check(
    "With epsilon = 0.3 the value is torch's: of epsilon each of the V tokens has the same share, "
    "the right one too."
)
def values(candidate: Candidate) -> Evidence:
    logits, labels = _inputs()
    expected = functional.cross_entropy(logits, labels, label_smoothing=_EPSILON)
    return equivalent(candidate(logits, labels, epsilon=_EPSILON), expected, atol=1e-12)


@smoothed_cross_entropy.check("So are the gradients of the logits.")
def gradients(candidate: Candidate) -> Evidence:
    theirs = partial(functional.cross_entropy, label_smoothing=_EPSILON)
    return same_gradients(partial(candidate, epsilon=_EPSILON), theirs, *_inputs(), atol=1e-12)


@smoothed_cross_entropy.check(
    "With epsilon = 1 it is the mean over all tokens of -log p, whatever the labels are."
)
def all_smoothed(candidate: Candidate) -> Evidence:
    logits, labels = _inputs()
    expected = -logits.log_softmax(dim=-1).mean()
    try:
        found = candidate(logits, labels, epsilon=1.0)
    except (AssertionError, ValueError) as error:
        raise CannotTakeError("it takes no epsilon of 1") from error
    return equivalent(found, expected, atol=1e-12)


@smoothed_cross_entropy.check(
    "With padding among the labels the value and the gradients are torch's: the mean over the "
    "labels that are none, and gradients of 0 for the others."
)
def padding_not_scored(candidate: Candidate) -> Evidence:
    return _same(_with_padding(candidate), _torch(), *_padded(), atol=1e-12)


@smoothed_cross_entropy.check("So they are with 1,500 tokens, and with 1,025 labels.")
def many_tokens_and_labels(candidate: Candidate) -> Evidence:
    for labels, vocab_size in ((3, 1500), (1025, _VOCAB_SIZE), (512, _VOCAB_SIZE)):
        logits = 2 * randn64(labels, vocab_size)
        targets = torch.randint(vocab_size, (labels,))
        targets[1] = _PADDING
        evidence = _same(_with_padding(candidate), _torch(), logits, targets, atol=1e-12)
    return evidence


@smoothed_cross_entropy.check("Further padding changes nothing, whatever its logits are.")
def more_padding(candidate: Candidate) -> Evidence:
    ours = _with_padding(candidate)
    logits, labels = _padded()
    more = torch.cat([logits, 30 * randn64(4, _VOCAB_SIZE)])
    padded = torch.cat([labels, torch.full((4,), _PADDING)])
    return equivalent(ours(more, padded), ours(logits, labels), atol=1e-12)


@smoothed_cross_entropy.check(
    "Logits of size 1000 give torch's value and gradients: softmax and logarithm are one step."
)
def large_logits(candidate: Candidate) -> Evidence:
    logits, labels = _inputs()
    theirs = partial(functional.cross_entropy, label_smoothing=_EPSILON)
    ours = partial(candidate, epsilon=_EPSILON)
    return _same(ours, theirs, 1000 * logits, labels, atol=1e-9)


@smoothed_cross_entropy.check(
    'With reading="others" epsilon goes to the V - 1 other tokens alone.', kind="contract"
)
def others(candidate: Candidate) -> Evidence:
    logits, labels = _inputs()
    found = candidate(logits, labels, epsilon=_EPSILON, reading="others")
    equivalent(found, _others(logits, labels, _EPSILON), atol=1e-12)
    logits, labels = _padded()
    kept = labels != _PADDING
    found = _with_padding(candidate)(logits, labels, reading="others")
    return equivalent(found, _others(logits[kept], labels[kept], _EPSILON), atol=1e-12)


@smoothed_cross_entropy.check(
    'With reading="others_but_padding" epsilon goes to the V - 2 that are neither the right one '
    "nor padding, and the logit of padding has the gradient of a probability of 0.",
    kind="contract",
)
def others_but_padding(candidate: Candidate) -> Evidence:
    kept = [0, 1, 3, 4]  # which are no padding

    def theirs(logits: Tensor, labels: Tensor) -> Tensor:
        return _others(logits[kept], labels[kept], _EPSILON, but=_PADDING)

    ours = partial(_with_padding(candidate), reading="others_but_padding")
    return _same(ours, theirs, *_padded(), atol=1e-12)


@smoothed_cross_entropy.check(
    "Logits (batch, seq, V) give the mean over all labels, which may be of int32.",
    kind="contract",
)
def leading_axes(candidate: Candidate) -> Evidence:
    # As many positions as tokens: no axis is told from another by its size.
    logits = 2 * randn64(3, _VOCAB_SIZE, _VOCAB_SIZE)
    labels = torch.randint(_VOCAB_SIZE, (3, _VOCAB_SIZE))
    expected = _torch()(logits.flatten(0, 1), labels.flatten())
    return equivalent(_with_padding(candidate)(logits, labels.int()), expected, atol=1e-12)


@smoothed_cross_entropy.check(
    "Of float16 and bfloat16 it is a float32, summed up in float32.", kind="contract"
)
def half_precision(candidate: Candidate) -> Evidence:
    for dtype in (torch.float16, torch.bfloat16):
        logits, labels = _inputs()
        logits = logits.to(dtype)
        expected = functional.cross_entropy(logits.double(), labels, label_smoothing=_EPSILON)
        found = candidate(logits, labels, epsilon=_EPSILON)
        evidence = equivalent(found, expected.float(), rtol=1e-5)
    return evidence


@smoothed_cross_entropy.check(
    "Labels that are all padding, an epsilon above 1 and a label that is no token are refused with "
    "a ValueError.",
    kind="contract",
)
def refused(candidate: Candidate) -> Evidence:
    logits, labels = _inputs()
    ours = _with_padding(candidate)
    raises(ValueError, ours, logits, torch.full_like(labels, _PADDING))
    raises(ValueError, partial(candidate, epsilon=1.5), logits, labels)
    for wrong in (-1, _VOCAB_SIZE):
        raises(ValueError, ours, logits, labels.index_fill(0, torch.tensor([4]), wrong))
    return holds(True, "nothing to score, epsilon=1.5, labels of -1 and V raise ValueError")


def _few(batch: int, seq: int) -> tuple[Tensor, Tensor]:
    return 2 * randn64(batch, seq), torch.randint(seq, (batch,))


probe(
    smoothed_cross_entropy,
    Probing(
        pair=lambda candidate: (
            partial(candidate, epsilon=_EPSILON),
            partial(functional.cross_entropy, label_smoothing=_EPSILON),
        ),
        inputs=_few,
        half=False,  # it is summed up in float32
        batched=False,
    ),
)
