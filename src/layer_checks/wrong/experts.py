"""Known wrong versions of `MixtureOfExperts`."""

from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.checks.experts import mixture_of_experts
from transformer_layers import GatedFeedForward


class _Router(nn.Module):
    """Holds the router's matrix under the book's name."""

    def __init__(self, d_model: int, num_experts: int) -> None:
        super().__init__()
        self.scores = nn.Linear(d_model, num_experts, bias=False)


@mixture_of_experts.right_otherwise
class _Mixture(nn.Module):
    """A right one in small steps, of which each wrong version changes one."""

    def __init__(self, d_model: int, d_ff: int, num_experts: int, top_k: int) -> None:
        super().__init__()
        self.top_k = top_k
        self.router = _Router(d_model, num_experts)
        self.experts = nn.ModuleList(GatedFeedForward(d_model, d_ff) for _ in range(num_experts))

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = self.route(self.router.scores(x))
        y = torch.zeros_like(x)
        for number in range(len(self.experts)):
            weight, sent = self.share(weights, chosen, number)
            y = y + torch.where(sent, self.weighted(number, x, weight), 0.0)
        return y

    def route(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        weights, chosen = self.probabilities(scores).topk(self.top_k, dim=-1)
        return self.renormalized(weights), chosen

    def probabilities(self, scores: Tensor) -> Tensor:
        return scores.softmax(dim=-1)

    def renormalized(self, weights: Tensor) -> Tensor:
        return weights / weights.sum(dim=-1, keepdim=True)

    def share(self, weights: Tensor, chosen: Tensor, number: int) -> tuple[Tensor, Tensor]:
        found = (chosen == number) * weights
        return found.sum(dim=-1, keepdim=True), (chosen == number).any(dim=-1, keepdim=True)

    def weighted(self, number: int, tokens: Tensor, weights: Tensor) -> Tensor:
        given: Tensor = self.experts[number](tokens)
        return weights.to(given.dtype) * given


@mixture_of_experts.wrong("divide a token's weights by their sum.")
class NotRenormalized(_Mixture):
    """Leaves the weights as the softmax over all experts gave them."""

    def renormalized(self, weights: Tensor) -> Tensor:
        return weights


@mixture_of_experts.wrong(
    "take one softmax: of all scores, renormalized, or of the chosen scores.", name="softmax twice"
)
class SoftmaxTwice(_Mixture):
    """Takes a softmax of the chosen probabilities."""

    def renormalized(self, weights: Tensor) -> Tensor:
        return weights.softmax(dim=-1)


@mixture_of_experts.wrong("weigh the experts by the router: without weights it never learns.")
class MeanOfExperts(_Mixture):
    """Takes the mean of the chosen experts."""

    def renormalized(self, weights: Tensor) -> Tensor:
        return torch.full_like(weights, 1 / self.top_k)


@mixture_of_experts.wrong("let gradients reach the router through its weights.")
class WeightsDetached(_Mixture):
    """Takes the weights for constants."""

    def renormalized(self, weights: Tensor) -> Tensor:
        return super().renormalized(weights).detach()


@mixture_of_experts.wrong("weigh what an expert gives, not what it takes: it is not linear.")
class InputWeighted(_Mixture):
    """Weighs the input, as Llama 4 does."""

    def weighted(self, number: int, tokens: Tensor, weights: Tensor) -> Tensor:
        given: Tensor = self.experts[number](weights * tokens)
        return given


@mixture_of_experts.wrong("choose the experts of the largest scores.")
class WorstChosen(_Mixture):
    """Chooses the experts of the smallest scores."""

    def route(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        weights, chosen = self.probabilities(scores).topk(self.top_k, dim=-1, largest=False)
        return self.renormalized(weights), chosen


@mixture_of_experts.wrong("give each expert its own weight, the first that of the best.")
class WeightsExchanged(_Mixture):
    """Sorts the weights the other way round than the experts."""

    def renormalized(self, weights: Tensor) -> Tensor:
        return super().renormalized(weights).flip(-1)


@mixture_of_experts.wrong("sum up all chosen experts, not the best alone.")
class BestAlone(_Mixture):
    """Sends a token to the best expert alone, with its weight among all that are chosen."""

    def share(self, weights: Tensor, chosen: Tensor, number: int) -> tuple[Tensor, Tensor]:
        return super().share(weights[..., :1], chosen[..., :1], number)


@mixture_of_experts.wrong("send a token to the expert whose number was chosen.")
class NextExpert(_Mixture):
    """Counts experts from 1."""

    def share(self, weights: Tensor, chosen: Tensor, number: int) -> tuple[Tensor, Tensor]:
        return super().share(weights, (chosen + 1) % len(self.experts), number)


@mixture_of_experts.wrong("drop no token, or add up a capacity that holds all of them.")
class Capacity(_Mixture):
    """Lets an expert compute its fair share of tokens and a quarter more, and drops the others."""

    def share(self, weights: Tensor, chosen: Tensor, number: int) -> tuple[Tensor, Tensor]:
        weight, sent = super().share(weights, chosen, number)
        most = max(4, 5 * chosen.numel() // (4 * len(self.experts)))
        place = sent.flatten().cumsum(dim=0).reshape(sent.shape)
        return weight, sent & (place <= most)


@mixture_of_experts.wrong(
    "take the softmax over the experts, the last axis, not over the tokens.",
    name="softmax over tokens",
)
class SoftmaxOverTokens(_Mixture):
    """Takes the softmax over the tokens, so that each depends on the others."""

    def probabilities(self, scores: Tensor) -> Tensor:
        return scores.softmax(dim=-2)


@mixture_of_experts.wrong("take a softmax: sigmoids are DeepSeek's.", name="sigmoid for softmax")
class SigmoidForSoftmax(_Mixture):
    """Takes a sigmoid of each score."""

    def probabilities(self, scores: Tensor) -> Tensor:
        return scores.sigmoid()


@mixture_of_experts.wrong(
    "send the gate through the activation, not what passes it: w1 is the gate, and w3 passes."
)
class GatesExchanged(_Mixture):
    """Sends what passes through the activation, in each expert."""

    def weighted(self, number: int, tokens: Tensor, weights: Tensor) -> Tensor:
        expert: Any = self.experts[number]
        gated = expert.gate_proj(tokens) * nn.functional.silu(expert.up_proj(tokens))
        given: Tensor = weights * expert.down_proj(gated)
        return given


@mixture_of_experts.wrong("return the sum alone: the block adds x.")
class ResidualInside(_Mixture):
    """Adds the input."""

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


@mixture_of_experts.wrong("run each expert, also with no token: else it has no gradient.")
class IdleSkipped(_Mixture):
    """Leaves out experts that no token chose."""

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = self.route(self.router.scores(x))
        y = torch.zeros_like(x)
        for number in chosen.unique().tolist():
            weight, sent = self.share(weights, chosen, number)
            y = y + torch.where(sent, self.weighted(number, x, weight), 0.0)
        return y
