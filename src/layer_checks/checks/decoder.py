"""The checks of the two decoder layers, against `torch.nn.TransformerDecoderLayer`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

import transformer_layers
from layer_checks.checks.multi_head_attention import blocked_by, packed, unpacked
from layer_checks.evidence.evidence import Evidence, equivalent, holds
from layer_checks.kit.candidates import built, outputs_and_gradients, randn64, same, weights_of
from layer_checks.kit.definitions import Candidate, Family, Layer
from layer_checks.kit.dropping import elements_dropped, one_of, parts_dropped, seen_in_training
from layer_checks.kit.initial import starts_as
from layer_checks.kit.oracles import Oracle, agreeing_gradients, with_weights_of
from layer_checks.kit.probes import DROPPED, Case, Probing, Stepping, probe
from layer_checks.kit.weight_maps import WeightMap, Weights, renamed, split_off
from transformer_layers.attention.memory import DecoderCache

# No two axes are alike: 3 sequences of 4 positions, memories of 5, heads of width 3.
_SIZES = _D_MODEL, _NUM_HEADS, _D_FF = 6, 2, 7
_SEQ, _MEMORY_SEQ = 4, 5


class TorchDecoderLayer(Oracle):
    """`torch.nn.TransformerDecoderLayer` without dropout."""

    public_name, layer_name = "nn.TransformerDecoderLayer", "layer"
    layer: nn.TransformerDecoderLayer

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool) -> None:
        layer = nn.TransformerDecoderLayer(
            d_model, num_heads, d_ff, dropout=0.0, batch_first=True, norm_first=norm_first
        )
        super().__init__(layer, std=0.5)
        self.num_heads = num_heads

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Attends to itself, then to the memory, then maps each position."""
        batch, seq, _ = x.shape
        return self.layer(
            x,
            memory,
            tgt_mask=blocked_by(mask, (batch, seq, seq), self.num_heads),
            memory_mask=blocked_by(memory_mask, (batch, seq, memory.shape[1]), self.num_heads),
        )


_ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "multihead_attn"}
_OF_DECODER_LAYER = {
    f"{ours}.{part}": f"{theirs}.{part}"
    for ours, theirs in (
        ("feed_forward.linear1", "linear1"),
        ("feed_forward.linear2", "linear2"),
        ("norm1", "norm1"),
        ("norm2", "norm2"),
        ("norm3", "norm3"),
    )
    for part in ("weight", "bias")
}


def _to_theirs(weights: Weights) -> dict[str, Tensor]:
    joined: dict[str, Tensor] = {}
    for ours, theirs in _ATTENTIONS.items():
        attention, weights = split_off(f"{ours}.", weights)
        joined |= {f"{theirs}.{name}": weight for name, weight in packed(attention).items()}
    return joined | renamed(_OF_DECODER_LAYER, weights)


def _to_ours(weights: Weights) -> dict[str, Tensor]:
    cut: dict[str, Tensor] = {}
    for ours, theirs in _ATTENTIONS.items():
        attention, weights = split_off(f"{theirs}.", weights)
        cut |= {f"{ours}.{name}": weight for name, weight in unpacked(attention).items()}
    return cut | renamed({theirs: ours for ours, theirs in _OF_DECODER_LAYER.items()}, weights)


