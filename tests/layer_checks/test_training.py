"""The checks of a training loop: each mistake is caught, and no right loop is."""

import pytest
import torch

from layer_checks.training import TRAINING, Trainer, check_training
from transformer_training.step import evaluate, learning_rate, make_optimizer, train_step


class Ours(Trainer):
    """The book's own loop, by its own functions."""

    def make_optimizer(self):
        optimizer = make_optimizer(self.model, self.options.lr, self.options.weight_decay)
        for group in optimizer.param_groups:
            group["eps"] = self.options.eps
        return optimizer

    def learning_rate(self, step):
        options = self.options
        return learning_rate(step, options.steps, options.warmup, options.lr, last=0.0)

    def train_step(self):
        self.step += 1
        torch.manual_seed(self.step)
        parts = self.batch(self.step).chunk(self.options.micro_batches)
        rate = self.learning_rate(self.step)
        loss, _ = train_step(self.loss, self.optimizer, parts, rate, self.options.clip)
        return loss.item()

    def evaluate(self, ids):
        return evaluate(self.model, self.loss, [ids]).item()


@pytest.mark.parametrize("right", [Trainer, Ours])
def test_a_right_loop_passes(right):
    report = check_training(right)
    assert report, report
    assert len(report.results) == 13


@pytest.mark.parametrize("version", TRAINING.wrong_versions, ids=lambda it: it.name)
def test_each_mistake_is_caught_and_told(version):
    report = check_training(version.layer)
    assert not report
    assert report.behaves_like is version


def test_the_popular_check_misses_most():
    (popular,) = [each for each in TRAINING.checks if each.weak]
    missed = 0
    for version in TRAINING.wrong_versions:
        try:
            popular.run(version.layer)
        except AssertionError:
            continue
        missed += 1
    assert missed >= 15


def test_a_function_of_the_readers_own():
    def mine(trainer, parts):
        trainer.optimizer.zero_grad()
        losses = [trainer.loss(ids) for ids in parts]
        torch.stack(losses).sum().backward()
        return torch.stack(losses).mean().item()

    report = check_training(gradients=mine)
    assert report.behaves_like is not None
    assert report.behaves_like.name == "accumulation not divided"
    with pytest.raises(ValueError, match="a Trainer has no method 'gradient'"):
        check_training(gradient=mine)


def test_an_unknown_mistake_is_not_named():
    def half(trainer, step):
        return 0.5 * Trainer.learning_rate(trainer, step)

    report = check_training(learning_rate=half)
    assert not report
    assert report.behaves_like is None
