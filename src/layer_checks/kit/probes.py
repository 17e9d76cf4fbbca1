"""What every layer is asked, whatever it computes: probes that are written once.

A check module tells by a `Probing` how its layer is built and called, and which inputs it takes;
`probe` declares for the layer each of the probes that this is enough for.
"""

import copy
import gc
import itertools
import operator
import pickle
import random
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from layer_checks.evidence.comparison import is_compared_in_single
from layer_checks.evidence.evidence import Evidence, equivalent, holds
from layer_checks.evidence.gradients import same_without_gradient_of_inputs
from layer_checks.evidence.randomness import seeded
from layer_checks.kit.candidates import (
    built,
    deep_copy,
    outputs_and_gradients,
    quietly,
    same,
    weights_of,
)
from layer_checks.kit.definitions import Candidate, Kind, Layer, in_words
from layer_checks.kit.devices import stays_on_its_device
from layer_checks.kit.oracles import agreeing_gradients
from layer_checks.kit.resetting import starts_again

Function: TypeAlias = Callable[..., Any]
Pair: TypeAlias = tuple[Function, Function]
Inputs: TypeAlias = tuple[Any, ...]
Case: TypeAlias = tuple[Function, Function, Inputs]


# A probability that no other number of a layer is.
DROPPED = 0.4


@dataclass(frozen=True)
class Stepping:
    """How a layer goes on with a cache.

    Attributes:
        step: Maps the next positions of two sequences, and a cache, to the result for them.
        whole: Maps all positions to the results, without a cache.
        cache: Makes an empty cache, with room for a number of positions of two sequences.
        inputs: Draws as many positions of two sequences.
    """

    step: Callable[[Tensor, Any], Tensor]
    whole: Callable[[Tensor], Tensor]
    cache: Callable[[int], Any]
    inputs: Callable[[int], Tensor]


