"""Situations in which every layer is tried that can come into them.

Sizes at which code that cuts into chunks goes wrong, square masks, calls between which something
has changed, draws that must be the same or others, and caches.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from layer_checks.evidence.evidence import Evidence, equivalent, holds
from layer_checks.evidence.randomness import seeded
from layer_checks.kit.candidates import load, same
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.oracles import drawn_anew, named_as_ours
from layer_checks.kit.probes import (
    DROPPED,
    Function,
    Inputs,
    Probing,
    Stepping,
    axes_of_inputs,
    declared,
    evaluated,
    has_large_sizes,
    is_module,
    modes,
    module_of,
    of_dtype,
    of_sizes,
    relative_to_the_largest,
)

_SEQ = 5


def _has_weights(layer: Layer, probing: Probing) -> object:
    return is_module(layer, probing) and probing.sizes


def _has_floats(layer: Layer, probing: Probing) -> object:
    return probing.scales and axes_of_inputs(layer, probing)


@declared(
    "So are 64 and 512 positions, and 1,024 features: a rest of nothing is none.",
    "law",
    has_large_sizes,
)
def powers_of_two(probing: Probing, candidate: Candidate) -> Evidence:
    """Where what is left over after chunks is empty, x[-0:] is everything."""
    return relative_to_the_largest(of_sizes(probing, candidate, (64, 512), 1024), probing.rounding)


@declared(
    "In bfloat16, 300 positions give the values up to a tenth of the largest: it counts to 256.",
    "contract",
    lambda layer, probing: probing.half and has_large_sizes(layer, probing),
)
def many_positions_in_bfloat16(probing: Probing, candidate: Candidate) -> Evidence:
    """Positions above 256 are no numbers of bfloat16."""
    found = []
    for ours, theirs, inputs in of_sizes(probing, candidate, (300,)):
        low = [of_dtype(x, torch.bfloat16) for x in inputs]
        theirs = of_dtype(of_dtype(evaluated(theirs), torch.bfloat16), torch.float64)
        expected = theirs(*(of_dtype(x, torch.float64) for x in low))
        result = of_dtype(evaluated(ours), torch.bfloat16)(*low).double()
        size = expected.abs().max()
        found.append(equivalent(result / size, expected / size, atol=0.1))
    return found[0]


@declared(
    "Under square masks, causal ones and others, for all sequences or for each its own, the values "
    "are those of the formula; where the first or the last keys are padding; and where a mask "
    "allows all.",
    "law",
    lambda layer, probing: probing.masked,
)
def square_masks(probing: Probing, candidate: Candidate) -> Evidence:
    """As many queries as keys: no shape tells which axis of a mask is which."""
    found = []
    ours, theirs = map(evaluated, probing.pair(candidate))
    for inputs in _masked(probing, _masks()):
        found.append(equivalent(ours(*inputs), theirs(*inputs), atol=1e-11))
    return found[0]


@declared(
    "Queries that may attend to nothing, the first two, the last one, or all of them, leave the "
    "others as they are, and all gradients are finite.",
    "contract",
    lambda layer, probing: probing.masked,
)
def hidden_queries(probing: Probing, candidate: Candidate) -> Evidence:
    """As where a sequence begins with padding, under a causal mask."""
    found = []
    ours, theirs = map(evaluated, probing.pair(candidate))
    for hidden in ([0, 1], [_SEQ - 1]):
        shown = [row for row in range(_SEQ) if row not in hidden]
        mask = torch.ones(_SEQ, _SEQ, dtype=torch.bool).tril()
        (inputs,) = _masked(probing, [mask])
        expected = theirs(*inputs)[..., shown, :]
        mask[hidden] = False
        result = _with_finite_gradients(ours, _again(probing, inputs, mask))
        found.append(equivalent(result[..., shown, :], expected, atol=1e-11))
    _with_finite_gradients(ours, _again(probing, inputs, torch.zeros_like(mask)))
    return found[0]


@declared(
    "A result stays what it was when other calls are made, whether gradients are wanted or not.",
    "law",
    axes_of_inputs,
)
def earlier_results(probing: Probing, candidate: Candidate) -> Evidence:
    """It is no view of what the next call writes into."""
    evidence = None
    ours, _ = probing.pair(candidate)
    inputs, others = probing.inputs(3, 4), probing.inputs(3, 4)
    for called, gradients in zip(modes(ours), (True, False), strict=False):
        with torch.set_grad_enabled(gradients):
            result = called(*inputs)
            expected = result.detach().clone()
            called(*others)
        evidence = equivalent(result, expected, atol=0.0)
    return evidence or holds(True, "no result was changed")


@declared(
    "Where new values are written into its inputs, it gives what they give.", "law", _has_floats
)
def inputs_changed_in_place(probing: Probing, candidate: Candidate) -> Evidence:
    """The same tensors are no sign of the same values."""
    ours, theirs = map(evaluated, probing.pair(candidate))
    inputs, others = probing.inputs(3, 4), probing.inputs(3, 4)
    with torch.no_grad():
        ours(*inputs)
        for x, other in zip(inputs, others, strict=True):
            if isinstance(x, Tensor):
                x.copy_(other)
        return equivalent(ours(*inputs), theirs(*others), atol=1e-11)


@declared(
    "After its weights were changed in place, as by an optimizer, and after another one was called "
    "with the same inputs, it gives what they give.",
    "law",
    _has_weights,
)
def weights_changed_in_place(probing: Probing, candidate: Candidate) -> Evidence:
    """Nothing that is made of weights outlives them."""
    another = module_of(probing, candidate)  # first: the next pair may set the same oracle anew
    ours, theirs = probing.pair(candidate)
    if not isinstance(ours, nn.Module) or not isinstance(theirs, nn.Module):
        raise AssertionError(f"not a torch.nn.Module but {type(ours).__name__}")
    inputs = probing.inputs(3, 4)
    with torch.no_grad():
        for each in (ours, another):
            each.eval()(*inputs)
        load(ours, named_as_ours(drawn_anew(theirs)))
        return equivalent(ours(*inputs), theirs.eval()(*inputs), atol=1e-11)


@declared(
    "After a call in float64, it gives float32 when it is asked in float32, and float64 again.",
    "contract",
    lambda layer, probing: is_module(layer, probing) and probing.half,
)
def another_dtype(probing: Probing, candidate: Candidate) -> Evidence:
    """No table keeps the dtype of the first call."""
    ours = module_of(probing, candidate).eval()
    inputs = probing.inputs(3, 4)
    expected = ours(*inputs)
    for dtype, atol in ((torch.float32, 1e-3), (torch.float64, 1e-5)):
        result = ours.to(dtype)(*(of_dtype(x, dtype) for x in inputs))
        same(result.dtype, dtype)
        size = expected.abs().max().clamp(min=1e-30)
        evidence = equivalent(result.double() / size, expected / size, atol=atol)
    return evidence


@declared(
    "With the same seed the same is dropped: in a later call, after evaluation, without gradients, "
    "and where torch.utils.checkpoint computes it again; with another seed it is not.",
    "law",
    lambda layer, probing: probing.dropping,
)
def draws_repeated(probing: Probing, candidate: Candidate) -> Evidence:
    """What is drawn depends on the generator's state, and on nothing else."""
    layer, inputs = _dropping(probing, candidate)
    with seeded(1):
        expected = layer(*inputs).detach()
    with seeded(2):
        holds(not torch.equal(layer(*inputs), expected), "another seed drops others")
    with torch.no_grad(), seeded(1):
        equivalent(layer(*inputs), expected, atol=1e-11)
    evaluated(layer)(*inputs)
    if isinstance(layer, nn.Module):
        layer.train()
    plain, again = (_gradients(layer, inputs, recomputed) for recomputed in (False, True))
    evidence = equivalent(plain[0], expected, atol=1e-11)
    for one, other in zip(again, plain, strict=True):
        equivalent(one, other, atol=1e-11)
    return evidence


