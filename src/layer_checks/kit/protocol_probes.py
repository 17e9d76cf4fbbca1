"""What every layer is asked about how it gets on with torch: as a module, and by autograd.

Users copy a layer, save it, hook its parts, put other weights in their place, differentiate twice,
and hand it one tensor as two arguments. These probes do so, for each layer that a `Probing` tells
enough of.
"""

import inspect
import io
import itertools
import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from layer_checks.evidence.evidence import Evidence, equivalent, holds
from layer_checks.evidence.randomness import seeded
from layer_checks.kit.candidates import of_three_axes_alone, quietly, same
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.devices import stays_on_its_device
from layer_checks.kit.probes import Function, Probing, declared, evaluated, module_of, of_dtype


def _takes_several(layer: Layer, probing: Probing) -> bool:
    with seeded(0):
        return len(_places_of_floats(probing.inputs(2, 3))) > 1


def _is_differentiated(layer: Layer, probing: Probing) -> bool:
    with seeded(0):
        return bool(_places_of_floats(probing.inputs(2, 3)))


def _takes_any_leading_axes(layer: Layer, probing: Probing) -> bool:
    """Whether it has one input, of sequences and positions before its features."""
    with seeded(0):
        inputs = probing.inputs(2, 3)
    of_features = layer.leading is not None and len(layer.leading) == 2
    return of_features and probing.batched and len(inputs) == 1 and _is_float(inputs[0])


def _maps_tensors(layer: Layer, probing: Probing) -> bool:
    """Whether it maps tensors to others of their dtype: it is no loss, no mask and no dropout."""
    return probing.half


def _has_weights(layer: Layer, probing: Probing) -> bool:
    return layer.is_class and bool(probing.sizes)


def _has_parts_with_weights(layer: Layer, probing: Probing) -> bool:
    if not _has_weights(layer, probing):
        return False
    with seeded(0):
        return bool(_parts_with_weights(layer.right(*probing.sizes)))


@declared(
    "Where the input was computed from something, or is a parameter or a part of another tensor, "
    "the values and the gradients are those of any other input.",
    "law",
    _is_differentiated,
)
def input_of_another_layer(probing: Probing, candidate: Candidate) -> Evidence:
    """In a model no input is a leaf, but that of the first layer."""
    ours, theirs = map(evaluated, probing.pair(candidate))
    inputs = probing.inputs(3, 4)
    expected, others = _differentiated(theirs, inputs, nn.Parameter)
    for change in (_computed, _cut_out, nn.Parameter):
        output, gradients = _differentiated(ours, inputs, change)
        for each in zip(gradients, others, strict=True):
            equivalent(*each, atol=1e-9)
        evidence = equivalent(output, expected, atol=1e-9)
    return evidence


@declared(
    "Without the axis of sequences, and with two of them, the values and the gradients are the "
    "same.",
    "contract",
    _takes_any_leading_axes,
)
def fewer_and_more_axes(probing: Probing, candidate: Candidate) -> Evidence:
    """Two axes and four, where the layer is otherwise tried with three."""
    ours, theirs = map(evaluated, probing.pair(candidate))
    (x,) = probing.inputs(4, 3)
    expected, (gradient,) = _differentiated(theirs, [x], nn.Parameter)
    for change in (_first_of, _two_by_two):
        with of_three_axes_alone(ours):
            output, (found,) = _differentiated(ours, [change(x)], nn.Parameter)
        equivalent(found, change(gradient), atol=1e-11)
        evidence = equivalent(output, change(expected), atol=1e-11)
    return evidence


@declared(
    "One tensor that is handed in as two arguments, or as all, gives the values and the gradients "
    "of as many copies.",
    "law",
    _takes_several,
)
def one_tensor_for_several(probing: Probing, candidate: Candidate) -> Evidence:
    """Query and key may be one tensor and value another, or all three one; so may two weights."""
    ours, theirs = map(evaluated, probing.pair(candidate))
    inputs = probing.inputs(3, 4)
    count = len(_places_of_floats(inputs))
    first = inputs[0]
    found = []
    for together in _subsets(count):
        tensors = [torch.randn_like(first) for _ in range(count)]
        one = tensors[together[0]]
        alike = [one if place in together else x for place, x in enumerate(tensors)]
        (output, gradients), (expected, others) = (
            _of_one(each, alike, one) for each in (ours, theirs)
        )
        found.append(equivalent(output, expected, atol=1e-9))
        found.append(equivalent(gradients, others, atol=1e-9))
    return found[0]