@dataclass(frozen=True)
class Probing:
    """How a layer is built and called, for the probes.

    Attributes:
        pair: Makes the candidate and its oracle, with the same weights in float64, and such that
            nothing is dropped in training either.
        inputs: Inputs for both in float64, for a number of sequences and of positions.
        narrow: The pair for one feature, and inputs for it; None where there are no features.
        wide: The pair for a number of features, and inputs for it; None where there are none, or
            where 1,500 take long.
        large: The pair for a number of positions, and inputs for it, in one case or several; None
            where `pair` and `inputs` do for any number.
        sizes: What the candidate is built with for its initial weights, and for the defaults of its
            other arguments; empty where it has no weights.
        defaults: These arguments, and the values that they have where they are left out: of the
            constructor, or of a function.
        drawn: Builds the candidate and calls it, and returns all that chance decides in this: the
            initial weights, and an output in training; None where nothing is drawn.
        scales: By what the inputs are multiplied; empty where they are no floating-point numbers.
        half: Whether float16 and bfloat16 give results of their own dtype.
        batched: Whether the first axis of the inputs and the result counts sequences, of which
            there may be none.
        bare: What a function is called with where all is left out that can be; None for a class.
        makes: What makes tensors of its own when it is called, such as a mask, and what it is
            called with; None where all comes from the input.
        masked: Inputs for a number of sequences and of positions, each of them a query and a key,
            under a boolean mask; None where no mask is taken.
        dropping: What drops with probability `DROPPED`, in training where it has modes, and inputs
            for it; None where nothing is dropped.
        stepping: What goes on with a cache, for a number of positions; None where there is none.
        rounding: By how much each position may add to the largest value's relative error, as that
            of angles in float32 grows; what is more exact is no law then.
        chooses: Whether it chooses by the largest of some numbers, which inputs of size 1e-6 leave
            alike in float32.
    """

    pair: Callable[[Candidate], Pair]
    inputs: Callable[[int, int], Inputs]
    narrow: Callable[[Candidate], Case] | None = None
    wide: Callable[[Candidate, int], Case] | None = None
    large: Callable[[Candidate, int], Iterable[Case]] | None = None
    sizes: tuple[Any, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    drawn: Callable[[Candidate], Sequence[Tensor]] | None = None
    scales: Sequence[float] = (1e-6, 1.0, 80.0, 1e3)
    half: bool = True
    batched: bool = True
    bare: Callable[[], Inputs] | None = None
    makes: Callable[[Candidate], tuple[Function, Inputs]] | None = None
    masked: Callable[[int, int, Tensor], Inputs] | None = None
    dropping: Callable[[Candidate], tuple[Function, Inputs]] | None = None
    stepping: Callable[[Candidate, int], Stepping] | None = None
    rounding: float = 0.0
    chooses: bool = False


@dataclass(frozen=True)
class _Probe:
    law: str
    run: Callable[[Probing, Candidate], Evidence]
    kind: Kind
    needs: Callable[[Layer, Probing], object]


PROBES: dict[str, _Probe] = {}


def probe(layer: Layer, probing: Probing) -> None:
    """Declares the probes of a layer: those for which enough is told.

    Args:
        layer: The layer.
        probing: How it is built and called.
    """
    layer.defaults = probing.defaults
    for name, each in PROBES.items():
        if each.needs(layer, probing):
            run = partial(each.run, probing)
            layer.check(each.law, name=name, kind=each.kind, generic=True)(run)


def declared(
    law: str, kind: Kind, needs: Callable[[Layer, Probing], object] = lambda layer, probing: True
) -> Callable[[Callable[[Probing, Candidate], Evidence]], Callable[[Probing, Candidate], Evidence]]:
    """Declares a function as a probe; `needs` says whether a layer can be asked."""

    def kept(
        run: Callable[[Probing, Candidate], Evidence],
    ) -> Callable[[Probing, Candidate], Evidence]:
        PROBES[in_words(run.__name__)] = _Probe(law, run, kind, needs)
        return run

    return kept


def is_module(layer: Layer, probing: Probing) -> bool:
    """Whether the layer is a class."""
    return layer.is_class


def axes_of_inputs(layer: Layer, probing: Probing) -> int:
    """The most axes that an input has; 0 where none is a tensor."""
    with seeded(0):
        return max(x.ndim if isinstance(x, Tensor) else 0 for x in probing.inputs(2, 3))


@declared("What it is called with is the same afterwards.", "contract", axes_of_inputs)
def input_unchanged(probing: Probing, candidate: Candidate) -> Evidence:
    """Inputs and masks, whether gradients are wanted or not."""
    ours, _ = probing.pair(candidate)
    inputs = probing.inputs(3, 4)
    before = copy.deepcopy(inputs)
    for called, gradients in itertools.product(modes(ours), (True, False)):
        with torch.set_grad_enabled(gradients):
            called(*inputs)
        for number, (x, expected) in enumerate(zip(inputs, before, strict=True)):
            if isinstance(x, Tensor) and not torch.equal(x, expected):
                raise AssertionError(f"not equal: input {number} is another one after the call")
    return holds(True, "the inputs are unchanged")


@declared(
    "A call gives what the one before it gave, also after another shape or other values, and after "
    "the result was written over.",
    "law",
    lambda layer, probing: is_module(layer, probing) or not axes_of_inputs(layer, probing),
)
def called_again(probing: Probing, candidate: Candidate) -> Evidence:
    """Nothing of one call counts in the next."""
    ours, _ = probing.pair(candidate)
    inputs, others, alike = probing.inputs(3, 4), probing.inputs(2, 5), probing.inputs(3, 4)
    for called in modes(ours):
        if isinstance(called, nn.Module):  # of one shape, and other values
            expected = _another_like(probing, candidate, called)(*alike).detach()
            called(*inputs)
            equivalent(called(*alike).detach(), expected, atol=1e-6)
    evidence = None
    for called in modes(ours):
        result = called(*copy.deepcopy(inputs)).detach()
        expected = result.clone()
        with _written_over(result):
            equivalent(called(*copy.deepcopy(inputs)).detach(), expected, atol=1e-6)
        called(*others)
        evidence = equivalent(called(*inputs).detach(), expected, atol=1e-6)
    return evidence or holds(True, "called twice")


@declared(
    "One sequence, one position and one feature are mapped as many are.",
    "law",
    lambda layer, probing: probing.batched and (probing.scales or probing.narrow),
)
def sizes_of_one(probing: Probing, candidate: Candidate) -> Evidence:
    """An axis of size 1 is an axis."""
    found = []
    ours, theirs = map(evaluated, probing.pair(candidate))
    for batch, seq in ((1, 4), (3, 1), (1, 1)):
        inputs = probing.inputs(batch, seq)
        found.append(equivalent(ours(*inputs), theirs(*inputs), atol=1e-11))
    if probing.narrow is not None:
        ours, theirs, inputs = probing.narrow(candidate)
        with quietly():
            result = evaluated(ours)(*inputs)
        found.append(equivalent(result, evaluated(theirs)(*inputs), atol=1e-11))
    return found[0]


def has_large_sizes(layer: Layer, probing: Probing) -> object:
    """Whether a layer takes any number of positions, or of features."""
    return probing.large or (probing.batched and (probing.scales or probing.narrow))


def of_sizes(
    probing: Probing, candidate: Candidate, numbers: Sequence[int], features: int | None = None
) -> Iterator[Case]:
    """The pair and inputs for some numbers of positions of a single sequence, and of features."""
    if features is not None and probing.wide is not None:
        yield probing.wide(candidate, features)
    if probing.large is not None:
        for number in numbers:
            yield from probing.large(candidate, number)
        return
    ours, theirs = probing.pair(candidate)
    yield from ((ours, theirs, probing.inputs(1, number)) for number in numbers)


def relative_to_the_largest(cases: Iterable[Case], rounding: float = 0.0) -> Evidence:
    """Holds candidates against oracles, in evaluation, up to the rounding of long sums.

    Args:
        cases: Candidates, oracles and inputs.
        rounding: What each position adds to the tolerance.
    """
    found = []
    for ours, theirs, inputs in cases:
        expected = evaluated(theirs)(*inputs)
        if expected.dtype == torch.bool:
            found.append(_same_mask(evaluated(ours)(*inputs), expected))
            continue
        size = expected.double().abs().max().clamp(min=1e-30)
        atol = 2e-6 if expected.dtype == torch.float32 else 1e-11
        atol += rounding * (expected.shape[-2] if expected.ndim > 1 else 0)
        result = evaluated(ours)(*inputs).double()
        found.append(equivalent(result / size, expected.double() / size, atol=atol))
    return found[0]


@declared(
    "So are 70 positions, and 1,025, and many features: no power of two is special.",
    "law",
    has_large_sizes,
)
def large_sizes(probing: Probing, candidate: Candidate) -> Evidence:
    """Relative to the largest value, since sums are longer."""
    return relative_to_the_largest(of_sizes(probing, candidate, (70, 1025), 1500), probing.rounding)


def _same_mask(result: Any, expected: Tensor) -> Evidence:
    """`equivalent`, in a step for the million of elements that are mostly equal."""
    if isinstance(result, Tensor) and torch.equal(result, expected):
        return holds(True, f"{expected.numel():,} elements are equal")
    return equivalent(result, expected)


@declared("No sequences give no sequences.", "contract", lambda layer, probing: probing.batched)
def empty_batch(probing: Probing, candidate: Candidate) -> Evidence:
    """The shape is that of many, with a first axis of 0."""
    ours, _ = probing.pair(candidate)
    shape = evaluated(ours)(*probing.inputs(2, 4)).shape
    with quietly():
        result = ours(*probing.inputs(0, 4))
    return same(tuple(result.shape), (0, *shape[1:]))


@declared(
    "Inputs that are transposed, sliced or expanded in memory are mapped as copies of them are.",
    "contract",
    lambda layer, probing: axes_of_inputs(layer, probing) > 1,
)
def layout_in_memory(probing: Probing, candidate: Candidate) -> Evidence:
    """Strides are no values."""
    ours, _ = map(evaluated, probing.pair(candidate))
    evidence = None
    for laid_out in (_transposed, _sliced, _expanded):
        inputs = [laid_out(x) if isinstance(x, Tensor) else x for x in probing.inputs(3, 4)]
        copies = [
            x.clone(memory_format=torch.contiguous_format) if isinstance(x, Tensor) else x
            for x in inputs
        ]
        evidence = equivalent(ours(*inputs), ours(*copies), atol=1e-6)
    return evidence or holds(True, "all layouts")


@declared(
    "Inputs of size 1e-6, 1, 80 and 1000 are mapped alike, in training and in evaluation.",
    "law",
    lambda layer, probing: probing.scales,
)
def sizes_of_values(probing: Probing, candidate: Candidate) -> Evidence:
    """Relative to the largest value, which rounding is relative to as well."""
    found = []
    pair = probing.pair(candidate)
    alike = 1e-4 if probing.chooses and is_compared_in_single() else 0.0
    for scale in (each for each in probing.scales if each > alike):
        inputs = changed(probing.inputs(3, 4), partial(operator.mul, scale))
        for ours, theirs in zip(*map(modes, pair), strict=True):
            expected = theirs(*inputs)
            size = expected.abs().max().clamp(min=1e-30)
            found.append(equivalent(ours(*inputs) / size, expected / size, atol=1e-7))
    return found[0]


@declared(
    "Inputs that are all alike, and all zeros, give the values and the gradients of any others.",
    "law",
    lambda layer, probing: is_module(layer, probing) and probing.scales,
)
def inputs_all_alike(probing: Probing, candidate: Candidate) -> Evidence:
    """As padding is: the root of a variance of 0 has no gradient, unless eps is added before."""
    found = []
    pair = probing.pair(candidate)
    for value in (0.7, 0.0):
        inputs = changed(probing.inputs(3, 4), partial(torch.full_like, fill_value=value))
        for ours, theirs in zip(*map(modes, pair), strict=True):
            mine, expected = (outputs_and_gradients(each, {}, *inputs) for each in (ours, theirs))
            found += [
                equivalent(one, other, atol=1e-9) for one, other in zip(mine, expected, strict=True)
            ]
    return found[0]


@declared(
    "The parameters have the same gradients where the input needs none, as that of a first layer.",
    "law",
    lambda layer, probing: is_module(layer, probing) and probing.scales and probing.sizes,
)
def input_without_gradient(probing: Probing, candidate: Candidate) -> Evidence:
    """In training and in evaluation."""
    ours, inputs = module_of(probing, candidate), probing.inputs(3, 4)
    for training in (True, False):
        evidence = same_without_gradient_of_inputs(ours.train(training), inputs, atol=1e-11)
    return evidence


@declared(
    "In evaluation the gradients of input and parameters are those of the formula.",
    "law",
    lambda layer, probing: is_module(layer, probing) and probing.sizes,
)
def gradients_in_evaluation(probing: Probing, candidate: Candidate) -> Evidence:
    """It is the caller who says by no_grad that none are wanted."""
    ours, theirs = map(evaluated, probing.pair(candidate))
    if not isinstance(ours, nn.Module) or not isinstance(theirs, nn.Module):
        raise AssertionError("not a torch.nn.Module")
    return agreeing_gradients(ours, theirs, *probing.inputs(3, 4))


@declared(
    "Arguments that are left out have the values that its signature says.",
    "start",
    lambda layer, probing: probing.defaults,
)
def values_left_out(probing: Probing, candidate: Candidate) -> Evidence:
    """With the same draws, in training, it is what it is with these values given."""
    found: list[tuple[dict[str, Tensor], Any]] = []
    for given in ({}, probing.defaults):
        with seeded(0):
            if probing.bare is not None:
                found.append(({}, candidate(*probing.bare(), **given)))
                continue
            layer = built(candidate, *probing.sizes, **given)
            inputs = [of_dtype(x, torch.float32) for x in probing.inputs(40, 4)]
            found.append((weights_of(layer), layer.train()(*inputs)))
    (weights, result), (expected_weights, expected) = found
    same(list(weights), list(expected_weights))
    return equivalent(result, expected, atol=1e-6)


@declared(
    "In float16 and in bfloat16 the result has their dtype, and the value up to a tenth of the "
    "largest.",
    "contract",
    lambda layer, probing: probing.half,
)
def half_precisions(probing: Probing, candidate: Candidate) -> Evidence:
    """Both of them."""
    found = []
    for dtype in (torch.float16, torch.bfloat16):
        ours, theirs = map(evaluated, probing.pair(candidate))
        inputs = [of_dtype(x, dtype) for x in probing.inputs(3, 4)]
        theirs = of_dtype(of_dtype(theirs, dtype), torch.float64)
        expected = theirs(*(of_dtype(x, torch.float64) for x in inputs))
        result = of_dtype(ours, dtype)(*inputs)
        same(result.dtype, dtype)
        size = expected.abs().max()
        found.append(equivalent(result.double() / size, expected / size, atol=0.1))
    return found[0]


@declared("Once its results are gone, nothing is left of a call's graph.", "contract", is_module)
def no_graph_kept(probing: Probing, candidate: Candidate) -> Evidence:
    """Neither in an attribute nor anywhere else."""
    ours = module_of(probing, candidate)
    kept: list[weakref.ref[_Held]] = []

    def pack(tensor: Tensor) -> _Held:
        held = _Held(tensor.detach())  # a result that its own node saves would be a cycle
        kept.append(weakref.ref(held))
        return held

    inputs = changed(probing.inputs(3, 4), lambda x: x.requires_grad_() * 1.0)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda held: held.tensor):
        for called in modes(ours):
            called(*inputs)
    names = _attributes_with_a_graph(ours)
    if not names and any(each() is not None for each in kept):
        gc.collect()
        names = ["something"] if any(each() is not None for each in kept) else []
    if names:
        raise AssertionError(f"not equal: {', '.join(names)} keeps the graph of a past call")
    return holds(True, "no graph is kept")