@declared(
    "Where its probability of dropout is set to 0 after construction, nothing is dropped.",
    "contract",
    lambda layer, probing: is_module(layer, probing) and probing.dropping,
)
def dropout_changed(probing: Probing, candidate: Candidate) -> Evidence:
    """As schedules of dropout do, on every part that has it as a number."""
    layer, inputs = _dropping(probing, candidate)
    if not isinstance(layer, nn.Module):
        raise AssertionError(f"not a torch.nn.Module but {type(layer).__name__}")
    kept = [
        (part, name)
        for part in layer.modules()
        for name, value in vars(part).items()
        if isinstance(value, float) and value == DROPPED
    ]
    for part, name in kept:
        setattr(part, name, 0.0)
    if not kept:
        return holds(True, "no attribute has the probability")
    return equivalent(layer.train()(*inputs), layer.eval()(*inputs), atol=1e-11)


@declared(
    "Two caches in turn hold two sequences; and one that was full holds another sequence once its "
    "length is set to 0.",
    "contract",
    lambda layer, probing: probing.stepping,
)
def caches_in_turn(probing: Probing, candidate: Candidate) -> Evidence:
    """What belongs to a sequence is in its cache, and nowhere else."""
    stepping = _stepping(probing, candidate, 6)
    sequences = stepping.inputs(6), stepping.inputs(6)
    caches = [stepping.cache(6) for _ in sequences]
    steps: tuple[list[Tensor], list[Tensor]] = ([], [])
    for parts in zip(*(x.split([3, 2, 1], dim=1) for x in sequences), strict=True):
        for part, cache, found in zip(parts, caches, steps, strict=True):
            found.append(stepping.step(part.contiguous(), cache))
    for x, found in zip(sequences, steps, strict=True):
        equivalent(torch.cat(found, dim=1), stepping.whole(x), atol=1e-11)
    for cache in _each(caches[0]):
        cache.length = 0
    return _in_steps(stepping, caches[0], sequences[1], [4, 1])


