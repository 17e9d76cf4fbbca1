"""The checks of the two encoder layers, against `torch.nn.TransformerEncoderLayer`."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from layer_checks.candidates import (
    built,
    counterparts,
    load,
    outputs_and_gradients,
    randn64,
    randomized,
    same,
)
from layer_checks.definitions import Candidate, Check, Layer
from layer_checks.evidence import Evidence, equivalent, holds
from layer_checks.gradients import same_gradients
from layer_checks.weights import to_ours, to_theirs
from layer_checks.wrong.encoder import WRONG_ENCODER_LAYERS, WRONG_PRE_NORM_ENCODER_LAYERS

_D_MODEL, _NUM_HEADS, _D_FF = 6, 2, 7
_COUNTERPART = "nn.TransformerEncoderLayer"


class _Authority(nn.Module):
    """`torch.nn.TransformerEncoderLayer` with our meaning of a mask."""

    def __init__(self, norm_first: bool) -> None:
        super().__init__()
        self.layer = randomized(
            nn.TransformerEncoderLayer(
                _D_MODEL, _NUM_HEADS, _D_FF, dropout=0.0, batch_first=True, norm_first=norm_first
            ),
            std=0.5,
        ).double()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        blocked = None if mask is None else ~mask
        if blocked is not None and blocked.ndim == 3:
            blocked = blocked.expand(x.shape[0], x.shape[1], x.shape[1])
            blocked = blocked.repeat_interleave(_NUM_HEADS, dim=0)
        return self.layer(x, src_mask=blocked)


def _weights(theirs: _Authority) -> dict[str, Tensor]:
    parameters = {name: each.detach() for name, each in theirs.layer.named_parameters()}
    return to_ours(_COUNTERPART, parameters)


def _sequences() -> Tensor:
    return randn64(3, 4, _D_MODEL) + 0.5


def _lengths_mask() -> Tensor:
    return (torch.arange(4) < torch.tensor([[4], [2], [3]]))[:, None]


class _Checks:
    """The checks of one of the two layers, which differ in the authority's `norm_first` alone."""

    def __init__(self, norm_first: bool) -> None:
        self.norm_first = norm_first

    def pair(self, candidate: Candidate, dropout: float = 0.0) -> tuple[nn.Module, _Authority]:
        theirs = _Authority(self.norm_first)
        ours = built(candidate, _D_MODEL, _NUM_HEADS, _D_FF, dropout=dropout).double()
        return load(ours, _weights(theirs)), theirs

    def probe(self, candidate: Candidate) -> list[Tensor]:
        ours, theirs = self.pair(candidate)
        return outputs_and_gradients(ours, _weights(theirs), _sequences(), _lengths_mask())

    def values(self, candidate: Candidate, mask: Tensor | None = None) -> Evidence:
        ours, theirs = self.pair(candidate)
        x = _sequences()
        return equivalent(ours(x, mask=mask), theirs(x, mask), atol=1e-12)

    def gradients(self, candidate: Candidate) -> Evidence:
        ours, theirs = self.pair(candidate)
        names = counterparts(ours, _weights(theirs))

        def packed(gradients: Mapping[str, Tensor]) -> dict[str, Tensor]:
            known = {names[name]: each for name, each in gradients.items() if name in names}
            return {f"layer.{name}": each for name, each in to_theirs(_COUNTERPART, known).items()}

        return same_gradients(ours, theirs, _sequences(), atol=1e-11, parameters=packed)

    def evaluation(self, candidate: Candidate) -> Evidence:
        ours, theirs = self.pair(candidate, dropout=0.5)
        x = _sequences()
        return equivalent(ours.eval()(x), theirs(x), atol=1e-12)

    def all_dropped(self, candidate: Candidate) -> Evidence:
        ours, theirs = self.pair(candidate, dropout=1.0)
        x = _sequences()
        normed = x if self.norm_first else theirs.layer.norm2(theirs.layer.norm1(x))
        return equivalent(ours.train()(x), normed, atol=1e-12)

    def equivariance(self, candidate: Candidate) -> Evidence:
        ours, _ = self.pair(candidate)
        x = _sequences()
        order = torch.tensor([2, 0, 3, 1])
        return equivalent(ours(x[:, order]), ours(x)[:, order], atol=1e-12)

    def padding(self, candidate: Candidate) -> Evidence:
        ours, _ = self.pair(candidate)
        x, mask = _sequences(), _lengths_mask()
        changed = x.clone()
        changed[1, 2:] = randn64(2, _D_MODEL)
        return equivalent(ours(changed, mask=mask)[1, :2], ours(x, mask=mask)[1, :2], atol=0.0)

    def one_sequence(self, candidate: Candidate) -> Evidence:
        ours, theirs = self.pair(candidate)
        x = _sequences()
        return equivalent(ours(x[0]), theirs(x)[0], atol=1e-12)