@declared(
    "With the same seed of torch's generator all draws are the same.",
    "contract",
    lambda layer, probing: probing.drawn,
)
def draws_of_torch(probing: Probing, candidate: Candidate) -> Evidence:
    """Whatever Python's and numpy's generators are set to."""
    if probing.drawn is None:
        raise ValueError("nothing is drawn")
    found = []
    for seed in (1, 2):
        with _other_generators_seeded(seed), seeded(0):
            found.append(probing.drawn(candidate))
    for number, (first, second) in enumerate(zip(*found, strict=True)):
        if not torch.equal(first, second):
            raise AssertionError(f"not equal: draw {number} with the same seed of torch")
    return holds(True, "the same seed gives the same draws")


@declared(
    "A deep copy gives the same, and so does another one that takes its state dict; a call makes "
    "no parameter.",
    "contract",
    is_module,
)
def copies(probing: Probing, candidate: Candidate) -> Evidence:
    """After a call in training, which may have left something behind; sums may round otherwise."""
    ours, other = module_of(probing, candidate), module_of(probing, candidate)
    inputs = probing.inputs(3, 4)
    names = [name for name, _ in ours.named_parameters()]
    ours.train()(*inputs)
    expected = ours.eval()(*inputs)
    same([name for name, _ in ours.named_parameters()], names)
    equivalent(copy.deepcopy(ours)(*inputs), expected, atol=1e-6)
    other.load_state_dict(ours.state_dict())
    return equivalent(other.eval()(*inputs), expected, atol=1e-6)