@declared(
    "Zeros give the values and the gradients of the formula: none is missing at 0.",
    "law",
    lambda layer, probing: (
        not layer.is_class and probing.half and _is_differentiated(layer, probing)
    ),
)
def zeros(probing: Probing, candidate: Candidate) -> Evidence:
    """A root, and a quotient of the input's size, have no gradient there."""
    pair = probing.pair(candidate)
    inputs = [torch.zeros_like(x) if _is_float(x) else x for x in probing.inputs(3, 4)]
    (output, gradients), (expected, others) = (
        _differentiated(each, inputs, nn.Parameter) for each in pair
    )
    for one, other in zip(gradients, others, strict=True):
        equivalent(one, other, atol=1e-11)
    return equivalent(output, expected, atol=1e-11)


@declared(
    "The backward pass can be run again, and gives the same; its own gradient, where it has one, "
    "is that of the formula.",
    "contract",
    _is_differentiated,
)
def gradient_of_the_gradient(probing: Probing, candidate: Candidate) -> Evidence:
    """As penalties of gradients and second-order methods need it."""
    pair, inputs = probing.pair(candidate), probing.inputs(2, 3)
    with sdpa_kernel(SDPBackend.MATH):  # torch's other kernels have no second derivative
        expected = _second(evaluated(pair[1]), inputs)
        try:
            found = _second(evaluated(pair[0]), inputs)
        except RuntimeError as error:
            if not any(said in str(error) for said in _NO_SECOND_DERIVATIVE):
                raise
            return holds(True, "it refuses to be differentiated twice")
    if expected is None or found is None:
        raise AssertionError("not equal: the gradient does not depend on the input")
    evidence = [equivalent(*each, atol=1e-8) for each in zip(found, expected, strict=True)]
    return evidence[0]


@declared(
    "torch.func.vmap over one more axis gives what a call for each gives.",
    "contract",
    _maps_tensors,
)
def mapped_over_an_axis(probing: Probing, candidate: Candidate) -> Evidence:
    """As gradients for each example need it; what asks for values to branch on cannot be mapped."""
    ours = evaluated(probing.pair(candidate)[0])
    calls = [probing.inputs(3, 4) for _ in range(2)]
    expected = torch.stack([ours(*inputs) for inputs in calls])
    stacked = [
        torch.stack(each) if isinstance(each[0], Tensor) else each[0]
        for each in zip(*calls, strict=True)
    ]
    axes = tuple(0 if isinstance(x, Tensor) else None for x in stacked)
    with quietly():
        result = vmap(ours, in_dims=axes)(*stacked)
    return equivalent(result.detach(), expected.detach(), atol=1e-6)


@declared(
    "Under torch.autocast to bfloat16 the value is right up to a tenth of the largest, and "
    "parameters have gradients of their own dtype.",
    "contract",
    _maps_tensors,
)
def autocast(probing: Probing, candidate: Candidate) -> Evidence:
    """Products are rounded then, and meet what is not."""
    ours, theirs = probing.pair(candidate)
    inputs = probing.inputs(3, 4)
    expected = theirs(*inputs).detach().float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = of_dtype(ours, torch.float32)(*(of_dtype(x, torch.float32) for x in inputs))
    if result.requires_grad:
        result.float().sum().backward()
    gradients = [each.grad for each in _weights(ours) if each.grad is not None]
    same({each.dtype for each in gradients} - {torch.float32}, set())
    size = expected.abs().max()
    return equivalent(result.detach().float() / size, expected / size, atol=0.1)


@declared(
    "Parts that hold weights are called, so that their hooks are, and another module may take "
    "their place.",
    "contract",
    _has_parts_with_weights,
)
def parts_called(probing: Probing, candidate: Candidate) -> Evidence:
    """What modules of torch do with their own parts is left to torch."""
    ours = module_of(probing, candidate)
    expected = _parts_with_weights(ours)
    called: set[str] = set()

    def note(name: str, *_: Any) -> None:
        called.add(name)

    for name, part in expected.items():
        part.register_forward_hook(partial(note, name))
    for training in (True, False):
        called.clear()
        ours.train(training)(*probing.inputs(3, 4))
        if left_out := [name for name in expected if name not in called]:
            raise AssertionError(f"not equal: no call of {', '.join(left_out)}, whose hooks wait")
    return holds(True, f"{len(expected)} parts are called")


