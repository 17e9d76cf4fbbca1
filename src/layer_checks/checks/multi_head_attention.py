"""The checks of `MultiHeadAttention`, against `torch.nn.MultiheadAttention`."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import transformer_layers
from layer_checks.evidence.evidence import Evidence, equivalent, holds, raises
from layer_checks.kit.arguments import SYNONYMS, CannotTakeError, taken_by
from layer_checks.kit.candidates import (
    built,
    default_of,
    has_parameters,
    outputs_and_gradients,
    randn64,
    refused,
    same,
    weights_of,
)
from layer_checks.kit.definitions import Candidate, Form, Layer
from layer_checks.kit.dropping import one_of, parts_dropped, seen_in_training
from layer_checks.kit.initial import starts_as
from layer_checks.kit.inputs import as_told_apart, number_of_inputs, takes_masks
from layer_checks.kit.oracles import Oracle, agreeing_gradients, with_weights_of
from layer_checks.kit.probes import DROPPED, Case, Probing, probe
from layer_checks.kit.weight_maps import WeightMap, Weights, renamed

# d_k = 5: a scale by the root of another axis would differ. 2 sequences, 4 queries, 7 keys.
_D_MODEL, _NUM_HEADS, _D_K = 15, 3, 5
_PROJECTIONS = ("query_proj", "key_proj", "value_proj")


def blocked_by(mask: Tensor | None, shape: tuple[int, ...], num_heads: int) -> Tensor | None:
    """A mask as torch means it: True is blocked, and a batch has one for each head."""
    if mask is None or mask.ndim < 3:
        return None if mask is None else ~mask
    return (~mask).expand(shape).repeat_interleave(num_heads, dim=0)


class TorchAttention(Oracle):
    """`torch.nn.MultiheadAttention`."""

    public_name, layer_name = "nn.MultiheadAttention", "attention"
    attention: nn.MultiheadAttention

    def __init__(self, d_model: int, num_heads: int, **options: Any) -> None:
        attention = nn.MultiheadAttention(d_model, num_heads, batch_first=True, **options)
        super().__init__(attention, std=0.2)
        self.num_heads = num_heads

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Attends from `query` to `key` and `value`."""
        query, key, value = as_told_apart(query, key, value)
        blocked = blocked_by(mask, (query.shape[0], query.shape[1], key.shape[1]), self.num_heads)
        return self.attention(query, key, value, attn_mask=blocked, need_weights=False)[0]


def packed(weights: Weights) -> dict[str, Tensor]:
    """Joins the three projections; without biases there is one weight each."""
    parts = ("weight", "bias") if "output_proj.bias" in weights else ("weight",)
    ours = [f"{name}.{part}" for name in (*_PROJECTIONS, "output_proj") for part in parts]
    weights = renamed({name: name for name in ours}, weights)
    joined = {
        f"in_proj_{part}": torch.cat([weights[f"{name}.{part}"] for name in _PROJECTIONS])
        for part in parts
    }
    return joined | {f"out_proj.{part}": weights[f"output_proj.{part}"] for part in parts}


def unpacked(weights: Weights) -> dict[str, Tensor]:
    parts = ("weight", "bias") if "in_proj_bias" in weights else ("weight",)
    theirs = [name + part for part in parts for name in ("in_proj_", "out_proj.")]
    weights = renamed({name: name for name in theirs}, weights)
    thirds = {part: weights[f"in_proj_{part}"].chunk(3) for part in parts}
    ours = {
        f"{name}.{part}": thirds[part][position]
        for position, name in enumerate(_PROJECTIONS)
        for part in parts
    }
    return ours | {f"output_proj.{part}": weights[f"out_proj.{part}"] for part in parts}


def _pair(candidate: Candidate, **options: Any) -> tuple[nn.Module, TorchAttention]:
    theirs = TorchAttention(_D_MODEL, _NUM_HEADS, **options)
    return _with_weights_of(theirs, candidate, _D_MODEL, _NUM_HEADS, **options), theirs