@declared(
    "After reset_parameters() it starts as a new one does, averages and counts too.",
    "start",
    lambda layer, probing: is_module(layer, probing) and probing.sizes,
)
def reset(probing: Probing, candidate: Candidate) -> Evidence:
    """Where there is such a method."""
    inputs = [of_dtype(x, torch.float32) for x in probing.inputs(3, 4)]
    return starts_again(
        lambda: built(candidate, *probing.sizes), lambda layer: layer.train()(*inputs)
    )


@declared(
    "What it makes when it is called lies where the input does, on whichever device.",
    "contract",
    lambda layer, probing: probing.makes,
)
def device(probing: Probing, candidate: Candidate) -> Evidence:
    """Or, where there is no tensor in the input, on torch's default device."""
    if probing.makes is None:
        raise ValueError("nothing is made")
    called, inputs = probing.makes(candidate)
    return stays_on_its_device(called, *inputs)


class _Held:
    """A tensor that is saved for the backward pass, alive as long as the graph is."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def module_of(probing: Probing, candidate: Candidate) -> nn.Module:
    """The candidate, which must be a module."""
    ours, _ = probing.pair(candidate)
    if not isinstance(ours, nn.Module):
        raise AssertionError(f"not a torch.nn.Module but {type(ours).__name__}")
    return ours


def _another_like(probing: Probing, candidate: Candidate, called: nn.Module) -> nn.Module:
    """A copy; where there is none, as of one that holds a lock, a fresh one with its state."""
    try:
        return deep_copy(called)
    except (RuntimeError, TypeError, pickle.PicklingError):
        another = module_of(probing, candidate)
        another.load_state_dict(called.state_dict())
        return another.train(called.training)


def modes(function: Function) -> Iterator[Function]:
    """The same in training, then in evaluation, where there is a difference."""
    for training in (True, False):
        yield function.train(training) if isinstance(function, nn.Module) else function


def evaluated(function: Function) -> Function:
    """The same in evaluation, where there is a difference."""
    return function.eval() if isinstance(function, nn.Module) else function


def of_dtype(value: Any, dtype: torch.dtype) -> Any:
    """A module, or a tensor of floating-point numbers, in another dtype; all else as it is."""
    floating = isinstance(value, Tensor) and value.is_floating_point()
    return value.to(dtype) if floating or isinstance(value, nn.Module) else value


def changed(inputs: Inputs, change: Callable[[Tensor], Tensor]) -> list[Any]:
    """Inputs of which those of floating-point numbers are changed."""
    return [change(x) if isinstance(x, Tensor) and x.is_floating_point() else x for x in inputs]


@contextmanager
def _written_over(result: Tensor) -> Iterator[None]:
    """Has zeros in it meanwhile: what hands it out again fails in the next check as in this."""
    before = result.clone()
    try:
        result.zero_()
    except RuntimeError:  # of a result that is expanded, several elements are one number
        yield
        return
    try:
        yield
    finally:
        result.copy_(before)


def _transposed(x: Tensor) -> Tensor:
    return x.mT.contiguous().mT if x.ndim > 1 else x


def _sliced(x: Tensor) -> Tensor:
    return torch.stack([x, x], dim=-1)[..., 0]


def _expanded(x: Tensor) -> Tensor:
    return x[:1].expand_as(x)


def _attributes_with_a_graph(module: nn.Module) -> list[str]:
    return [
        f"{path}.{name}".lstrip(".")
        for path, part in module.named_modules()
        for name, value in (*vars(part).items(), *part.named_buffers(recurse=False))
        if isinstance(value, Tensor) and value.grad_fn is not None
    ]


@contextmanager
def _other_generators_seeded(seed: int) -> Iterator[None]:
    """Python's and, where it is in use, numpy's."""
    numpy = sys.modules.get("numpy")
    state, numpy_state = random.getstate(), numpy and numpy.random.get_state()
    try:
        random.seed(seed)
        if numpy:
            numpy.random.seed(seed)
        yield
    finally:
        random.setstate(state)
        if numpy:
            numpy.random.set_state(numpy_state)