@dataclass(frozen=True)
class _Decoder:
    """A candidate, and whether the norms stand before the sub-layers."""

    candidate: Candidate
    norm_first: bool

    def oracle(self, d_ff: int = _D_FF) -> TorchDecoderLayer:
        return TorchDecoderLayer(_D_MODEL, _NUM_HEADS, d_ff, norm_first=self.norm_first)

    def pair(self, dropout: float = 0.0, d_ff: int = _D_FF) -> tuple[nn.Module, TorchDecoderLayer]:
        theirs = self.oracle(d_ff)
        sizes = _D_MODEL, _NUM_HEADS, d_ff
        return with_weights_of(theirs, self.candidate, *sizes, dropout=dropout), theirs

    def stepping(self, seq: int) -> Stepping:
        """Under a mask of the memory, which is the same for all steps."""
        ours, theirs = self.pair()
        memory = _inputs(2)[1]
        memory_mask = _lengths()[:2]

        def whole(x: Tensor) -> Tensor:
            return theirs(x, memory, _causal(x.shape[1]), memory_mask)

        return Stepping(
            step=lambda part, cache: ours(part, memory, memory_mask=memory_mask, cache=cache),
            whole=whole,
            cache=lambda seq: DecoderCache(
                2, _NUM_HEADS, seq, _D_MODEL // _NUM_HEADS, dtype=torch.float64
            ),
            inputs=lambda seq: _inputs(2, seq)[0],
        )


def _post_norm(candidate: Candidate) -> _Decoder:
    return _Decoder(candidate, norm_first=False)


def _pre_norm(candidate: Candidate) -> _Decoder:
    return _Decoder(candidate, norm_first=True)


def _inputs(batch: int = 3, seq: int = _SEQ, memory_seq: int = _MEMORY_SEQ) -> tuple[Tensor, ...]:
    """The decoder's positions, and a memory that is no normalized one."""
    return randn64(batch, seq, _D_MODEL) + 0.5, 2 * randn64(batch, memory_seq, _D_MODEL) - 0.5


def _causal(seq: int = _SEQ) -> Tensor:
    return torch.ones(seq, seq, dtype=torch.bool).tril()


def _uneven() -> Tensor:
    """Neither causal nor symmetric; each row and each column allows something."""
    itself = torch.eye(_SEQ, dtype=torch.bool)
    return itself | itself.roll(1, dims=0)


def _lengths(memory_seq: int = _MEMORY_SEQ) -> Tensor:
    """Memories of unlike lengths: all of it, 2 and 3."""
    return (torch.arange(memory_seq) < torch.tensor([[memory_seq], [2], [3]]))[:, None]


def _values(
    decoder: _Decoder,
    mask: Tensor | None = None,
    memory_mask: Tensor | None = None,
    memory_seq: int = _MEMORY_SEQ,
) -> Evidence:
    ours, theirs = decoder.pair()
    inputs = _inputs(memory_seq=memory_seq)
    found = ours(*inputs, mask=mask, memory_mask=memory_mask)
    return equivalent(found, theirs(*inputs, mask, memory_mask), atol=1e-12)


def _example(candidate: Candidate) -> object:
    # As long as each other: what takes the one for the other must be told in values.
    layer = built(candidate, *_SIZES, dropout=0.5)
    inputs = [each.float() for each in _inputs(memory_seq=_SEQ)]
    return layer(*inputs, mask=_causal(), memory_mask=_lengths(_SEQ))


def _probe(decoder: _Decoder) -> Iterator[Tensor]:
    ours, theirs = decoder.pair()
    weights = theirs.as_ours()
    yield from outputs_and_gradients(ours, weights, *_inputs(memory_seq=_SEQ))
    yield from outputs_and_gradients(
        ours, weights, *_inputs(memory_seq=_SEQ), _uneven(), _lengths(_SEQ)
    )
    dropping, _ = decoder.pair(dropout=0.3)
    yield from seen_in_training(dropping, *_inputs(batch=200, memory_seq=_SEQ))
    yield from outputs_and_gradients(ours, weights, *_inputs(), _causal(), _lengths())
    x, memory = _inputs()
    for step in _in_steps(ours, x, memory, _lengths()):
        yield step.detach()