@declared(
    "It computes with the weights that it has when it is called: with those that "
    "torch.func.functional_call or load_state_dict(assign=True) puts in their place, too.",
    "contract",
    _has_weights,
)
def weights_put_in_place(probing: Probing, candidate: Candidate) -> Evidence:
    """Other tensors, not other values in the same ones; tied weights get one tensor."""
    ours, inputs = module_of(probing, candidate).eval(), probing.inputs(3, 4)
    parameters = dict(ours.named_parameters())
    others = {name: 0.5 * torch.randn_like(each) for name, each in parameters.items()}
    copied, assigned = (module_of(probing, candidate).eval() for _ in range(2))
    copied.load_state_dict(ours.state_dict())
    with torch.no_grad():
        for name, each in copied.named_parameters():
            each.copy_(others[name])
    expected = copied(*inputs)
    evidence = equivalent(functional_call(ours, others, tuple(inputs)), expected, atol=1e-6)
    assigned.load_state_dict(copied.state_dict(), assign=True)
    equivalent(assigned(*inputs), expected, atol=1e-6)
    return evidence


@declared(
    "After a call it can be pickled, as torch.save does with a module, and gives the same.",
    "contract",
    lambda layer, probing: layer.is_class,
)
def pickled(probing: Probing, candidate: Candidate) -> Evidence:
    """A lambda in an attribute cannot be; where the class itself is defined does not matter."""
    ours, inputs = module_of(probing, candidate), probing.inputs(3, 4)
    ours.train()(*inputs)
    expected = ours.eval()(*inputs)
    try:
        again = _through_pickle(ours)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(f"not equal: {error}") from error
    except RuntimeError as error:
        if "parametrized modules" not in str(error):
            raise
        return holds(True, "torch itself pickles no parametrized module")
    return equivalent(again(*inputs), expected, atol=1e-6)


@declared(
    "reset_parameters(), where there is one, and a call leave each parameter the same object, and "
    "frozen where it was.",
    "contract",
    _has_weights,
)
def parameters_kept(probing: Probing, candidate: Candidate) -> Evidence:
    """An optimizer holds the objects: of new ones it would know nothing."""
    ours = module_of(probing, candidate).requires_grad_(False)
    before = dict(ours.named_parameters())
    _reset(ours)
    inputs = probing.inputs(3, 4)
    for training in (True, False):
        result = ours.train(training)(*inputs)
    now = dict(ours.named_parameters())
    replaced = [name for name, each in before.items() if now.get(name) is not each]
    thawed = [name for name, each in now.items() if each.requires_grad]
    if replaced or thawed:
        what = ", ".join(dict.fromkeys((*replaced, *thawed)))
        raise AssertionError(f"not equal: {what}: another object, or no longer frozen")
    same(result.requires_grad, False)
    return holds(True, "the same parameters, and frozen as they were")


@declared(
    "What it computes with moves to another device when it does.",
    "contract",
    lambda layer, probing: _has_weights(layer, probing) and not probing.makes,
)
def moved(probing: Probing, candidate: Candidate) -> Evidence:
    """A tensor that is neither a parameter nor a buffer stays behind."""
    ours, inputs = module_of(probing, candidate), probing.inputs(3, 4)
    if not _is_left_behind(ours):
        return holds(True, "all its tensors are parameters or buffers")
    return stays_on_its_device(ours, *inputs)


# What holds parts or parameters, and is never called itself.
_CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)
# What torch says where a second derivative is asked for, and there is none.
_NO_SECOND_DERIVATIVE = ("is not implemented", "once_differentiable", "not differentiable twice")


def _is_float(x: object) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()


def _places_of_floats(inputs: Sequence[Any]) -> list[int]:
    return [place for place, x in enumerate(inputs) if _is_float(x)]


def _first_of(x: Tensor) -> Tensor:
    return x[0]


def _two_by_two(x: Tensor) -> Tensor:
    return x.unflatten(0, (2, 2))


def _computed(leaf: Tensor) -> Tensor:
    return 1.0 * leaf


def _cut_out(leaf: Tensor) -> Tensor:
    return torch.stack([leaf, -leaf])[0]


