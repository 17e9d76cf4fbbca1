"""Known wrong versions of `smoothed_cross_entropy`."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from layer_checks.checks.label_smoothing import smoothed_cross_entropy
from transformer_layers.precision import at_least_float32

_FAIRSEQ = "fairseq, label_smoothed_cross_entropy, where it is meant"
_ANNOTATED = "the Annotated Transformer, LabelSmoothing, the_annotated_transformer.py"


@dataclass(frozen=True)
class _Labels:
    """What a right version is made of."""

    log_probs: Tensor
    labels: Tensor
    scored: Tensor

    @property
    def right(self) -> Tensor:
        """Of the right tokens; of any token where there is padding."""
        return self.log_probs.gather(-1, self.labels[:, None]).squeeze(-1)

    @property
    def all(self) -> Tensor:
        """Of all tokens, added up."""
        return self.log_probs.sum(dim=-1)

    @property
    def vocab_size(self) -> int:
        """How many tokens there are."""
        return self.log_probs.shape[-1]

    def mean(self, losses: Tensor) -> Tensor:
        """Over what is scored."""
        return losses[self.scored].mean()


def _read(logits: Tensor, labels: Tensor, epsilon: float, padding_token: int | None) -> _Labels:
    """Refuses what cannot be scored, and takes the logarithms."""
    vocab_size = logits.shape[-1]
    log_probs = at_least_float32(logits).log_softmax(dim=-1).reshape(-1, vocab_size)
    labels = labels.flatten().long()
    scored = torch.ones_like(labels, dtype=torch.bool)
    if padding_token is not None:
        scored = labels != padding_token
    if not scored.any() or not 0 <= epsilon <= 1:
        raise ValueError("there is nothing to score, or epsilon is no probability")
    if bool(((labels < 0) | (labels >= vocab_size))[scored].any()):
        raise ValueError(f"a label is not below {vocab_size}")
    return _Labels(log_probs, labels.where(scored, 0), scored)


def _shared(read: _Labels, epsilon: float, reading: str, padding_token: int | None) -> Tensor:
    """The loss of each label."""
    others, sharing = read.all, read.vocab_size
    if reading != "all":
        others, sharing = others - read.right, sharing - 1
    if reading == "others_but_padding":
        others, sharing = others - read.log_probs[:, padding_token or 0], sharing - 1
    return -(1 - epsilon) * read.right - epsilon / sharing * others


@smoothed_cross_entropy.right_otherwise
def _right(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """A right one."""
    read = _read(logits, labels, epsilon, padding_token)
    return read.mean(_shared(read, epsilon, reading, padding_token))


@smoothed_cross_entropy.wrong(
    "add epsilon / V to what the right token keeps: probabilities that are set to 1 - epsilon sum "
    "to less than 1.",
)
def sums_to_less_than_one(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Gives epsilon / V to the other tokens and nothing of epsilon to the right one."""
    read = _read(logits, labels, epsilon, padding_token)
    if reading != "all":
        return read.mean(_shared(read, epsilon, reading, padding_token))
    others = read.all - read.right
    return read.mean(-(1 - epsilon) * read.right - epsilon / read.vocab_size * others)