def _output_shape(candidate: Candidate) -> Evidence:
    x = torch.randn(3, 4, _D_MODEL)
    layer = built(candidate, _D_MODEL, _NUM_HEADS, _D_FF)
    return same(tuple(layer(x).shape), tuple(x.shape))


def _parameters(candidate: Candidate) -> Evidence:
    found = [name for name, _ in built(candidate, _D_MODEL, _NUM_HEADS, _D_FF).named_parameters()]
    expected = list(_weights(_Authority(norm_first=False)))
    missing, unknown = set(expected) - set(found), set(found) - set(expected)
    if missing or unknown:
        raise AssertionError(f"not equal: missing {sorted(missing)}, unknown {sorted(unknown)}")
    return holds(True, f"{len(expected)} parameters, by name")


def _example(candidate: Candidate) -> object:
    layer = built(candidate, _D_MODEL, _NUM_HEADS, _D_FF, dropout=0.5)
    return layer(_sequences().float(), mask=_lengths_mask())


def _checks(of: _Checks, formula: str, nothing_added: str) -> tuple[Check, ...]:
    return (
        Check("output shape", "The output has the shape of the input.", _output_shape, weak=True),
        Check(
            "order of positions",
            "Without a mask, putting the positions in another order does the same to the output.",
            of.equivariance,
            weak=True,
        ),
        Check(
            "parameters",
            "There are self_attention, feed_forward, norm1 and norm2.",
            _parameters,
        ),
        Check(
            "values",
            f"With random weights the values in float64 are torch's: {formula}.",
            of.values,
        ),
        Check(
            "values under a mask",
            "So they are under a padding mask.",
            lambda candidate: of.values(candidate, _lengths_mask()),
        ),
        Check(
            "causal values",
            "So they are under a causal mask.",
            lambda candidate: of.values(candidate, torch.ones(4, 4, dtype=torch.bool).tril()),
        ),
        Check("gradients", "So are the gradients of the input and the weights.", of.gradients),
        Check("padding", "What the padding holds does not move real positions.", of.padding),
        Check("evaluation", "In evaluation nothing is dropped.", of.evaluation),
        Check(
            "all dropped",
            f"In training with dropout 1 the output is {nothing_added}.",
            of.all_dropped,
        ),
        Check(
            "one sequence",
            "A sequence without a batch axis gives its own row.",
            of.one_sequence,
        ),
    )


_POST_NORM, _PRE_NORM = _Checks(norm_first=False), _Checks(norm_first=True)

TRANSFORMER_ENCODER_LAYER = Layer(
    name="TransformerEncoderLayer",
    signature="TransformerEncoderLayer(d_model, num_heads, d_ff, dropout=0.1)(x, mask=None)",
    example=_example,
    probe=_POST_NORM.probe,
    wrong_versions=WRONG_ENCODER_LAYERS,
    checks=_checks(_POST_NORM, "LayerNorm(x + f(x)), twice", "that of the norms alone"),
)

PRE_NORM_TRANSFORMER_ENCODER_LAYER = Layer(
    name="PreNormTransformerEncoderLayer",
    signature="PreNormTransformerEncoderLayer(d_model, num_heads, d_ff, dropout=0.1)(x, mask=None)",
    example=_example,
    probe=_PRE_NORM.probe,
    wrong_versions=WRONG_PRE_NORM_ENCODER_LAYERS,
    checks=_checks(_PRE_NORM, "x + f(LayerNorm(x)), twice", "the input"),
)
