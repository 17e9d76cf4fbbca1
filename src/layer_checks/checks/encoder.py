"""The checks of the two encoder layers, against `torch.nn.TransformerEncoderLayer`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import transformer_layers
from layer_checks.checks.multi_head_attention import blocked_by, packed, unpacked
from layer_checks.evidence.evidence import Evidence, equivalent, holds
from layer_checks.kit.candidates import built, outputs_and_gradients, randn64, same, weights_of
from layer_checks.kit.definitions import Candidate, Family, Layer
from layer_checks.kit.dropping import elements_dropped, one_of, seen_in_training
from layer_checks.kit.initial import starts_as
from layer_checks.kit.oracles import Oracle, agreeing_gradients, with_weights_of
from layer_checks.kit.probes import DROPPED, Probing, probe
from layer_checks.kit.weight_maps import WeightMap, Weights, renamed, split_off

_SIZES = _D_MODEL, _NUM_HEADS, _D_FF = 6, 2, 7


class TorchEncoderLayer(Oracle):
    """`torch.nn.TransformerEncoderLayer` without dropout."""

    public_name, layer_name = "nn.TransformerEncoderLayer", "layer"
    layer: nn.TransformerEncoderLayer

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool) -> None:
        layer = nn.TransformerEncoderLayer(
            d_model, num_heads, d_ff, dropout=0.0, batch_first=True, norm_first=norm_first
        )
        super().__init__(layer, std=0.5)
        self.num_heads = num_heads

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attends, then maps each position."""
        blocked = blocked_by(mask, (x.shape[0], x.shape[1], x.shape[1]), self.num_heads)
        return self.layer(x, src_mask=blocked)


_OF_ENCODER_LAYER = {
    f"{ours}.{part}": f"{theirs}.{part}"
    for ours, theirs in (
        ("feed_forward.linear1", "linear1"),
        ("feed_forward.linear2", "linear2"),
        ("norm1", "norm1"),
        ("norm2", "norm2"),
    )
    for part in ("weight", "bias")
}


def _to_theirs(weights: Weights) -> dict[str, Tensor]:
    attention, rest = split_off("self_attention.", weights)
    joined = {f"self_attn.{name}": weight for name, weight in packed(attention).items()}
    return joined | renamed(_OF_ENCODER_LAYER, rest)


def _to_ours(weights: Weights) -> dict[str, Tensor]:
    attention, rest = split_off("self_attn.", weights)
    cut = {f"self_attention.{name}": weight for name, weight in unpacked(attention).items()}
    return cut | renamed({theirs: ours for ours, theirs in _OF_ENCODER_LAYER.items()}, rest)


@dataclass(frozen=True)
class _Encoder:
    """A candidate, and whether the norms stand before the sub-layers."""

    candidate: Candidate
    norm_first: bool

    def pair(self, dropout: float = 0.0, d_ff: int = _D_FF) -> tuple[nn.Module, TorchEncoderLayer]:
        sizes = _D_MODEL, _NUM_HEADS, d_ff
        theirs = TorchEncoderLayer(*sizes, norm_first=self.norm_first)
        return with_weights_of(theirs, self.candidate, *sizes, dropout=dropout), theirs


def _post_norm(candidate: Candidate) -> _Encoder:
    return _Encoder(candidate, norm_first=False)


def _pre_norm(candidate: Candidate) -> _Encoder:
    return _Encoder(candidate, norm_first=True)


def _sequences() -> Tensor:
    return randn64(3, 4, _D_MODEL) + 0.5


def _lengths_mask() -> Tensor:
    return (torch.arange(4) < torch.tensor([[4], [2], [3]]))[:, None]


def _values(encoder: _Encoder, mask: Tensor | None) -> Evidence:
    ours, theirs = encoder.pair()
    x = _sequences()
    return equivalent(ours(x, mask=mask), theirs(x, mask), atol=1e-12)


def _example(candidate: Candidate) -> object:
    layer = built(candidate, *_SIZES, dropout=0.5)
    return layer(_sequences().float(), mask=_lengths_mask())


def _probe(encoder: _Encoder) -> Iterator[Tensor]:
    ours, theirs = encoder.pair()
    yield from outputs_and_gradients(ours, theirs.as_ours(), _sequences(), _lengths_mask())
    dropping, _ = encoder.pair(dropout=0.3)
    yield from seen_in_training(dropping, randn64(200, 4, _D_MODEL))


transformer_encoder_layer = Layer(
    "TransformerEncoderLayer",
    "TransformerEncoderLayer(d_model, num_heads, d_ff, dropout=0.1)(x, mask=None)",
    _example,
    probe=lambda candidate: _probe(_post_norm(candidate)),
    weight_maps={"nn.TransformerEncoderLayer": WeightMap(_to_theirs, _to_ours)},
)
pre_norm_transformer_encoder_layer = Layer(
    "PreNormTransformerEncoderLayer",
    "PreNormTransformerEncoderLayer(d_model, num_heads, d_ff, dropout=0.1)(x, mask=None)",
    _example,
    probe=lambda candidate: _probe(_pre_norm(candidate)),
    options={"norm_first": True},
)
both = Family(
    {transformer_encoder_layer: _post_norm, pre_norm_transformer_encoder_layer: _pre_norm}
)


@both.check("The output has the shape of the input.", weak=True)
def output_shape(encoder: _Encoder) -> Evidence:
    x = torch.randn(3, 4, _D_MODEL)
    return same(tuple(built(encoder.candidate, *_SIZES)(x).shape), tuple(x.shape))


@both.check(
    "Without a mask, putting the positions in another order does the same to the output.",
    weak=True,
)
def order_of_positions(encoder: _Encoder) -> Evidence:
    ours, _ = encoder.pair()
    x = _sequences()
    order = torch.tensor([2, 0, 3, 1])
    return equivalent(ours(x[:, order]), ours(x)[:, order], atol=1e-12)