def _with_weights_of(
    theirs: TorchAttention, candidate: Candidate, *sizes: int, **options: Any
) -> nn.Module:
    """The candidate, which drops nothing where it is not asked to, whatever its default is."""
    if default_of(candidate, {"dropout", *SYNONYMS["dropout"]}):
        options = {"dropout": 0.0} | options
    return with_weights_of(theirs, candidate, *sizes, **options)


def _inputs(batch: int = 2, q_seq: int = 4, kv_seq: int = 7) -> tuple[Tensor, Tensor, Tensor]:
    number = number_of_inputs()
    query = randn64(batch, kv_seq if number == 1 else q_seq, _D_MODEL)
    key = query if number == 1 else randn64(batch, kv_seq, _D_MODEL)
    value = key if number < 3 else randn64(batch, kv_seq, _D_MODEL)
    return query, key, value


def _mask(*shape: int) -> Tensor:
    """A random mask of which every row allows something and blocks something."""
    if number_of_inputs() == 1 and shape[-2] > 1:  # as many queries as keys
        shape = (*shape[:-2], shape[-1], shape[-1])
    ranks = torch.rand(shape).argsort(dim=-1)
    return ranks < torch.randint(1, shape[-1], (*shape[:-1], 1))


def _compared(candidate: Candidate, inputs: tuple[Tensor, ...], mask: Tensor | None) -> Evidence:
    ours, theirs = _pair(candidate)
    return equivalent(ours(*inputs, mask), theirs(*inputs, mask), atol=1e-12)


def _example(candidate: Candidate) -> object:
    layer = built(candidate, _D_MODEL, _NUM_HEADS, dropout=0.1, bias=True)
    query, key, value = (x.float() for x in _inputs())
    masks = [None, _mask(4, 7)] if takes_masks() else [None]
    return [layer(query, key, value, mask=mask) for mask in masks]


def _probe(candidate: Candidate) -> Iterator[Tensor]:
    inputs = _inputs()
    mask, dead = _mask(4, 7), _mask(4, 7)
    dead[1] = False
    ours, theirs = _pair(candidate)
    weights = theirs.as_ours()
    yield from outputs_and_gradients(ours, weights, *inputs)
    if takes_masks():
        yield from outputs_and_gradients(ours, weights, *inputs, mask)
        yield ours(*inputs, dead).detach()
    yield from seen_in_training(_pair(candidate, dropout=0.3)[0], *_inputs(batch=100))


def _fresh(candidate: Candidate, atol: float) -> Evidence:
    ours = built(candidate, _D_MODEL, _NUM_HEADS)
    theirs = TorchAttention(_D_MODEL, _NUM_HEADS)
    for parameter in ours.parameters():  # as GPT-2's projections start
        nn.init.normal_(parameter, std=0.02)
    theirs.float().load_state_dict(theirs.as_theirs(weights_of(ours)))
    x = torch.randn(2, 5, _D_MODEL)
    return equivalent(ours(x, x, x), theirs(x, x, x), atol=atol)


# What others call the input of both keys and values.
_MEMORY = frozenset(
    "context memory kv key_value key_value_states encoder_hidden_states cond source other y "
    "encoder_output enc_out cross".split()
)
_MASK = frozenset({"mask", "key_padding_mask", "context_mask", "memory_mask", *SYNONYMS["mask"]})


