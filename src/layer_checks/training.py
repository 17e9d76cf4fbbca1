"""Checks of a reader's training loop, and the mistakes that people make in one.

Most of them leave the loss falling, only not as far or not as fast; no error says so.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from layer_checks.definitions import Layer, WrongVersion
from layer_checks.evidence import Evidence, equivalent, holds
from layer_checks.report import Report
from layer_checks.running import Result, run
from transformer_layers import GPT2, GPT2Config


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


Candidate: TypeAlias = Callable[[Callable[[], GPT2], Tensor, Options], Trainer]

_SIZES = GPT2Config(vocab_size=11, n_positions=5, n_embd=6, n_layer=1, n_head=2, dropout=0.0)


def _made(candidate: Candidate, dropout: float = 0.0, **options: Any) -> Trainer:
    sizes = replace(_SIZES, dropout=dropout)
    tokens = torch.randint(11, (91,), generator=torch.Generator().manual_seed(7))
    return candidate(lambda: _larger(GPT2(sizes, dtype=torch.float64)), tokens, Options(**options))


@torch.no_grad()
def _larger(model: GPT2) -> GPT2:
    """A model whose logits tell its inputs apart, and whose gains and biases are not 1 and 0."""
    for parameter in model.parameters():
        parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return model


def _weights(trainer: Trainer) -> Tensor:
    return nn.utils.parameters_to_vector(trainer.model.parameters()).detach().clone()


def _after(candidate: Candidate, steps: int, **options: Any) -> Evidence:
    """Holds the weights after some steps against those of the definition, one batch at a time."""
    found, expected = _made(candidate, **options), _made(Trainer, **options)
    expected.model.load_state_dict(found.model.state_dict())
    for _ in range(steps):
        found.train_step()
        expected.step += 1
        for group in expected.optimizer.param_groups:
            group["lr"] = expected.learning_rate(expected.step)
        expected.model.zero_grad()
        Trainer.loss(expected, Trainer.batch(found, expected.step)).backward()
        Trainer.update(expected)
    return equivalent(_weights(found), _weights(expected), atol=1e-10)


def _example(candidate: Candidate) -> object:
    trainer = _made(candidate)
    return trainer.train_step(), trainer.evaluate(trainer.batch(2)), trainer.state_dict()


TRAINING = Layer(
    name="Trainer",
    signature="Trainer(make_model, tokens, options).train_step()",
    example=_example,
    probe=lambda candidate: [_weights(_made(candidate))],
)


@TRAINING.check("The loss falls over 12 steps.", weak=True)
def falling_loss(candidate: Candidate) -> Evidence:
    trainer = _made(candidate, lr=0.1)
    before = trainer.evaluate(trainer.batch(1))
    for _ in range(12):
        trainer.train_step()
    return holds(trainer.evaluate(trainer.batch(1)) < before, "the loss falls")


@TRAINING.check("The loss is that of each token after the first, given those before it.")
def loss(candidate: Candidate) -> Evidence:
    trainer = _made(candidate)
    ids = Trainer.batch(trainer, 1)
    expected = Trainer.loss(trainer, ids).item()
    return equivalent(trainer.loss(ids).item(), expected, atol=1e-10)


@TRAINING.check("One step moves the weights as AdamW does, matrices of blocks shrinking.")
def one_step(candidate: Candidate) -> Evidence:
    return _after(candidate, 1, warmup=0)


@TRAINING.check("So does each of the steps after it.")
def three_steps(candidate: Candidate) -> Evidence:
    return _after(candidate, 3, warmup=0)


@TRAINING.check("Micro-batches move the weights as the whole batch does.")
def accumulation(candidate: Candidate) -> Evidence:
    return _after(candidate, 1, warmup=0, micro_batches=3)


@TRAINING.check("A gradient that is too long moves them as one of the greatest length.")
def clipping(candidate: Candidate) -> Evidence:
    return _after(candidate, 1, warmup=0, micro_batches=3, clip=0.05)


@TRAINING.check("A step gives the mean loss of all its sequences, before it.")
def reported_loss(candidate: Candidate) -> Evidence:
    trainer = _made(candidate, micro_batches=3)
    with torch.no_grad():
        expected = Trainer.loss(trainer, Trainer.batch(trainer, 1)).item()
    return equivalent(trainer.train_step(), expected, atol=1e-10)


@TRAINING.check("The learning rate rises over 3 steps and falls over 9, step by step.")
def learning_rate(candidate: Candidate) -> Evidence:
    trainer = _made(candidate)
    found = []
    for _ in range(12):
        trainer.train_step()
        found.append(max(group["lr"] for group in trainer.optimizer.param_groups))
    rise = [0.01 * step / 3 for step in (1, 2, 3)]
    fall = [0.005 * (1 + math.cos(math.pi * step / 9)) for step in range(1, 10)]
    return equivalent(torch.tensor(found), rise + fall, atol=1e-9)


@TRAINING.check("In evaluation nothing is dropped.")
def evaluation(candidate: Candidate) -> Evidence:
    trainer, sure = _made(candidate, dropout=0.5), _made(Trainer)
    sure.model.load_state_dict(trainer.model.state_dict())
    ids = Trainer.batch(sure, 1)
    return equivalent(trainer.evaluate(ids), sure.evaluate(ids), atol=1e-10)


@TRAINING.check("In training something is, after an evaluation too.")
def dropout_in_training(candidate: Candidate) -> Evidence:
    trainer = _made(candidate, dropout=0.5, lr=1e-12)
    ids = Trainer.batch(trainer, 1)
    sure = trainer.evaluate(ids)
    return holds(abs(trainer.train_step() - sure) > 1e-3, "a step's loss is that with dropout")


@TRAINING.check("An epoch predicts each token after the first once.")
def epoch(candidate: Candidate) -> Evidence:
    trainer = _made(candidate)
    trainer.tokens = torch.arange(91)  # 18 sequences of 5, in 3 steps of 6
    taken = torch.cat([trainer.batch(step)[:, 1:].flatten() for step in (1, 2, 3)])
    return equivalent(taken.sort().values, torch.arange(1, 91))


@TRAINING.check("Two ranks share a step's sequences, without overlap or loss.")
def data_of_ranks(candidate: Candidate) -> Evidence:
    shares = []
    for rank in (0, 1):
        trainer = _made(candidate, rank=rank, ranks=2)
        trainer.tokens = torch.arange(91)
        shares += [trainer.batch(step)[:, 0] for step in (1, 2, 3)]
    return equivalent(torch.cat(shares).sort().values, torch.arange(0, 90, 5))


@TRAINING.check("Two ranks begin with the same weights.")
def weights_of_ranks(candidate: Candidate) -> Evidence:
    first, second = (_weights(_made(candidate, rank=rank, ranks=2)) for rank in (0, 1))
    return equivalent(first, second, atol=0.0)


@TRAINING.check(
    "Saved after 4 steps and taken up by another trainer, it goes on as if nothing was."
)
def going_on(candidate: Candidate) -> Evidence:
    whole = _made(candidate, dropout=0.1)
    broken = _made(candidate, dropout=0.1)
    for _ in range(4):
        whole.train_step(), broken.train_step()
    again = _made(candidate, dropout=0.1)
    again.load_state_dict(broken.state_dict())
    for _ in range(4):
        whole.train_step(), again.train_step()
    return equivalent(_weights(again), _weights(whole), atol=0.0)


TRAINING.right_otherwise(Trainer)


@TRAINING.wrong("set the gradients to zero before each step: backward adds to what is there.")
class GradientsNotCleared(Trainer):
    """Adds each step's gradient to those of all before."""

    def gradients(self, parts: tuple[Tensor, ...]) -> float:
        """Leaves `zero_grad` out."""
        for ids in parts:
            loss = self.loss(ids) / len(parts)
            loss.backward()
        return self.loss(torch.cat(parts)).item()