def _differentiated(
    function: Function, inputs: Sequence[Any], change: Callable[[Tensor], Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """The output for inputs made of leaves, and the gradients that the leaves get."""
    given = list(inputs)
    leaves = []
    for place in _places_of_floats(inputs):
        leaf = inputs[place].detach().clone().requires_grad_()
        given[place] = change(leaf)
        leaves.append(given[place] if given[place].is_leaf else leaf)
    output = function(*given)
    return output.detach(), _gradients(output, leaves)


def _of_one(function: Function, tensors: Sequence[Tensor], one: Tensor) -> tuple[Tensor, Tensor]:
    leaf = one.detach().clone().requires_grad_()
    output = function(*(leaf if x is one else x for x in tensors))
    return output.detach(), _gradients(output, [leaf])[0]


def _gradients(output: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    if not output.requires_grad:
        raise AssertionError("not equal: the output does not depend on the input")
    found = torch.autograd.grad(output.sin().sum(), leaves, allow_unused=True)
    return [
        torch.zeros_like(leaf) if each is None else each
        for leaf, each in zip(leaves, found, strict=True)
    ]


def _second(function: Function, inputs: Sequence[Any]) -> list[Tensor] | None:
    """The gradient of the gradient's sine; None if the gradient is constant.

    Raises:
        AssertionError: If the same backward pass gives another gradient when it is run again.
    """
    given = list(inputs)
    leaves = []
    for place in _places_of_floats(inputs):
        given[place] = inputs[place].detach().clone().requires_grad_()
        leaves.append(given[place])
    total = function(*given).sin().sum()
    once = torch.autograd.grad(total, leaves, retain_graph=True, allow_unused=True)
    again = torch.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
    for first, second in zip(once, again, strict=True):
        if first is not None and second is not None:
            equivalent(first, second.detach(), atol=1e-12)
    summed = sum(each.sin().sum() for each in again if each is not None)
    if not isinstance(summed, Tensor) or not summed.requires_grad:
        return None
    summed.backward()  # through all nodes: `grad` leaves out that of once_differentiable
    if isinstance(function, nn.Module):
        function.zero_grad()
    return [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]


def _subsets(count: int) -> Iterator[tuple[int, ...]]:
    """All choices of two or more places."""
    for size in range(2, count + 1):
        yield from itertools.combinations(range(count), size)


def _weights(function: Function) -> list[Tensor]:
    return list(function.parameters()) if isinstance(function, nn.Module) else []


def _parts_with_weights(module: nn.Module) -> dict[str, nn.Module]:
    """The parts that hold weights themselves, but for those inside of torch's own modules."""
    found = {}
    for path, part in module.named_modules():
        if _is_torchs(part):
            continue
        for name, child in part.named_children():
            held = next(child.parameters(recurse=False), None) is not None
            if held and not isinstance(child, _CONTAINERS):
                found[f"{path}.{name}".lstrip(".")] = child
    return found


def _is_torchs(module: nn.Module) -> bool:
    return str(type(module).forward.__module__).startswith("torch.")


def _is_left_behind(module: nn.Module) -> bool:
    """Whether it holds a tensor that is neither, of one axis or more: a number mixes with all."""
    values = [
        value
        for part in module.modules()
        for name, value in vars(part).items()
        if name not in ("_parameters", "_buffers")
    ]
    values += [
        each
        for value in values
        if isinstance(value, list | tuple | dict)
        for each in (value.values() if isinstance(value, dict) else value)
    ]
    return any(
        isinstance(each, Tensor) and not isinstance(each, nn.Parameter) and each.ndim
        for each in values
    )


def _reset(module: nn.Module) -> None:
    method = getattr(module, "reset_parameters", None)
    if callable(method) and not any(
        each.default is each.empty
        and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        for each in inspect.signature(method).parameters.values()
    ):
        method()


def _has_a_place(value: Any) -> bool:
    """Whether it is a function that can be found by its name, or one of torch's own."""
    return inspect.isfunction(value) and (
        "<" not in value.__qualname__ or value.__module__.startswith("torch.")
    )


def _through_pickle(module: nn.Module) -> nn.Module:
    """What is left of a module after pickling; classes and hooks stay what they are."""
    kept: list[Any] = []
    hooks = {
        id(hook)
        for part in module.modules()
        for held in (part._forward_hooks, part._forward_pre_hooks)
        for hook in held.values()
    }

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: Any) -> int | None:
            if not (inspect.isclass(value) or _has_a_place(value) or id(value) in hooks):
                return None
            kept.append(value)
            return len(kept) - 1

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, number: Any) -> Any:
            return kept[number]

    written = io.BytesIO()
    Pickler(written).dump(module)
    again = Unpickler(io.BytesIO(written.getvalue())).load()
    if not isinstance(again, nn.Module):
        raise AssertionError("not equal: what comes out of a pickle is no module")
    return again
