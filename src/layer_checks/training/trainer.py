"""A training loop in small steps, of which a reader replaces one, or all."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transformer_layers import GPT2


@dataclass(frozen=True)
class Options:
    """What a :class:`Trainer` is asked for.

    Attributes:
        steps: Number of steps; the learning rate falls over all of them.
        batch_size: Sequences of a step, over all ranks.
        seq: Positions of a sequence.
        lr: Highest learning rate.
        warmup: Steps in which it rises from 0 in a line.
        weight_decay: Of the matrices of the blocks, and of nothing else.
        micro_batches: In how many parts a step's sequences are computed.
        clip: Longest gradient, of all weights together.
        eps: AdamW's; a large one lets the size of a gradient matter.
        seed: Of the first weights, the order of the data and dropout.
        rank: Which process this is.
        ranks: How many processes there are.
    """

    steps: int = 12
    batch_size: int = 6
    seq: int = 5
    lr: float = 0.01
    warmup: int = 3
    weight_decay: float = 0.5
    micro_batches: int = 1
    clip: float = math.inf
    eps: float = 0.1
    seed: int = 0
    rank: int = 0
    ranks: int = 1


class Trainer:
    """A training loop in small steps, of which a reader replaces one, or all.

    Args:
        make_model: Makes a `GPT2` whose weights torch's generator draws.
        tokens: The text, int64 of shape `(count,)`.
        options: What is asked for.

    Attributes:
        model: The model.
        optimizer: An optimizer of torch's; its groups have the learning rate of the last step.
        step: Number of steps that were made.

    Examples:
        >>> from transformer_layers import GPT2Config
        >>> config = GPT2Config(vocab_size=7, n_positions=5, n_embd=6, n_layer=1, n_head=2)
        >>> trainer = Trainer(lambda: GPT2(config), torch.arange(60) % 7, Options())
        >>> losses = [trainer.train_step() for _ in range(12)]
        >>> losses[-1] < losses[0]
        True
    """

    def __init__(self, make_model: Callable[[], GPT2], tokens: Tensor, options: Options) -> None:
        self.options, self.tokens, self.step = options, tokens, 0
        torch.manual_seed(self.first_seed())
        self.model = make_model()
        self.optimizer = self.make_optimizer()

    def first_seed(self) -> int:
        """The seed of the first weights."""
        return self.options.seed

    def make_optimizer(self) -> torch.optim.Optimizer:
        """AdamW, which shrinks the matrices of the blocks."""
        named = list(self.model.named_parameters())
        matrices = [each for name, each in named if each.ndim == 2 and name.startswith("h.")]
        others = [each for name, each in named if each.ndim < 2 or not name.startswith("h.")]
        decay = self.options.weight_decay
        groups: list[dict[str, Any]] = [
            {"params": matrices, "weight_decay": decay},
            {"params": others, "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(
            groups, lr=self.options.lr, betas=(0.9, 0.95), eps=self.options.eps
        )

    def learning_rate(self, step: int) -> float:
        """The learning rate of a step, from 1 on: up in a line, down in half a cosine to 0."""
        options = self.options
        if step <= options.warmup:
            return options.lr * step / options.warmup
        share = (step - options.warmup) / (options.steps - options.warmup)
        return options.lr * (1 + math.cos(math.pi * share)) / 2

    def batch(self, step: int) -> Tensor:
        """This rank's sequences of a step, each with the token after it."""
        options = self.options
        rows = (len(self.tokens) - 1) // options.seq
        first = (step - 1) * options.batch_size
        places = torch.arange(first, first + options.batch_size)
        own = places.chunk(options.ranks)[options.rank]
        order = torch.randperm(rows, generator=torch.Generator().manual_seed(options.seed))
        starts = order[own % rows] * options.seq
        return self.tokens[starts[:, None] + torch.arange(options.seq + 1)]

    def loss(self, ids: Tensor) -> Tensor:
        """The mean cross-entropy of each token after the first, given those before it."""
        logits = self.model(ids[:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())

    def train_step(self) -> float:
        """Makes the next step, and gives the mean loss of its sequences before it."""
        self.step += 1
        torch.manual_seed(1000 * self.options.seed + self.step)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(self.step)
        loss = self.gradients(self.batch(self.step).chunk(self.options.micro_batches))
        self.update()
        return loss

    def gradients(self, parts: tuple[Tensor, ...]) -> float:
        """Computes the gradient of the mean loss, and gives the loss."""
        self.optimizer.zero_grad()
        total = 0.0
        for ids in parts:
            loss = self.loss(ids) / len(parts)
            loss.backward()
            total += loss.item()
        return total

    def update(self) -> None:
        """Moves the weights by the gradients, shortened where they are too long."""
        nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip)
        self.optimizer.step()

    def evaluate(self, ids: Tensor) -> float:
        """The mean loss of sequences without dropout; training goes on with it."""
        self.model.eval()
        with torch.no_grad():
            loss = self.loss(ids).item()
        self.model.train()
        return loss

    def state_dict(self) -> dict[str, Any]:
        """All that another trainer needs to go on as this one would."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes up what :meth:`state_dict` gave."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]