@TRAINING.wrong("clear the gradients once a step, before its first micro-batch.")
class ClearedBetweenMicroBatches(Trainer):
    """Learns from the last micro-batch only."""

    def gradients(self, parts: tuple[Tensor, ...]) -> float:
        """Clears in the loop."""
        total = 0.0
        for ids in parts:
            self.optimizer.zero_grad()
            loss = self.loss(ids) / len(parts)
            loss.backward()
            total += loss.item()
        return total


@TRAINING.wrong("divide the loss of each micro-batch by their number.")
class AccumulationNotDivided(Trainer):
    """Sums the gradients of the micro-batches; AdamW hides it where nothing is clipped."""

    def gradients(self, parts: tuple[Tensor, ...]) -> float:
        """Divides the loss that is shown only."""
        self.optimizer.zero_grad()
        losses = [self.loss(ids) for ids in parts]
        torch.stack(losses).sum().backward()
        return torch.stack(losses).mean().item()


@TRAINING.wrong("give the mean of the micro-batches' losses.")
class LossOfTheLastMicroBatch(Trainer):
    """Learns from all, and shows the loss of the last."""

    def gradients(self, parts: tuple[Tensor, ...]) -> float:
        """Keeps the last loss."""
        super().gradients(parts)
        return self.loss(parts[-1]).item()


