"""Checks of a training loop."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from layer_checks.evidence.evidence import Evidence, equivalent, holds
from layer_checks.kit.definitions import Layer
from layer_checks.training.trainer import Options, Trainer
from transformer_layers import GPT2, GPT2Config

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
