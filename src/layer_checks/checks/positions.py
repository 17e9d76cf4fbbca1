"""The checks of `sinusoidal_positions`, against Python's own sine and cosine."""

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from layer_checks.evidence.evidence import Evidence, equivalent
from layer_checks.kit.arguments import Arranged, CannotTakeError, arranged, signature_of
from layer_checks.kit.candidates import same
from layer_checks.kit.definitions import Candidate, Form, Layer
from layer_checks.kit.probes import Probing, probe

_ATOL = 6e-7  # ten roundings of 1 in float32

# By how much an angle in float32 is off, for each position before it.
_ROUNDING = 2 * torch.finfo(torch.float32).eps
# What others call the number of rows of their table.
_LENGTHS = frozenset(
    "max_len max_length max_seq_len seq_len length n_positions num_positions".split()
)


def _expected_of(seq: int, d_model: int) -> Tensor:
    return _expected(range(seq), d_model)


def _expected(positions: range, d_model: int) -> Tensor:
    def entry(pos: int, column: int) -> float:
        angle = pos / 10000 ** ((column - column % 2) / d_model)
        return math.cos(angle) if column % 2 else math.sin(angle)

    return torch.tensor([[entry(pos, column) for column in range(d_model)] for pos in positions])


def _by_module(rows_first: bool) -> Callable[..., Tensor]:
    def call(made: Candidate, seq: int, d_model: int) -> Tensor:
        """What a module adds to zeros."""
        theirs = signature_of(made)
        if theirs is None:
            raise CannotTakeError("Python cannot tell what it is built with")
        call = arranged({"d_model": d_model, "dropout": 0.0}, theirs)
        lengths = {
            name for name in theirs.parameters if name in _LENGTHS and name not in call.kwargs
        }
        layer = made(**_by_name(theirs, call) | dict.fromkeys(lengths, max(seq, 2)))
        x = torch.zeros(1, seq, d_model)
        added = layer.eval()(x.transpose(0, 1) if rows_first else x)
        return (added.transpose(0, 1) if rows_first else added).reshape(seq, d_model)

    return call


def _by_name(theirs: inspect.Signature, call: Arranged) -> dict[str, Any]:
    """The arguments of a call by name."""
    return dict(zip(theirs.parameters, call.args, strict=False)) | call.kwargs


def _forms(candidate: Candidate) -> Iterator[Form]:
    """Those of a module that adds the table to its input."""
    if inspect.isclass(candidate):
        words = "it is a module that adds the table: it is given zeros"
        for rows_first in (False, True):
            axes = ", with the positions first" if rows_first else ""
            yield Form(words + axes, _by_module(rows_first), contract=True)


sinusoidal_positions = Layer(
    "sinusoidal_positions",
    "sinusoidal_positions(seq, d_model)",
    example=lambda candidate: candidate(7, 6),
    probe=lambda candidate: [candidate(9, 6)],
    not_mistakes={"adds the last call"},  # that of a table is to be shared by all calls
    forms=_forms,
)


@sinusoidal_positions.check("The table has shape (seq, d_model).", weak=True)
def shape(candidate: Candidate) -> Evidence:
    return same(tuple(candidate(7, 6).shape), (7, 6))


@sinusoidal_positions.check("The largest absolute value is 1, up to 0.01.", weak=True)
def bounded(candidate: Candidate) -> Evidence:
    return equivalent(candidate(50, 6).abs().max(), 1.0, atol=1e-2)


@sinusoidal_positions.check("The squares of each row sum to d_model/2.", weak=True)
def length_of_the_rows(candidate: Candidate) -> Evidence:
    norms = candidate(50, 6).square().sum(dim=-1)
    return equivalent(norms, torch.full((50,), 3.0), atol=1e-5)


@sinusoidal_positions.check("Nine positions of width 6 have the paper's values.")
def values(candidate: Candidate) -> Evidence:
    return equivalent(candidate(9, 6), _expected(range(9), 6), atol=_ATOL)


@sinusoidal_positions.check("So do nine positions of width 5.", kind="contract")
def odd_width(candidate: Candidate) -> Evidence:
    return equivalent(candidate(9, 5), _expected(range(9), 5), atol=_ATOL)


@sinusoidal_positions.check("So do the positions around 10,000.", kind="contract")
def far_positions(candidate: Candidate) -> Evidence:
    return equivalent(candidate(10_001, 6)[-10:], _expected(range(9991, 10_001), 6), atol=_ATOL)


@sinusoidal_positions.check("Three positions on, each pair is turned by the angle of position 3.")
def a_shift_is_a_rotation(candidate: Candidate) -> Evidence:
    table = candidate(20, 6)
    sines, cosines = table[:, 0::2], table[:, 1::2]
    turn_sin, turn_cos = sines[3], cosines[3]
    turned = torch.stack(
        (sines * turn_cos + cosines * turn_sin, cosines * turn_cos - sines * turn_sin), dim=-1
    )
    return equivalent(turned.flatten(-2)[:-3], table[3:], atol=1e-5)


probe(
    sinusoidal_positions,
    Probing(
        pair=lambda candidate: (candidate, candidate),
        inputs=lambda batch, seq: (3 * seq, 2 * batch),
        large=lambda candidate, seq: [(candidate, _expected_of, (seq, 6))],
        wide=lambda candidate, size: (candidate, _expected_of, (3, size)),
        makes=lambda candidate: (candidate, (7, 6)),
        rounding=_ROUNDING,
        scales=(),
        half=False,
        batched=False,
    ),
)