@TRAINING.wrong("shorten the gradients between backward and the optimizer's step.")
class ClippedAfterTheStep(Trainer):
    """Shortens gradients that have been used."""

    def update(self) -> None:
        """Steps first."""
        self.optimizer.step()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip)


@TRAINING.wrong("shorten the whole batch's gradient, after its last micro-batch.")
class EachMicroBatchClipped(Trainer):
    """Shortens what is accumulated after each micro-batch."""

    def gradients(self, parts: tuple[Tensor, ...]) -> float:
        """Clips in the loop."""
        self.optimizer.zero_grad()
        total = 0.0
        for ids in parts:
            loss = self.loss(ids) / len(parts)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip)
            total += loss.item()
        return total


@TRAINING.wrong("use clip_grad_norm_: clip_grad_value_ cuts each number, and turns the gradient.")
class ClippedByValue(Trainer):
    """Cuts each number of the gradient."""

    def update(self) -> None:
        """Clips by value."""
        nn.utils.clip_grad_value_(self.model.parameters(), self.options.clip)
        self.optimizer.step()


@TRAINING.wrong("give biases, gains and embeddings a group of their own, without weight decay.")
class DecayOnNorms(Trainer):
    """Shrinks every parameter."""

    def make_optimizer(self) -> torch.optim.Optimizer:
        """One group for all."""
        optimizer = super().make_optimizer()
        for group in optimizer.param_groups:
            group["weight_decay"] = self.options.weight_decay
        return optimizer


@TRAINING.wrong("use AdamW: Adam adds the decay to the gradient, and divides it away.")
class AdamForAdamW(Trainer):
    """Adds the decay to the gradient."""

    def make_optimizer(self) -> torch.optim.Optimizer:
        """Adam, with the same groups."""
        groups = super().make_optimizer().param_groups
        kept = [{key: group[key] for key in ("params", "weight_decay")} for group in groups]
        return torch.optim.Adam(kept, lr=self.options.lr, betas=(0.9, 0.95), eps=self.options.eps)