@declared(
    "Where a sequence begins with two positions of padding, which its cache knows of, it gives "
    "what it gives without them.",
    "contract",
    lambda layer, probing: probing.stepping,
)
def padded_caches(probing: Probing, candidate: Candidate) -> Evidence:
    """Nothing attends to padding, and positions are counted behind it."""
    stepping = _stepping(probing, candidate, 6)
    x, cache = stepping.inputs(6), stepping.cache(6)
    for each in _each(cache):
        each.padding = torch.tensor([0, 2])
    with torch.no_grad():
        steps = [stepping.step(part.contiguous(), cache) for part in x.split([4, 1, 1], dim=1)]
        found = torch.cat(steps, dim=1)
        equivalent(found[0], stepping.whole(x)[0], atol=1e-11)
        return equivalent(found[1, 2:], stepping.whole(x[:, 2:])[1], atol=1e-11)


@declared(
    "A cache that grows past 64 and past 512 positions gives the values of all at once.",
    "contract",
    lambda layer, probing: probing.stepping,
)
def long_caches(probing: Probing, candidate: Candidate) -> Evidence:
    """One position at a time, over the power of two."""
    stepping = _stepping(probing, candidate, 514)
    lengths = [62, 1, 1, 1, 446, 1, 1, 1]
    return _in_steps(stepping, stepping.cache(514), stepping.inputs(514), lengths)


def _each(cache: Any) -> list[Any]:
    """The caches of all blocks, or the one."""
    return cache if isinstance(cache, list) else [cache]


def _in_steps(stepping: Stepping, cache: Any, x: Tensor, lengths: Sequence[int]) -> Evidence:
    x = x[:, : sum(lengths)]
    with torch.no_grad():
        parts = x.split(list(lengths), dim=1)
        steps = [stepping.step(part.contiguous(), cache) for part in parts]
        return equivalent(torch.cat(steps, dim=1), stepping.whole(x), atol=1e-11)


def _stepping(probing: Probing, candidate: Candidate, seq: int) -> Stepping:
    if probing.stepping is None:
        raise ValueError("there is no cache")
    return probing.stepping(candidate, seq)


def _masks() -> Iterator[Tensor]:
    """For as many keys as queries; each query may attend to something."""
    yield torch.ones(_SEQ, _SEQ, dtype=torch.bool).tril()
    for shape in ((_SEQ, _SEQ), (2, _SEQ, _SEQ)):
        ranks = torch.rand(shape).argsort(dim=-1)
        yield ranks < torch.randint(1, _SEQ, (*shape[:-1], 1))
    places = torch.arange(_SEQ)
    yield torch.stack([places >= 2, places < 3])[:, None]
    yield torch.ones(_SEQ, _SEQ, dtype=torch.bool)


def _masked(probing: Probing, masks: Sequence[Tensor] | Iterator[Tensor]) -> Iterator[Inputs]:
    if probing.masked is None:
        raise ValueError("no mask is taken")
    for mask in masks:
        yield probing.masked(2, mask.shape[-1], mask)


def _again(probing: Probing, inputs: Inputs, mask: Tensor) -> Inputs:
    """The same inputs under another mask of the same shape."""
    return tuple(
        mask.expand(x.shape) if isinstance(x, Tensor) and x.dtype == torch.bool else x
        for x in inputs
    )


def _with_finite_gradients(ours: Function, inputs: Inputs) -> Tensor:
    leaves = [x.detach().requires_grad_() if _floating(x) else x for x in inputs]
    result = ours(*leaves)
    wanted = [x for x in leaves if _floating(x)]
    gradients = torch.autograd.grad(result.sin().sum(), wanted)
    finite = all(bool(each.isfinite().all()) for each in (result, *gradients))
    holds(finite, "results and gradients are finite")
    return result.detach()


def _floating(x: object) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()


def _dropping(probing: Probing, candidate: Candidate) -> tuple[Function, Inputs]:
    if probing.dropping is None:
        raise ValueError("nothing is dropped")
    layer, inputs = probing.dropping(candidate)
    return layer.train() if isinstance(layer, nn.Module) else layer, inputs


def _gradients(layer: Function, inputs: Inputs, recomputed: bool) -> list[Tensor]:
    """The result, and the gradients of inputs and parameters, drawn with one seed.

    Args:
        layer: What is called.
        inputs: With what.
        recomputed: Whether it is computed again for the backward pass.
    """
    leaves = [x.detach().requires_grad_() if _floating(x) else x for x in inputs]
    wanted = [x for x in leaves if _floating(x)]
    if isinstance(layer, nn.Module):
        wanted += layer.parameters()
    with seeded(1):
        if recomputed:
            result = checkpoint(layer, *leaves, use_reentrant=False)
        else:
            result = layer(*leaves)
        gradients = torch.autograd.grad(result.sin().sum(), wanted, allow_unused=True)
    return [result.detach(), *(each for each in gradients if each is not None)]
