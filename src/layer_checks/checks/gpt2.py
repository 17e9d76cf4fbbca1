"""The checks of `GPT2`, against `torch.nn`."""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.candidates import (
    built,
    counterparts,
    load,
    outputs_and_gradients,
    randomized,
    same,
    weights_of,
)
from layer_checks.checks.gpt2_block import TorchBlock, as_at_the_start, same_state
from layer_checks.definitions import Candidate, Check, Layer
from layer_checks.evidence import Evidence, equivalent, holds, raises
from layer_checks.gradients import same_gradients
from layer_checks.randomness import seeded
from layer_checks.wrong.gpt2 import WRONG_GPT2S
from transformer_layers import GPT2Config, KeyValueCache

_VOCAB_SIZE, _N_POSITIONS, _N_EMBD, _N_LAYER, _N_HEAD, _EPS = 11, 8, 6, 2, 3, 1e-3


def _config(dropout: float = 0.0) -> GPT2Config:
    return GPT2Config(_VOCAB_SIZE, _N_POSITIONS, _N_EMBD, _N_LAYER, _N_HEAD, dropout, _EPS)


class _Authority(nn.Module):
    """The same of torch's embeddings, norms, linear layers and attention kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.wte = nn.Embedding(_VOCAB_SIZE, _N_EMBD, dtype=torch.float64)
        self.wpe = nn.Embedding(_N_POSITIONS, _N_EMBD, dtype=torch.float64)
        self.h = nn.Sequential(*(TorchBlock(_N_EMBD, _N_HEAD, _EPS) for _ in range(_N_LAYER)))
        self.ln_f = nn.LayerNorm(_N_EMBD, _EPS, dtype=torch.float64)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.wte(ids) + self.wpe.weight[: ids.shape[-1]]
        return functional.linear(self.ln_f(self.h(x)), self.wte.weight)

    def loss(self, ids: Tensor) -> Tensor:
        logits = self(ids)[..., :-1, :]
        return functional.cross_entropy(logits.flatten(0, -2), ids[..., 1:].flatten())


@cache  # a module takes as long to build as to run
def _authority() -> _Authority:
    with seeded(0):  # leaves the caller's draws as they are
        return _Authority()


def _pair(candidate: Candidate, dropout: float = 0.0) -> tuple[Any, _Authority]:
    theirs = randomized(_authority())
    ours = built(candidate, _config(dropout)).double()
    return load(ours, weights_of(theirs)), theirs


def _ids(batch: int = 2, seq: int = 5) -> Tensor:
    return torch.randint(_VOCAB_SIZE, (batch, seq))


def _caches() -> list[KeyValueCache]:
    d_k = _N_EMBD // _N_HEAD
    return [
        KeyValueCache(2, _N_HEAD, _N_POSITIONS, d_k, dtype=torch.float64) for _ in range(_N_LAYER)
    ]


def _example(candidate: Candidate) -> object:
    return built(candidate, _config())(_ids())


def _probe(candidate: Candidate) -> list[Tensor]:
    ours, theirs = _pair(candidate)
    ids = _ids()
    found = [
        torch.tensor(len(ours.state_dict())),
        *outputs_and_gradients(ours, weights_of(theirs), ids),
    ]
    caches = _caches()
    try:
        found.append(ours.loss(ids).detach())
        found += [ours(part, caches=caches).detach() for part in ids.split([3, 2], dim=1)]
    except Exception:  # a model without a loss, or without caches, is told by the rest
        return found
    return found


def _output_shape(candidate: Candidate) -> Evidence:
    ids = _ids()
    return same(tuple(built(candidate, _config())(ids).shape), (*ids.shape, _VOCAB_SIZE))


def _number_of_parameters(candidate: Candidate) -> Evidence:
    count = sum(each.numel() for each in built(candidate, _config()).parameters())
    block = 12 * _N_EMBD**2 + 13 * _N_EMBD
    return same(count, (_VOCAB_SIZE + _N_POSITIONS) * _N_EMBD + _N_LAYER * block + 2 * _N_EMBD)


def _first_loss(candidate: Candidate) -> Evidence:
    model: Any = built(candidate, _config()).eval()
    return equivalent(model.loss(_ids()), math.log(_VOCAB_SIZE), atol=0.1)


def _training(candidate: Candidate) -> Evidence:
    model: Any = built(candidate, _config())
    ids = _ids()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        losses.append(model.loss(ids))
        losses[-1].backward()
        optimizer.step()
    return holds(losses[-1] < losses[0], "the loss is smaller after five steps")


def _at_the_start(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    as_at_the_start(theirs)
    load(ours, weights_of(theirs))
    ids = _ids()
    return equivalent(ours(ids), theirs(ids), atol=1e-2)


def _state(candidate: Candidate) -> Evidence:
    return same_state(built(candidate, _config()), _authority())


def _values(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    ids = _ids()
    return equivalent(ours(ids), theirs(ids), atol=1e-12)


def _gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    names = counterparts(ours, weights_of(theirs))
    return same_gradients(ours, theirs, _ids(), atol=1e-11, parameters=names)


def _loss(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    ids = _ids()
    return equivalent(ours.loss(ids), theirs.loss(ids), atol=1e-12)


def _future(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    ids = _ids(seq=6)
    changed = ids.clone()
    changed[:, 4:] = (ids[:, 4:] + 3) % _VOCAB_SIZE
    return equivalent(ours(changed)[:, :4], ours(ids)[:, :4], atol=1e-13)


def _with_caches(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    ids = _ids(seq=6)
    caches = _caches()
    steps = [ours(part, caches=caches) for part in ids.split([3, 2, 1], dim=1)]
    return equivalent(torch.cat(steps, dim=1), theirs(ids), atol=1e-12)


def _evaluation(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, dropout=0.5)
    ids = _ids()
    return equivalent(ours.eval()(ids), theirs(ids), atol=1e-12)


def _all_dropped(candidate: Candidate) -> Evidence:
    # Zeros pass through the residuals; the last norm makes its bias of them.
    ours, theirs = _pair(candidate, dropout=1.0)
    ids = _ids()
    expected = functional.linear(theirs.ln_f.bias, theirs.wte.weight)
    return equivalent(ours.train()(ids), expected.expand(*ids.shape, -1), atol=1e-12)


def _refuses(candidate: Candidate, batches: Sequence[Tensor], what: str) -> Evidence:
    model = built(candidate, _config())
    for ids in batches:
        raises((ValueError, IndexError), model, ids)
    return holds(True, f"{what} raises an error")


def _too_long(candidate: Candidate) -> Evidence:
    return _refuses(candidate, [_ids(seq=_N_POSITIONS + 1)], "n_positions + 1 positions")


def _unknown_ids(candidate: Candidate) -> Evidence:
    batches = [torch.tensor([[0, wrong]]) for wrong in (_VOCAB_SIZE, -1)]
    return _refuses(candidate, batches, f"{_VOCAB_SIZE} or -1 among the ids")


def _one_sequence(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    ids = _ids()
    return equivalent(ours(ids[0]), theirs(ids)[0], atol=1e-12)


def _initial(candidate: Candidate) -> dict[str, Tensor]:
    """Weights as they start in a model that has enough of them to tell a deviation."""
    config = GPT2Config(vocab_size=90, n_positions=50, n_embd=24, n_layer=2, n_head=2)
    return weights_of(built(candidate, config))


def _deviations(candidate: Candidate, std: float, belongs: Callable[[str], bool]) -> Evidence:
    stds = {
        name: float(each.std())
        for name, each in _initial(candidate).items()
        if name.endswith("weight") and belongs(name)
    }
    # The fewest numbers are 576: a deviation that is off by six standard errors.
    wrong = [f"{name} {found:.2g}" for name, found in stds.items() if abs(found / std - 1) > 0.18]
    if wrong or not stds:
        raise AssertionError(f"not equal: {', '.join(wrong) or 'no weights'} against {std:.2g}")
    return holds(True, f"{len(stds)} matrices of standard deviation {std:.2g}")


def _projections(candidate: Candidate) -> Evidence:
    return _deviations(candidate, 0.02 / math.sqrt(4), lambda name: "c_proj" in name)


def _embeddings(candidate: Candidate) -> Evidence:
    return _deviations(candidate, 0.02, lambda name: name in ("wte.weight", "wpe.weight"))


def _blocks_differ(candidate: Candidate) -> Evidence:
    initial = _initial(candidate)
    matrices = [name for name, each in initial.items() if name[:4] == "h.0." and each.ndim == 2]
    alike = [name for name in matrices if torch.equal(initial[name], initial[f"h.1.{name[4:]}"])]
    if alike or not matrices:
        raise AssertionError(f"not different in h.0 and h.1: {alike or 'no matrices'}")
    return holds(True, f"{len(matrices)} matrices differ between h.0 and h.1")


GPT2_MODEL = Layer(
    name="GPT2",
    signature="GPT2(config)(ids), with .loss(ids)",
    example=_example,
    probe=_probe,
    wrong_versions=WRONG_GPT2S,
    checks=(
        Check(
            "output shape",
            "The logits have the shape of the ids and an axis for the vocabulary.",
            _output_shape,
            weak=True,
        ),
        Check(
            "number of parameters",
            "There are as many parameters as the sizes ask for.",
            _number_of_parameters,
            weak=True,
        ),
        Check("first loss", "The first loss is ln V, up to 0.1.", _first_loss, weak=True),
        Check("training", "Five steps of training make the loss smaller.", _training, weak=True),
        Check(
            "initial weights, atol 1e-2",
            "With weights of standard deviation 0.02 the logits are torch's, up to 0.01.",
            _at_the_start,
            weak=True,
        ),
        Check(
            "state",
            "The state dict has the names and shapes of the published weights.",
            _state,
        ),
        Check(
            "values",
            "With weights of standard deviation 0.2 the logits in float64 are torch's.",
            _values,
        ),
        Check("gradients", "So are the gradients of all weights.", _gradients),
        Check("loss", "The loss is that of each next token.", _loss),
        Check(
            "future", "Changing tokens 4 and 5 of 6 does not move the logits at 0 to 3.", _future
        ),
        Check(
            "caches",
            "In steps of 3, 2 and 1 with caches of keys and values, the logits are the same.",
            _with_caches,
        ),
        Check("evaluation", "In evaluation nothing is dropped.", _evaluation),
        Check(
            "all dropped",
            "In training with dropout 1 the logits come from the last norm's bias alone.",
            _all_dropped,
        ),
        Check("too long", "More positions than n_positions are refused.", _too_long),
        Check("unknown ids", "An id that is not in the vocabulary is refused.", _unknown_ids),
        Check("one sequence", "A sequence without a batch axis gives its own row.", _one_sequence),
        Check("initial embeddings", "Both start with standard deviation 0.02.", _embeddings),
        Check(
            "initial projections",
            "Every c_proj starts with standard deviation 0.02 / √(2N).",
            _projections,
        ),
        Check("blocks differ", "No two blocks start with the same matrices.", _blocks_differ),
    ),
)