def _in_steps(ours: nn.Module, x: Tensor, memory: Tensor, memory_mask: Tensor) -> list[Tensor]:
    """The outputs for two positions, and then for one after the other, with a cache."""
    batch, seq, _ = x.shape
    cache = DecoderCache(batch, _NUM_HEADS, seq, _D_MODEL // _NUM_HEADS, dtype=torch.float64)
    parts = x.split([2, *(1 for _ in range(seq - 2))], dim=1)
    # Contiguous, as a single new position is in use.
    return [ours(part.contiguous(), memory, memory_mask=memory_mask, cache=cache) for part in parts]


_SYNONYMS = {
    "x": (
        "tgt trg target y input inputs hidden_states h dec_input dec_inputs decoder_input "
        "decoder_inputs dec_in"
    ).split(),
    "memory": (
        "encoder_hidden_states encoder_output encoder_outputs encoder_out enc_output enc_outputs "
        "enc_out enc_src e_outputs enc src m context encoder_states"
    ).split(),
    "mask": (
        "tgt_mask trg_mask target_mask attention_mask attn_mask self_mask self_attn_mask "
        "slf_attn_mask look_ahead_mask causal_mask dec_mask decoder_mask"
    ).split(),
    "memory_mask": (
        "src_mask source_mask encoder_attention_mask encoder_mask enc_mask cross_mask "
        "cross_attn_mask dec_enc_attn_mask padding_mask enc_dec_mask"
    ).split(),
}
_WORDS = {
    "norm1": "1 self slf masked".split(),
    "norm2": "2 cross encoder enc src memory context multihead".split(),
    "norm3": "3 final ff ffn feedforward forward mlp output".split(),
}
_PARTS = {
    "self_attention": "1 self slf masked".split(),
    "cross_attention": "2 cross encoder enc src memory context multihead".split(),
}
transformer_decoder_layer = Layer(
    "TransformerDecoderLayer",
    "TransformerDecoderLayer(d_model, num_heads, d_ff, dropout=0.1)"
    "(x, memory, mask=None, memory_mask=None, cache=None)",
    _example,
    probe=lambda candidate: _probe(_post_norm(candidate)),
    synonyms=_SYNONYMS,
    words=_WORDS,
    parts=_PARTS,
    by_name=("cache",),
    weight_maps={"nn.TransformerDecoderLayer": WeightMap(_to_theirs, _to_ours)},
)
pre_norm_transformer_decoder_layer = Layer(
    "PreNormTransformerDecoderLayer",
    "PreNormTransformerDecoderLayer(d_model, num_heads, d_ff, dropout=0.1)"
    "(x, memory, mask=None, memory_mask=None, cache=None)",
    _example,
    probe=lambda candidate: _probe(_pre_norm(candidate)),
    synonyms=_SYNONYMS,
    words=_WORDS,
    parts=_PARTS,
    by_name=("cache",),
    options={"norm_first": True},
)
both = Family(
    {transformer_decoder_layer: _post_norm, pre_norm_transformer_decoder_layer: _pre_norm}
)


@both.check("With a memory as long as x the output has the shape of x.", weak=True)
def output_shape(decoder: _Decoder) -> Evidence:
    x, memory = torch.randn(2, 3, 4, _D_MODEL)
    return same(tuple(built(decoder.candidate, *_SIZES)(x, memory).shape), tuple(x.shape))


@both.check(
    "Without masks, putting the positions of x in another order does the same to the output, and "
    "putting those of the memory in another order does nothing.",
    weak=True,
)
def order_of_positions(decoder: _Decoder) -> Evidence:
    ours, _ = decoder.pair()
    x, memory = _inputs(memory_seq=_SEQ)
    order, other = torch.tensor([2, 0, 3, 1]), torch.tensor([1, 3, 2, 0])
    return equivalent(ours(x[:, order], memory[:, other]), ours(x, memory)[:, order], atol=1e-12)


@both.check(
    "There are self_attention, cross_attention, feed_forward, norm1, norm2 and norm3.",
    kind="contract",
)
def parameters(decoder: _Decoder) -> Evidence:
    found = {name for name, _ in built(decoder.candidate, *_SIZES).named_parameters()}
    expected = decoder.oracle().as_ours().keys()
    missing, unknown = expected - found, found - expected
    if missing or unknown:
        raise AssertionError(f"not equal: missing {sorted(missing)}, unknown {sorted(unknown)}")
    return holds(True, f"{len(expected)} parameters, by name")


@both.check(
    {
        transformer_decoder_layer: "With random weights, and a memory as long as x, the values in "
        "float64 are torch's: LayerNorm(x + f(x)), three times.",
        pre_norm_transformer_decoder_layer: "With random weights, and a memory as long as x, the "
        "values in float64 are torch's: x + f(LayerNorm(x)), three times.",
    }
)
def values(decoder: _Decoder) -> Evidence:
    return _values(decoder, memory_seq=_SEQ)


@both.check("So they are with a memory of another length.")
def values_of_another_length(decoder: _Decoder) -> Evidence:
    _values(decoder, memory_seq=2)
    return _values(decoder)


@both.check("So they are under a causal mask.")
def causal_values(decoder: _Decoder) -> Evidence:
    return _values(decoder, mask=_causal())


@both.check("So they are where a mask of the memory hides its padding.")
def values_under_a_memory_mask(decoder: _Decoder) -> Evidence:
    return _values(decoder, memory_mask=_lengths())


@both.check(
    "So they are under a mask of x and a mask of the memory that are both (seq, seq) and neither "
    "causal nor symmetric."
)
def values_under_two_square_masks(decoder: _Decoder) -> Evidence:
    mask = _uneven()
    return _values(decoder, mask=mask, memory_mask=mask.roll(2, dims=1), memory_seq=_SEQ)


@both.check("So are the gradients of x, of the memory and of the weights, under both masks.")
def gradients(decoder: _Decoder) -> Evidence:
    ours, theirs = decoder.pair()
    return agreeing_gradients(ours, theirs, *_inputs(), _causal(), _lengths())


@both.check("Under a causal mask changing positions 2 and 3 of 4 does not move 0 and 1.")
def future(decoder: _Decoder) -> Evidence:
    ours, _ = decoder.pair()
    x, memory = _inputs()
    changed = torch.cat([x[:, :2], randn64(3, 2, _D_MODEL)], dim=1)
    mask = _causal()
    expected = ours(x, memory, mask=mask)[:, :2]
    return equivalent(ours(changed, memory, mask=mask)[:, :2], expected, atol=0.0)


@both.check("Under a mask of the memory, what its padding holds does not move the output.")
def padding(decoder: _Decoder) -> Evidence:
    ours, _ = decoder.pair()
    x, memory = _inputs()
    memory_mask = _lengths()
    changed = memory.where(memory_mask.mT, randn64(memory.shape))
    expected = ours(x, memory, memory_mask=memory_mask)
    return equivalent(ours(x, changed, memory_mask=memory_mask), expected, atol=0.0)


@both.check(
    "Where a mask hides a whole memory, the cross-attention gives its last bias, and all "
    "gradients are finite.",
    kind="contract",
)
def memory_hidden_whole(decoder: _Decoder) -> Evidence:
    ours, theirs = decoder.pair()
    inputs = [each.requires_grad_() for each in _inputs()]
    memory_mask = _lengths().index_fill(0, torch.tensor([1]), False)
    output = ours(*inputs, memory_mask=memory_mask)
    gradients = torch.autograd.grad(output.sin().sum(), inputs)
    holds(all(bool(each.isfinite().all()) for each in gradients), "the gradients are finite")
    attention = theirs.layer.multihead_attn
    with torch.no_grad():  # values of zeros leave the last bias
        attention.in_proj_weight[2 * _D_MODEL :] = 0.0
        attention.in_proj_bias[2 * _D_MODEL :] = 0.0
    return equivalent(output[1], theirs(*inputs)[1], atol=1e-12)


@both.check(
    "With as many sequences as positions, here and in the memory, masks of two axes are those of "
    "each sequence."
)
def masks_of_two_axes(decoder: _Decoder) -> Evidence:
    ours, theirs = decoder.pair()
    inputs = _inputs(_SEQ, _SEQ, _SEQ)
    masks = _uneven(), _uneven().mT
    return equivalent(
        ours(*inputs, mask=masks[0], memory_mask=masks[1]), theirs(*inputs, *masks), atol=1e-12
    )


@both.check(
    "With a cache, and a mask of the memory, two positions and then one after the other have the "
    "values that all have under a causal mask.",
    kind="contract",
)
def cache(decoder: _Decoder) -> Evidence:
    ours, theirs = decoder.pair()
    x, memory = _inputs()
    steps = _in_steps(ours, x, memory, _lengths())
    return equivalent(torch.cat(steps, 1), theirs(x, memory, _causal(), _lengths()), atol=1e-12)


@both.check("In evaluation nothing is dropped.")
def evaluation(decoder: _Decoder) -> Evidence:
    ours, theirs = decoder.pair(dropout=0.5)
    inputs = _inputs()
    return equivalent(ours.eval()(*inputs), theirs(*inputs), atol=1e-12)


@both.check(
    {
        transformer_decoder_layer: "In training with dropout 1 the output is that of the norms "
        "alone.",
        pre_norm_transformer_decoder_layer: "In training with dropout 1 the output is x.",
    },
    kind="contract",
)
def all_dropped(decoder: _Decoder) -> Evidence:
    ours, theirs = decoder.pair(dropout=1.0)
    x, memory = _inputs()
    expected = _with_one_sub_layer(decoder, theirs, x, 0, torch.zeros_like(x))
    return equivalent(ours.train()(x, memory), expected, atol=1e-12)


def _with_one_sub_layer(
    decoder: _Decoder, theirs: TorchDecoderLayer, x: Tensor, place: int, given: Tensor
) -> Tensor:
    """The output where the sub-layer of this place gives this, and the others give zeros."""
    if decoder.norm_first:
        return x + given
    layer = theirs.layer
    for number, norm in enumerate((layer.norm1, layer.norm2, layer.norm3)):
        x = norm(x + given if number == place else x)
    return x


def _last_maps(theirs: TorchDecoderLayer) -> list[nn.Linear]:
    """What each of the three sub-layers ends with."""
    layer = theirs.layer
    return [layer.self_attn.out_proj, layer.multihead_attn.out_proj, layer.linear2]


@both.check("A sequence without a batch axis gives its own row.", kind="contract")
def one_sequence(decoder: _Decoder) -> Evidence:
    ours, theirs = decoder.pair()
    x, memory = _inputs()
    return equivalent(ours(x[0], memory[0]), theirs(x, memory)[0], atol=1e-12)


@both.check(
    "In training what each of the three sub-layers gives is dropped once: with probability 0.25, "
    "and divided by 0.75 where it is not. Nothing else is.",
    kind="contract",
)
def dropped_sub_layers(decoder: _Decoder) -> Evidence:
    x, memory = _inputs(batch=50, seq=2)
    for place in range(3):
        theirs = decoder.oracle()
        maps = _last_maps(theirs)
        with torch.no_grad():  # one sub-layer gives its last bias, the others zeros
            for number, each in enumerate(maps):
                each.weight.zero_()
                if number != place:
                    each.bias.zero_()
        ours = with_weights_of(theirs, decoder.candidate, *_SIZES, dropout=0.25)
        given, dropped = elements_dropped(maps[place].bias.expand_as(x), p=0.25)
        possible = _with_one_sub_layer(decoder, theirs, x, place, given)
        evidence = one_of(ours.train()(x, memory), possible, dropped, p=0.25)
    return evidence


@both.check(
    "With one position in x and one in the memory, each head of both attentions is dropped with "
    "probability 0.25, and divided by 0.75 where it is not, before the sub-layer's result is.",
    kind="contract",
)
def dropped_heads(decoder: _Decoder) -> Evidence:
    x, memory = _inputs(batch=100, seq=1, memory_seq=1)
    for place in range(2):
        theirs = decoder.oracle()
        layer = theirs.layer
        with torch.no_grad():  # the other two sub-layers give zeros
            for number, each in enumerate(_last_maps(theirs)):
                if number != place:
                    each.weight.zero_()
                    each.bias.zero_()
        ours = with_weights_of(theirs, decoder.candidate, *_SIZES, dropout=0.25)
        attention = layer.multihead_attn if place else layer.self_attn
        found = memory if place else layer.norm1(x) if decoder.norm_first else x
        results, dropped = _with_heads_dropped(attention, found)
        possible, dropped_elements = elements_dropped(results, p=0.25)
        things = torch.cat(
            (
                dropped_elements.repeat_interleave(len(dropped), dim=0),
                dropped.repeat(len(dropped_elements), 1),
            ),
            dim=1,
        )
        given = possible.flatten(0, 1)
        possible = _with_one_sub_layer(decoder, theirs, x, place, given)
        evidence = one_of(ours.train()(x, memory), possible, things, p=0.25)
    return evidence


def _with_heads_dropped(attention: nn.MultiheadAttention, found: Tensor) -> tuple[Tensor, Tensor]:
    """All that attention to a single position can give, and which heads are dropped in each."""
    value_weight, value_bias = (
        each[2 * _D_MODEL :] for each in (attention.in_proj_weight, attention.in_proj_bias)
    )
    heads = functional.linear(found, value_weight, value_bias).split(_D_MODEL // _NUM_HEADS, -1)
    columns = attention.out_proj.weight.split(_D_MODEL // _NUM_HEADS, -1)
    parts = [functional.linear(*each) for each in zip(heads, columns, strict=True)]
    return parts_dropped(parts, attention.out_proj.bias, p=0.25)


@both.check(
    "Gains start from ones, their biases from zeros, the rest as nn.Linear's.", kind="start"
)
def initial_values(decoder: _Decoder) -> Evidence:
    right = transformer_layers.TransformerDecoderLayer(64, 4, 48)
    return starts_as(built(decoder.candidate, 64, 4, 48), right)


def _drawn(candidate: Candidate) -> list[Tensor]:
    layer = built(candidate, *_SIZES, dropout=0.5)
    return [*weights_of(layer).values(), layer(*(each.float() for each in _inputs()))]


def _masked_inputs(batch: int, seq: int) -> tuple[Tensor, ...]:
    """Inputs with both masks; some of each memory is padding."""
    memory_seq = seq + 2
    kept = torch.rand(batch, 1, memory_seq).argsort(dim=-1) < (memory_seq + 1) // 2
    return (*_inputs(batch, seq, memory_seq), _causal(seq), kept)


def _large(decoder: _Decoder, seq: int) -> Iterator[Case]:
    """Many positions; and a memory of many, of which the last 20 are padding."""
    ours, theirs = decoder.pair()
    memory_mask = torch.arange(seq).expand(1, 1, -1) < seq - 20
    yield ours, theirs, _inputs(1, seq, 5)
    yield ours, theirs, (*_inputs(1, 4, seq), _causal(4), memory_mask)


def _square(mask: Tensor) -> Tensor:
    """For x itself: a mask of keys is the same for each query."""
    return mask.expand(*mask.shape[:-2], mask.shape[-1], -1)


def _probing(view: Callable[[Candidate], _Decoder]) -> Probing:
    return Probing(
        pair=lambda candidate: view(candidate).pair(),
        inputs=_masked_inputs,
        sizes=_SIZES,
        defaults={"dropout": 0.1},
        wide=lambda candidate, size: (*view(candidate).pair(d_ff=size), _inputs()),
        large=lambda candidate, seq: _large(view(candidate), seq),
        drawn=_drawn,
        masked=lambda batch, seq, mask: (*_inputs(batch, seq, seq), _square(mask), mask),
        dropping=lambda candidate: (view(candidate).pair(DROPPED)[0], _inputs()),
        stepping=lambda candidate, seq: view(candidate).stepping(seq),
    )


for _layer, _view in both.views.items():
    probe(_layer, _probing(_view))
