"""The checks of `MixtureOfExperts`, against every expert computed for every token."""

from typing import Any

import torch
from torch import Tensor, nn

import transformer_layers
from layer_checks.checks.gated import TorchGatedFeedForward
from layer_checks.evidence.evidence import Evidence, equivalent, holds
from layer_checks.kit.candidates import (
    built,
    has_parameters,
    outputs_and_gradients,
    randn64,
    randomized,
    same,
    weights_of,
)
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.initial import starts_as
from layer_checks.kit.oracles import agreeing_gradients, with_weights_of
from layer_checks.kit.probes import Probing, probe

_D_MODEL, _D_FF, _EXPERTS, _TOP_K = 5, 7, 4, 2
_SIZES = (_D_MODEL, _D_FF, _EXPERTS, _TOP_K)


class _Router(nn.Module):
    def __init__(self, d_model: int, experts: int, std: float) -> None:
        super().__init__()
        self.scores = randomized(nn.Linear(d_model, experts, bias=False), std).double()


class TorchMixture(nn.Module):
    """Each expert computes each token; a matrix of weights, most of them 0, sums them up."""

    def __init__(self, d_model: int, d_ff: int, experts: int, top_k: int, std: float = 1.0) -> None:
        super().__init__()
        self.top_k = top_k
        self.router = _Router(d_model, experts, std)
        self.experts = nn.ModuleList(
            TorchGatedFeedForward(d_model, d_ff, std) for _ in range(experts)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Maps each position."""
        scores = self.router.scores(x)
        least = scores.sort(dim=-1, descending=True).values[..., self.top_k - 1, None]
        weights = scores.masked_fill(scores < least, -torch.inf).softmax(dim=-1)
        found = torch.stack([expert(x) for expert in self.experts], dim=-2)
        return (weights.unsqueeze(-1) * found).sum(dim=-2)


def _pair(candidate: Candidate, *sizes: int, std: float = 1.0) -> tuple[nn.Module, TorchMixture]:
    d_model, d_ff, experts, top_k = sizes or _SIZES
    theirs = TorchMixture(d_model, d_ff, experts, top_k, std)
    return with_weights_of(theirs, candidate, d_model, d_ff, experts, top_k), theirs


def _probe(candidate: Candidate) -> Any:
    ours, theirs = _pair(candidate)
    yield torch.tensor(len(ours.state_dict()))
    yield from outputs_and_gradients(ours, weights_of(theirs), randn64(2, 3, _D_MODEL))
    ours, theirs = _all_to_one(candidate)
    yield ours(torch.rand(1, 24, _D_MODEL, dtype=torch.float64))


def _all_to_one(candidate: Candidate) -> tuple[nn.Module, TorchMixture]:
    """A layer whose router sends all positive tokens to expert 1, and to expert 3 next."""
    theirs = TorchMixture(*_SIZES)
    with torch.no_grad():
        weight = theirs.router.scores.weight.mul_(0.1)
        weight[1] += 3.0
        weight[3] += 2.0
    return with_weights_of(theirs, candidate, *_SIZES), theirs


mixture_of_experts = Layer(
    "MixtureOfExperts",
    "MixtureOfExperts(d_model, d_ff, num_experts, top_k)",
    example=lambda candidate: built(candidate, *_SIZES),
    probe=_probe,
    words={
        "scores": ("router", "gate", "wg"),
        "gate_proj": ("w1", "w_gate"),
        "up_proj": ("up", "w3", "w_up"),
        "down_proj": ("down", "w2", "w_down"),
    },
    synonyms={
        "num_experts": ("n_experts", "num_local_experts", "n_routed_experts"),
        "top_k": ("num_experts_per_tok", "k", "num_experts_per_token", "n_activated_experts"),
    },
)


@mixture_of_experts.check("The output has the shape of the input.", weak=True)
def output_shape(candidate: Candidate) -> Evidence:
    layer = built(candidate, *_SIZES)
    return same(tuple(layer(torch.randn(2, 3, _D_MODEL)).shape), (2, 3, _D_MODEL))


@mixture_of_experts.check(
    "With weights of standard deviation 0.02 the values are those of the sum, up to 0.00001.",
    name="small weights, atol 1e-5",
    weak=True,
)
def small_weights(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, std=0.02)
    x = randn64(2, 3, _D_MODEL)
    return equivalent(ours(x), theirs(x), atol=1e-5)


@mixture_of_experts.check(
    "There is a weight for the router, and three for each expert.", kind="contract"
)
def parameters(candidate: Candidate) -> Evidence:
    into, back = (_D_FF, _D_MODEL), (_D_MODEL, _D_FF)
    wanted = {"router__scores__weight": (_EXPERTS, _D_MODEL)}
    for number in range(_EXPERTS):
        for name, shape in (("gate_proj", into), ("up_proj", into), ("down_proj", back)):
            wanted[f"experts__{number}__{name}__weight"] = shape
    return has_parameters(built(candidate, *_SIZES), **wanted)


@mixture_of_experts.check(
    "In float64 the output is the sum of the chosen experts' outputs, weighted by a softmax of "
    "their scores."
)
def values(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    x = randn64(2, 3, _D_MODEL)
    return equivalent(ours(x), theirs(x), atol=1e-12, rtol=1e-12)


@mixture_of_experts.check("The gradients are those of the sum, the router's too.")
def gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    return agreeing_gradients(ours, theirs, randn64(2, 3, _D_MODEL), atol=1e-10)


@mixture_of_experts.check("However many are chosen, 1, 3 or all, the values are those of the sum.")
def number_chosen(candidate: Candidate) -> Evidence:
    found = []
    for top_k in (1, 3, _EXPERTS):
        ours, theirs = _pair(candidate, _D_MODEL, _D_FF, _EXPERTS, top_k)
        x = randn64(2, 3, _D_MODEL)
        found.append(equivalent(ours(x), theirs(x), atol=1e-12, rtol=1e-12))
    return found[0]


@mixture_of_experts.check(
    "Where all experts are alike, the output is that of one: weights add up to 1."
)
def weights_add_up_to_1(candidate: Candidate) -> Evidence:
    theirs = TorchMixture(*_SIZES)
    for expert in theirs.experts:
        expert.load_state_dict(theirs.experts[0].state_dict())
    ours = with_weights_of(theirs, candidate, *_SIZES)
    x = randn64(2, 3, _D_MODEL)
    return equivalent(ours(x), theirs.experts[0](x), atol=1e-12, rtol=1e-12)


@mixture_of_experts.check("Where all tokens choose the same experts, none is dropped.")
def no_token_is_dropped(candidate: Candidate) -> Evidence:
    ours, theirs = _all_to_one(candidate)
    x = torch.rand(2, 24, _D_MODEL, dtype=torch.float64)
    return equivalent(ours(x), theirs(x), atol=1e-12, rtol=1e-12)


@mixture_of_experts.check("Changing one position changes no other.")
def each_position_by_itself(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    x = randn64(2, 3, _D_MODEL)
    changed = x.clone()
    changed[0, 0] = randn64(_D_MODEL)
    return equivalent(ours(changed).flatten(0, 1)[1:], ours(x).flatten(0, 1)[1:], atol=1e-12)


@mixture_of_experts.check("An input of zeros gives zeros: nothing is added on the way.")
def zeros(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    x = torch.zeros(2, 3, _D_MODEL, dtype=torch.float64)
    return equivalent(ours(x), x, atol=0.0)


@mixture_of_experts.check(
    "An expert that no token chooses has gradients of zero, not none.", kind="contract"
)
def idle_experts_have_gradients(candidate: Candidate) -> Evidence:
    ours, _ = _all_to_one(candidate)
    ours(torch.rand(2, 3, _D_MODEL, dtype=torch.float64)).sum().backward()
    without = [name for name, each in ours.named_parameters() if each.grad is None]
    if without:
        raise AssertionError(f"no gradient, which data parallelism waits for: {', '.join(without)}")
    return holds(True, "every parameter has a gradient")


@mixture_of_experts.check("The weights start as those of `torch.nn.Linear`.", kind="start")
def initial_values(candidate: Candidate) -> Evidence:
    sizes = (64, 48, 4, 2)
    return starts_as(built(candidate, *sizes), transformer_layers.MixtureOfExperts(*sizes))


probe(
    mixture_of_experts,
    Probing(
        pair=_pair,
        inputs=lambda batch, seq: (randn64(batch, seq, _D_MODEL),),
        sizes=_SIZES,
        narrow=lambda candidate: (*_pair(candidate, 1, 3, 2, 1), (randn64(3, 2, 1),)),
        wide=lambda candidate, size: (*_pair(candidate, 3, size, 2, 1), (randn64(2, 3, 3),)),
        drawn=lambda candidate: list(weights_of(built(candidate, *_SIZES)).values()),
        scales=(1e-6, 1.0, 80.0),
        chooses=True,
    ),
)