@TRAINING.wrong("set the learning rate by the step, not by the epoch.")
class ScheduleByEpoch(Trainer):
    """Moves the schedule on once an epoch."""

    def learning_rate(self, step: int) -> float:
        """That of the epoch's first step."""
        rows = (len(self.tokens) - 1) // self.options.seq
        steps = max(rows // self.options.batch_size, 1)
        return super().learning_rate((step - 1) // steps * steps + 1)


@TRAINING.wrong("hold the logits of a position against the token after it.")
class UnshiftedLabels(Trainer):
    """Asks each position for its own token, which it sees."""

    def loss(self, ids: Tensor) -> Tensor:
        """Takes the input for the labels."""
        logits = self.model(ids[:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, :-1].flatten())


@TRAINING.wrong("call model.eval() before an evaluation.")
class DropoutLeftOn(Trainer):
    """Drops in evaluation too."""

    def evaluate(self, ids: Tensor) -> float:
        """Only switches gradients off."""
        with torch.no_grad():
            return self.loss(ids).item()


@TRAINING.wrong("call model.train() after an evaluation.")
class DropoutLeftOff(Trainer):
    """Trains without dropout after the first evaluation."""

    def evaluate(self, ids: Tensor) -> float:
        """Leaves the model in evaluation mode."""
        self.model.eval()
        with torch.no_grad():
            return self.loss(ids).item()


@TRAINING.wrong("let each rank take other sequences of a step.")
class SameDataOnEachRank(Trainer):
    """Every rank learns from the first rank's sequences."""

    def batch(self, step: int) -> Tensor:
        """That of the first rank."""
        own = self.options
        self.options = replace(own, rank=0)
        ids = super().batch(step)
        self.options = own
        return ids


@TRAINING.wrong("seed all ranks alike before the weights are drawn, or send them the first one's.")
class UnsyncedSeeds(Trainer):
    """Each rank draws first weights of its own, and the mean gradient is of none of them."""

    def first_seed(self) -> int:
        """One for each rank."""
        return self.options.seed + self.options.rank


@TRAINING.wrong("save the optimizer's state too: its means take hundreds of steps to form.")
class CheckpointWithoutOptimizer(Trainer):
    """Goes on with an optimizer that has seen nothing."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes up weights and step."""
        self.model.load_state_dict(state["model"])
        self.step = state["step"]


@TRAINING.wrong("save the number of the step: the schedule and the order of the data follow it.")
class CheckpointWithoutStep(Trainer):
    """Begins the schedule and the data anew."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes up weights and optimizer."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])


@TRAINING.wrong("begin each epoch where the last one ended, and take each sequence once.")
class DrawnWithReplacement(Trainer):
    """Draws the sequences of a step anew: a third of them is never met in an epoch."""

    def batch(self, step: int) -> Tensor:
        """Draws starts by chance."""
        options = self.options
        draws = torch.Generator().manual_seed(options.seed + step)
        rows = (len(self.tokens) - 1) // options.seq
        drawn = torch.randint(rows, (options.batch_size,), generator=draws)
        starts = drawn.chunk(options.ranks)[options.rank] * options.seq
        return self.tokens[starts[:, None] + torch.arange(options.seq + 1)]


def check_training(candidate: Candidate | None = None, /, **functions: Any) -> Report:
    """Runs the checks of a training loop, and says which known mistake it makes.

    Args:
        candidate: A class that is made and used as :class:`Trainer`; that one if not given.
        **functions: Methods to put in place of its own, such as `train_step`, `gradients` or
            `make_optimizer`. Each is given the trainer first.

    Returns:
        A report with a line for each check.

    Examples:
        >>> def evaluate(trainer, ids):
        ...     with torch.no_grad():
        ...         return trainer.loss(ids).item()
        >>> report = check_training(evaluate=evaluate)
        >>> report.behaves_like
        dropout left on - call model.eval() before an evaluation.
    """
    base = Trainer if candidate is None else candidate
    unknown = [name for name in functions if not hasattr(Trainer, name)]
    if unknown:
        raise ValueError(f"a Trainer has no method {unknown[0]!r}")
    if functions:
        base = type("Yours", (base,), functions)  # type: ignore[arg-type]  # it is a class
    results = _results(base)
    failed = _failures(results)
    alike = (each for each in TRAINING.wrong_versions if _failures_of(each) == failed)
    return Report(TRAINING.name, results, next(alike, None) if failed else None)


def _results(candidate: Candidate) -> tuple[Result, ...]:
    return tuple(run(each, candidate) for each in TRAINING.checks if not each.weak)


def _failures(results: tuple[Result, ...]) -> frozenset[tuple[str, str]]:
    """What failed and by how much: two mistakes may fail alike, but not by the same numbers."""
    return frozenset((result.name, result.text) for result in results if not result.held)


@cache
def _failures_of(version: WrongVersion) -> frozenset[tuple[str, str]]:
    return _failures(_results(version.layer))