def _forms(candidate: Candidate) -> Iterator[Form]:
    """Those of attention with fewer inputs: from one to another, or from one to itself."""
    taken = taken_by(candidate) if inspect.isclass(candidate) else {}
    named = [each for each in taken.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    inputs = [each for each in named if each.name not in _MASK]
    if not inputs:
        return
    mask_name = next((each.name for each in named if each.name in _MASK), "")
    required = [each.name for each in inputs if each.default is each.empty]
    memory = next((each.name for each in inputs[1:] if each.name in {*_MEMORY, *required}), "")
    if memory and len(required) <= len((inputs[0], memory)):
        words = "its keys and values are made of one input"
        call = _of_fewer(inputs[0].name, memory, mask_name)
        yield Form(words, call, inputs=2, masked=bool(mask_name))
    if len(required) == 1:
        words = "queries, keys and values are made of one input"
        call = _of_fewer(inputs[0].name, "", mask_name)
        yield Form(words, call, inputs=1, masked=bool(mask_name))


def _of_fewer(x_name: str, memory_name: str, mask_name: str) -> Callable[..., Tensor]:
    """Calls attention that takes no values, and perhaps no keys."""

    def call(
        layer: Candidate, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Any:
        given = {x_name: query} | ({memory_name: key} if memory_name else {})
        if mask is not None:
            if not mask_name:
                raise CannotTakeError("its call takes no mask")
            given[mask_name] = mask
        return layer(**given)

    return call


multi_head_attention = Layer(
    "MultiHeadAttention",
    "MultiHeadAttention(d_model, num_heads, dropout=0.0, bias=True)(query, key, value, mask=None)",
    example=_example,
    probe=_probe,
    not_mistakes={"size guessed"},  # "length guessed" is the same
    forms=_forms,
    weight_maps={"nn.MultiheadAttention": WeightMap(packed, unpacked)},
)


@multi_head_attention.check("The output has the shape of the query.", weak=True)
def output_shape(candidate: Candidate) -> Evidence:
    x = torch.randn(2, 5, _D_MODEL)
    return same(tuple(built(candidate, _D_MODEL, _NUM_HEADS)(x, x, x).shape), tuple(x.shape))


@multi_head_attention.check(
    "Where all values are the same, all outputs are: the weights sum to 1.", weak=True
)
def equal_values(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    query, key, value = _inputs()
    output = ours(query, key, value[:, :1].expand_as(value))
    return equivalent(output, output[:, :1].expand_as(output), atol=1e-12)


@multi_head_attention.check(
    "With weights of standard deviation 0.02 the values are torch's, up to 0.00001.",
    name="small weights, atol 1e-5",
    weak=True,
)
def small_weights_atol_1e_5(candidate: Candidate) -> Evidence:
    return _fresh(candidate, 1e-5)


@multi_head_attention.check("There are four projections, with biases or without.", kind="contract")
def parameters(candidate: Candidate) -> Evidence:
    names = ("query_proj", "key_proj", "value_proj", "output_proj")
    weights = {f"{name}__weight": (_D_MODEL, _D_MODEL) for name in names}
    has_parameters(built(candidate, _D_MODEL, _NUM_HEADS, bias=False), **weights)
    shapes: dict[str, tuple[int, ...]] = {}
    for name in names:
        shapes |= {f"{name}__weight": (_D_MODEL, _D_MODEL), f"{name}__bias": (_D_MODEL,)}
    return has_parameters(built(candidate, _D_MODEL, _NUM_HEADS), **shapes)


@multi_head_attention.check(
    "With other keys than values and random weights the values in float64 are torch's."
)
def values(candidate: Candidate) -> Evidence:
    return _compared(candidate, _inputs(), None)


@multi_head_attention.check("So they are with bias=False.")
def values_without_biases(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, bias=False)
    inputs = _inputs()
    return equivalent(ours(*inputs), theirs(*inputs), atol=1e-12)


@multi_head_attention.check("So they are under a mask of shape (q, kv).")
def mask_of_queries_and_keys(candidate: Candidate) -> Evidence:
    return _compared(candidate, _inputs(), _mask(4, 7))


@multi_head_attention.check("So they are under a mask of shape (batch, q, kv).")
def mask_of_a_batch(candidate: Candidate) -> Evidence:
    return _compared(candidate, _inputs(), _mask(2, 4, 7))


@multi_head_attention.check("So they are under a mask of shape (batch, 1, kv).")
def padding_mask(candidate: Candidate) -> Evidence:
    return _compared(candidate, _inputs(), _mask(2, 1, 7))


@multi_head_attention.check(
    "A mask of two axes is (q, kv), also where the batch has as many sequences as queries."
)
def as_many_sequences_as_queries(candidate: Candidate) -> Evidence:
    return _compared(candidate, _inputs(batch=4), _mask(4, 7))


@multi_head_attention.check(
    "A mask of three axes is (batch, q, kv), also where there are as many heads."
)
def as_many_sequences_as_heads(candidate: Candidate) -> Evidence:
    return _compared(candidate, _inputs(batch=3), _mask(3, 4, 7))


@multi_head_attention.check("The gradients of inputs and weights are torch's.")
def gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    inputs, masks = _inputs(), [_mask(4, 7)] if takes_masks() else []
    return agreeing_gradients(ours, theirs, *inputs, *masks)


@multi_head_attention.check(
    "Changing a key that is blocked for all queries, and its value, changes nothing."
)
def blocked_keys(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    query, key, value = _inputs()
    mask = _mask(4, 7)
    mask[:, 2] = False
    mask[:, 3] = True
    before = ours(query, key, value, mask)
    for changed in {id(each): each for each in (key, value)}.values():
        changed[:, 2] *= -3
    after = ours(query, key, value, mask)
    # A query that is changed itself gives something else.
    seen = [i for i in range(query.shape[1]) if query is not key or i != 2]
    return equivalent(after[:, seen], before[:, seen], atol=0.0)


@multi_head_attention.check(
    "Blocked keys do not matter where the score of the only allowed one is far below -10,000."
)
def large_scores(candidate: Candidate) -> Evidence:
    theirs = TorchAttention(_D_MODEL, _NUM_HEADS)
    with torch.no_grad():  # key = -query: each position's score with itself is far below -10,000
        query, key, _ = theirs.attention.in_proj_weight.chunk(3)
        key.copy_(-query)
        theirs.attention.in_proj_bias.zero_()
    ours = _with_weights_of(theirs, candidate, _D_MODEL, _NUM_HEADS)
    x = 1000 * _inputs()[0]
    itself = torch.eye(4, dtype=torch.bool)
    return equivalent(ours(x, x, x, itself), theirs(x, x, x, itself), rtol=1e-9)


@multi_head_attention.check(
    "A query that may attend to nothing gives the bias of output_proj, and all gradients "
    "are finite.",
    kind="contract",
)
def nothing_allowed(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    query, key, value = (x.requires_grad_() for x in _inputs())
    mask = _mask(2, 1, 7)
    mask[1] = False
    output = ours(query, key, value, mask)
    inputs = tuple(dict.fromkeys((query, key, value)))
    gradients = torch.autograd.grad(output.sin().sum(), inputs)
    holds(all(bool(each.isfinite().all()) for each in gradients), "the gradients are finite")
    return equivalent(output[1], theirs.attention.out_proj.bias.expand_as(output[1]), atol=1e-12)


@multi_head_attention.check("A mask that is not boolean is refused.", kind="contract")
def mask_of_numbers(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    inputs = _inputs()
    added = torch.zeros(4, 7, dtype=torch.float64).masked_fill(~_mask(4, 7), -torch.inf)
    return refused(ours, [(*inputs, mask) for mask in (added, _mask(4, 7).long())])


@multi_head_attention.check("A width that the heads do not divide is refused.", kind="contract")
def uneven_heads(candidate: Candidate) -> Evidence:
    raises(ValueError, candidate, 10, 3)
    return holds(True, "d_model=10, num_heads=3 raises ValueError")


@multi_head_attention.check("In evaluation nothing is dropped.")
def evaluation(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, dropout=0.5)
    inputs = _inputs()
    return equivalent(ours.eval()(*inputs), theirs.eval()(*inputs), atol=1e-12)


@multi_head_attention.check("In training weights are dropped.", kind="contract")
def training(candidate: Candidate) -> Evidence:
    # Without any weight, what is left is the last bias: it is not the result that is dropped.
    ours, theirs = _pair(candidate, dropout=1.0)
    inputs = _inputs()
    bias = theirs.attention.out_proj.bias
    equivalent(ours(*inputs), bias.expand(inputs[0].shape), atol=1e-12)
    ours, _ = _pair(candidate, dropout=0.5)
    return holds(not torch.equal(ours(*inputs), ours(*inputs)), "two calls drop other weights")


@multi_head_attention.check("A sequence without a batch axis gives its own row.", kind="contract")
def one_sequence(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    query, key, value = _inputs()
    expected = theirs(query, key, value)[0]
    return equivalent(ours(query[0], key[0], value[0]), expected, atol=1e-12)


@multi_head_attention.check("Weights and biases start as those of nn.Linear do.", kind="start")
def initial_values(candidate: Candidate) -> Evidence:
    return starts_as(built(candidate, 64, 4), transformer_layers.MultiHeadAttention(64, 4))


@multi_head_attention.check("Without a dropout, nothing is dropped in training.", kind="start")
def default_dropout(candidate: Candidate) -> Evidence:
    ours = built(candidate, _D_MODEL, _NUM_HEADS).double()
    inputs = _inputs()
    return equivalent(ours.train()(*inputs), ours.eval()(*inputs), atol=1e-12)


@multi_head_attention.check(
    "With two keys that are equal, each weight of each head is dropped by itself: with probability "
    "0.25, or divided by 0.75. Nothing else is.",
    kind="contract",
)
def dropped_heads(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, dropout=0.25)
    query, key, value = _inputs(batch=100, q_seq=2, kv_seq=2)
    if value is key:  # and values are no longer apart where keys are equal
        raise CannotTakeError("its values are made of the input of its keys")
    key = key[:, :1].expand_as(key)
    weights = theirs.as_ours()
    values = functional.linear(value, weights["value_proj.weight"], weights["value_proj.bias"]) / 2
    columns = weights["output_proj.weight"].split(_D_K, dim=-1)
    parts = [
        functional.linear(values[:, i : i + 1, h * _D_K : (h + 1) * _D_K], columns[h])
        for h in range(_NUM_HEADS)
        for i in range(2)
    ]
    possible, dropped = parts_dropped(parts, weights["output_proj.bias"], p=0.25)
    found = ours.train()(query, key, value)
    return one_of(found, possible, dropped.unflatten(1, (_NUM_HEADS, 2)), p=0.25)


def _drawn(candidate: Candidate) -> list[Tensor]:
    layer = built(candidate, _D_MODEL, _NUM_HEADS, dropout=0.5)
    return [*weights_of(layer).values(), layer(*(x.float() for x in _inputs()))]


def _sequences(batch: int, seq: int) -> tuple[Tensor, ...]:
    """Inputs and a mask; one key where there is one query."""
    keys = seq if seq == 1 or number_of_inputs() == 1 else 7
    inputs = _inputs(batch, seq, keys)
    if not takes_masks():
        return inputs
    return (*inputs, torch.ones(1, 1, dtype=torch.bool) if seq == 1 else _mask(seq, keys))


def _large(candidate: Candidate, seq: int) -> Iterator[Case]:
    """Many queries; and many keys, of which the last 20 are padding."""
    ours, theirs = _pair(candidate)
    yield ours, theirs, _sequences(1, seq)
    if takes_masks():
        mask = torch.arange(seq).expand(1, 1, -1) < seq - 20
        yield ours, theirs, (*_inputs(1, 4, seq), mask)


def _dropping(candidate: Candidate) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return _pair(candidate, dropout=DROPPED)[0], _inputs()


def _narrow(candidate: Candidate) -> tuple[nn.Module, nn.Module, tuple[Tensor, ...]]:
    theirs = TorchAttention(1, 1)
    query, key, value = (x[..., :1] for x in _inputs())
    return _with_weights_of(theirs, candidate, 1, 1), theirs, (query, key, value)


probe(
    multi_head_attention,
    Probing(
        pair=_pair,
        inputs=_sequences,
        sizes=(_D_MODEL, _NUM_HEADS),
        narrow=_narrow,
        large=_large,
        drawn=_drawn,
        masked=lambda batch, seq, mask: (*_inputs(batch, seq, seq), mask),
        dropping=_dropping,
    ),
)
