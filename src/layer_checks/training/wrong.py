"""The mistakes that people make in a training loop."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.training.checks import TRAINING
from layer_checks.training.trainer import Trainer

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


@TRAINING.wrong("save the optimizer's state too: its moments take hundreds of steps to form.")
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