@smoothed_cross_entropy.wrong(
    "divide epsilon by as many tokens as share it: V shares of epsilon / (V - 1) sum to more than "
    "epsilon.",
    published="bys0318/SQUIRE, https://github.com/bys0318/SQUIRE/issues/8",
)
def sums_to_more_than_one(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Gives epsilon / (V - 1) to all V tokens."""
    read = _read(logits, labels, epsilon, padding_token)
    if reading != "all":
        return read.mean(_shared(read, epsilon, reading, padding_token))
    share = epsilon / (read.vocab_size - 1)
    return read.mean(-(1 - epsilon) * read.right - share * read.all)


@smoothed_cross_entropy.wrong(
    "share epsilon among all V tokens, the right one too, unless another reading is asked for.",
    published=_FAIRSEQ,
)
def others_always(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Shares epsilon among the V - 1 other tokens."""
    reading = "others" if reading == "all" else reading
    return _right(logits, labels, epsilon, reading, padding_token)


@smoothed_cross_entropy.wrong("read the argument: each reading has other tokens that share.")
def reading_ignored(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Takes a reading and shares among all tokens."""
    return _right(logits, labels, epsilon, "all", padding_token)


@smoothed_cross_entropy.wrong(
    "give padding no share in the third reading: nobody is to write it.",
)
def padding_has_a_share(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Shares epsilon among all tokens but the right one, divided by V - 2."""
    read = _read(logits, labels, epsilon, padding_token)
    if reading != "others_but_padding":
        return read.mean(_shared(read, epsilon, reading, padding_token))
    share = epsilon / (read.vocab_size - 2)
    return read.mean(-(1 - epsilon) * read.right - share * (read.all - read.right))


@smoothed_cross_entropy.wrong(
    "leave labels of padding out, of the sum and of the number that it is divided by.",
    published="bert-summarizer, https://github.com/k-tahiro/bert-summarizer/pull/41",
)
def padding_scored(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Takes padding for a token like any other."""
    read = _read(logits, labels, epsilon, None)
    return read.mean(_shared(read, epsilon, reading, padding_token))


@smoothed_cross_entropy.wrong(
    "leave labels of padding out of the smoothing term too.",
    published="torch before 1.12, CrossEntropyLoss, https://github.com/pytorch/pytorch/issues/73205",
)
def padding_smoothed(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Leaves padding out of the likelihood alone."""
    read = _read(logits, labels, epsilon, padding_token)
    losses = _shared(read, epsilon, reading, padding_token)
    if reading != "all":
        return read.mean(losses)
    of_padding = -epsilon * read.all[~read.scored].sum() / read.vocab_size
    return read.mean(losses) + of_padding / read.scored.sum()


@smoothed_cross_entropy.wrong(
    "divide by the number of labels that are scored, not by that of all.",
    published="transformers, label_smoothed_nll_loss of its examples, "
    "https://github.com/huggingface/transformers/pull/5919",
)
def divided_by_all_labels(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Counts padding where the sum is divided."""
    read = _read(logits, labels, epsilon, padding_token)
    losses = _shared(read, epsilon, reading, padding_token)
    return losses[read.scored].sum() / read.scored.numel()


@smoothed_cross_entropy.wrong(
    "divide the sum by the number of labels: else the loss grows with the batch.",
    published="transformers, label_smoothed_nll_loss of its examples, "
    "https://github.com/huggingface/transformers/issues/7546",
)
def sum_for_mean(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Adds the losses up."""
    read = _read(logits, labels, epsilon, padding_token)
    return _shared(read, epsilon, reading, padding_token)[read.scored].sum()


@smoothed_cross_entropy.wrong(
    "divide by the number of labels alone: the mean over all elements is V times smaller.",
    published='torch, KLDivLoss with reduction="mean", '
    "https://github.com/pytorch/pytorch/issues/2259",
)
def mean_over_the_vocabulary(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Divides by the number of labels times that of tokens."""
    return _right(logits, labels, epsilon, reading, padding_token) / logits.shape[-1]


@smoothed_cross_entropy.wrong(
    "smooth the labels, not the predictions: the logarithm is of p itself.",
)
def predictions_smoothed(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Takes the logarithm of a smoothed probability of the right token."""
    read = _read(logits, labels, epsilon, padding_token)
    smoothed = (1 - epsilon) * read.right.exp() + epsilon / read.vocab_size
    return read.mean(-smoothed.log())


@smoothed_cross_entropy.wrong(
    "let the right token keep 1 - epsilon, and the others share epsilon.",
    name="epsilon for 1 - epsilon",
)
def epsilon_kept(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Takes epsilon for what the right token keeps."""
    return _right(logits, labels, 1 - epsilon, reading, padding_token)


@smoothed_cross_entropy.wrong(
    "return the cross-entropy: the divergence is less by the entropy of the smoothed labels.",
    name="divergence for cross-entropy",
    published=f"{_ANNOTATED}, where it is meant",
)
def divergence(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Subtracts the entropy of the smoothed labels, which no gradient shows."""
    vocab_size = logits.shape[-1]
    sharing = vocab_size - {"all": 0, "others": 1, "others_but_padding": 2}[reading]
    kept = 1 - epsilon + (epsilon / vocab_size if reading == "all" else 0.0)
    shares = [epsilon / sharing] * (sharing - 1 if reading == "all" else sharing)
    entropy = torch.special.entr(torch.tensor([kept, *shares], dtype=torch.float64)).sum()
    loss = _right(logits, labels, epsilon, reading, padding_token)
    return loss - entropy.to(loss)


@smoothed_cross_entropy.wrong(
    "take log_softmax: the logarithm of a probability that is rounded to 0 is infinite.",
    name="logarithm of the softmax",
    published=f"{_ANNOTATED}, in its example, "
    "https://github.com/harvardnlp/annotated-transformer/issues/109",
)
def logarithm_of_the_softmax(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Takes the softmax first and the logarithm then."""
    logs = at_least_float32(logits).softmax(dim=-1).log()
    return _right(logs, labels, epsilon, reading, padding_token)


@smoothed_cross_entropy.wrong(
    "put the vocabulary on the last axis: torch's loss takes it from the second one.",
    name="vocabulary on the second axis",
)
def vocabulary_on_the_second_axis(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Takes the second axis for that of the tokens, as torch does."""
    return _right(logits.movedim(1, -1), labels, epsilon, reading, padding_token)


@smoothed_cross_entropy.wrong(
    "convert float16 and bfloat16 to float32 before the softmax: a sum of many labels is rounded.",
)
def computed_in_half_precision(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Has the dtype of the logits."""
    logs = logits.log_softmax(dim=-1)
    return _right(logs, labels, epsilon, reading, padding_token).to(logits.dtype)


@smoothed_cross_entropy.wrong(
    "refuse labels of which none is scored: the mean of nothing is NaN.",
    name="NaN where nothing is scored",
    published="torch, nn.functional.cross_entropy, where it is meant",
)
def nan_of_nothing(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Returns NaN where all labels are padding."""
    if padding_token is not None and bool((labels == padding_token).all()):
        return functional.cross_entropy(logits, labels, ignore_index=padding_token)
    return _right(logits, labels, epsilon, reading, padding_token)


@smoothed_cross_entropy.wrong("divide by the number of labels: the last chunk has fewer.")
def mean_of_the_means_of_chunks(
    logits: Tensor,
    labels: Tensor,
    epsilon: float,
    reading: str = "all",
    padding_token: int | None = None,
) -> Tensor:
    """Averages the means of 64 labels each, of which the last are fewer."""
    read = _read(logits, labels, epsilon, padding_token)
    losses = _shared(read, epsilon, reading, padding_token)[read.scored]
    return torch.stack([chunk.mean() for chunk in losses.split(64)]).mean()