@both.check("There are self_attention, feed_forward, norm1 and norm2.", kind="contract")
def parameters(encoder: _Encoder) -> Evidence:
    found = {name for name, _ in built(encoder.candidate, *_SIZES).named_parameters()}
    expected = TorchEncoderLayer(*_SIZES, norm_first=False).as_ours().keys()
    missing, unknown = expected - found, found - expected
    if missing or unknown:
        raise AssertionError(f"not equal: missing {sorted(missing)}, unknown {sorted(unknown)}")
    return holds(True, f"{len(expected)} parameters, by name")


@both.check(
    {
        transformer_encoder_layer: "With random weights the values in float64 are torch's: "
        "LayerNorm(x + f(x)), twice.",
        pre_norm_transformer_encoder_layer: "With random weights the values in float64 are "
        "torch's: x + f(LayerNorm(x)), twice.",
    }
)
def values(encoder: _Encoder) -> Evidence:
    return _values(encoder, None)


@both.check("So they are under a padding mask.")
def values_under_a_mask(encoder: _Encoder) -> Evidence:
    return _values(encoder, _lengths_mask())


@both.check("So they are under a causal mask.")
def causal_values(encoder: _Encoder) -> Evidence:
    return _values(encoder, torch.ones(4, 4, dtype=torch.bool).tril())


@both.check("So are the gradients of the input and the weights.")
def gradients(encoder: _Encoder) -> Evidence:
    ours, theirs = encoder.pair()
    return agreeing_gradients(ours, theirs, _sequences())


@both.check("What the padding holds does not move real positions.")
def padding(encoder: _Encoder) -> Evidence:
    ours, _ = encoder.pair()
    x, mask = _sequences(), _lengths_mask()
    changed = x.clone()
    changed[1, 2:] = randn64(2, _D_MODEL)
    return equivalent(ours(changed, mask=mask)[1, :2], ours(x, mask=mask)[1, :2], atol=0.0)


@both.check("In evaluation nothing is dropped.")
def evaluation(encoder: _Encoder) -> Evidence:
    ours, theirs = encoder.pair(dropout=0.5)
    x = _sequences()
    return equivalent(ours.eval()(x), theirs(x), atol=1e-12)


@both.check(
    {
        transformer_encoder_layer: "In training with dropout 1 the output is that of the norms "
        "alone.",
        pre_norm_transformer_encoder_layer: "In training with dropout 1 the output is the input.",
    },
    kind="contract",
)
def all_dropped(encoder: _Encoder) -> Evidence:
    ours, theirs = encoder.pair(dropout=1.0)
    x = _sequences()
    normed = x if encoder.norm_first else theirs.layer.norm2(theirs.layer.norm1(x))
    return equivalent(ours.train()(x), normed, atol=1e-12)


@both.check("A sequence without a batch axis gives its own row.", kind="contract")
def one_sequence(encoder: _Encoder) -> Evidence:
    ours, theirs = encoder.pair()
    x = _sequences()
    return equivalent(ours(x[0]), theirs(x)[0], atol=1e-12)


@both.check(
    "In training what each sub-layer gives is dropped once: with probability 0.25, and divided by "
    "0.75 where it is not. Nothing else is.",
    kind="contract",
)
def dropped_sub_layers(encoder: _Encoder) -> Evidence:
    x = randn64(50, 2, _D_MODEL)
    for of_attention in (True, False):
        theirs = TorchEncoderLayer(*_SIZES, norm_first=encoder.norm_first)
        layer = theirs.layer
        pair: list[nn.Linear] = [layer.self_attn.out_proj, layer.linear2]
        last, other = pair if of_attention else reversed(pair)
        with torch.no_grad():  # one sub-layer gives its last bias, the other zeros
            for each in (last.weight, other.weight, other.bias):
                each.zero_()
        ours = with_weights_of(theirs, encoder.candidate, *_SIZES, dropout=0.25)
        given, dropped = elements_dropped(last.bias.expand_as(x), p=0.25)
        if encoder.norm_first:
            possible = x + given
        elif of_attention:
            possible = layer.norm2(layer.norm1(x + given))
        else:
            possible = layer.norm2(layer.norm1(x) + given)
        evidence = one_of(ours.train()(x), possible, dropped, p=0.25)
    return evidence


@both.check(
    "Gains start from ones, their biases from zeros, the rest as nn.Linear's.", kind="start"
)
def initial_values(encoder: _Encoder) -> Evidence:
    right = transformer_layers.TransformerEncoderLayer(64, 4, 48)
    return starts_as(built(encoder.candidate, 64, 4, 48), right)


def _drawn(candidate: Candidate) -> list[Tensor]:
    layer = built(candidate, *_SIZES, dropout=0.5)
    return [*weights_of(layer).values(), layer(_sequences().float())]


def _probing(view: Callable[[Candidate], _Encoder]) -> Probing:
    return Probing(
        pair=lambda candidate: view(candidate).pair(),
        inputs=lambda batch, seq: (
            randn64(batch, seq, _D_MODEL) + 0.5,
            torch.rand(batch, 1, seq).argsort(dim=-1) < (seq + 1) // 2,
        ),
        sizes=_SIZES,
        defaults={"dropout": 0.1},
        wide=lambda candidate, size: (*view(candidate).pair(d_ff=size), (_sequences(),)),
        drawn=_drawn,
        masked=lambda batch, seq, mask: (randn64(batch, seq, _D_MODEL) + 0.5, mask),
        dropping=lambda candidate: (view(candidate).pair(DROPPED)[0], (_sequences(),)),
    )


for _layer, _view in both.views.items():
    probe(_layer, _probing(_view))
