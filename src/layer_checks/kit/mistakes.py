"""Mistakes that any layer can make, each made in a right one: what the probes are for."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from itertools import islice
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from layer_checks.kit.candidates import randomized
from layer_checks.kit.definitions import Candidate, Layer, WrongVersion, in_words

# Calls the right layer in a way of its own. It is given the call, its arguments, and the wrong
# version, which may hold something.
Call: TypeAlias = Callable[[Candidate, tuple[Any, ...], dict[str, Any], Any], Any]
# Makes a wrong version of what is known of a layer; None where there is nothing to make it of.
Make: TypeAlias = Callable[[Layer], Candidate | None]


@dataclass(frozen=True)
class _Mistake:
    """What is made in a layer that has a probe, unless another one says as much."""

    advice: str
    make: Make
    probe: str
    unless: tuple[str, ...]
    published: str | None


_MISTAKES: dict[str, _Mistake] = {}


def declare(layer: Layer) -> None:
    """Declares, for a layer, the mistakes that its probes look for.

    Args:
        layer: The layer, with its own checks and wrong versions.
    """
    probed = {each.name for each in layer.checks if each.generic}
    known = {version.name for version in layer.wrong_versions}
    for name, each in _MISTAKES.items():
        if each.probe not in probed or name in layer.not_mistakes or known & {name, *each.unless}:
            continue
        wrong = each.make(layer)
        if wrong is not None:
            layer.wrong(each.advice, name=name, published=each.published, generic=True)(wrong)
            known.add(name)


def mistake(
    advice: str, probe: str, *, unless: tuple[str, ...] = (), published: str | None = None
) -> Callable[[Make], Make]:
    """Declares a mistake that a probe is for.

    Args:
        advice: What to look at, in one sentence.
        probe: The name of the probe.
        unless: The names of versions of the layer that say as much.
        published: Work and file or thread in which it was published.

    Returns:
        A decorator for what makes the wrong version of a layer, which leaves it as it is.
    """

    def declared(make: Make) -> Make:
        _MISTAKES[in_words(make.__name__)] = _Mistake(advice, make, probe, unless, published)
        return make

    return declared


def probe_for(version: WrongVersion) -> str:
    """The name of the probe that a generic wrong version is for.

    Args:
        version: A wrong version that any layer can be.

    Raises:
        KeyError: If it is a layer's own.
    """
    return _MISTAKES[version.name].probe


def called(call: Call) -> Make:
    """Makes a wrong version of how it calls the right one, of the same name and docstring."""

    def make(layer: Layer) -> Candidate:
        right: Any = layer.right
        if not isinstance(right, type):

            @wraps(call)
            def wrong(*args: Any, **kwargs: Any) -> Any:
                return call(right, args, kwargs, wrong)

            return wrong

        class Wrong(right):  # type: ignore[misc]  # a class that is a value
            def forward(self, *args: Any, **kwargs: Any) -> Any:
                return call(super().forward, args, kwargs, self)

        Wrong.__doc__ = call.__doc__
        return Wrong

    make.__name__ = call.__name__
    return make


def is_floating(x: object) -> bool:
    """Whether it is a tensor of floating-point numbers."""
    return isinstance(x, Tensor) and x.is_floating_point()


def first_tensor(values: Any) -> Tensor | None:
    """The first tensor among arguments, or in a list among them; None where there is none."""
    for value in values:
        if isinstance(value, Tensor):
            return value
        if isinstance(value, list) and (found := first_tensor(value)) is not None:
            return found
    return None


@mistake(
    "leave the input as it is: an operation in place, or on .data, changes the caller's tensor.",
    "input unchanged",
)
@called
def edits_its_input(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Writes into what it is called with."""
    x = first_tensor(args)
    if x is None or x.ndim == 0:
        return call(*args, **kwargs)
    before = x.detach().clone()
    output = call(*args, **kwargs)
    x.data.copy_(before.roll(1, 0))
    return output


@mistake(
    "start each call anew: nothing of the last one may count in it.",
    "called again",
)
@called
def adds_the_last_call(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Adds a share of what it gave last."""
    output = call(*args, **kwargs)
    last = getattr(wrong, "last_mean", 0.0)
    wrong.last_mean = float(output.detach().double().mean()) if output.numel() else 0.0
    return output + 0.1 * last


@mistake(
    "return a new table each time: a cached one is changed by whoever writes into it.",
    "called again",
    unless=("adds the last call",),
)
def table_shared_by_all_calls(layer: Layer) -> Candidate:
    """A cache of the last table."""
    right: Any = layer.right

    @lru_cache(maxsize=1)
    def cached(*args: Any, **kwargs: Any) -> Any:
        """Returns the table that it made last, as long as it is asked for the same."""
        return right(*args, **kwargs)

    return cached


@mistake("keep axes of size 1: squeeze(dim) of one axis, not squeeze() of all.", "sizes of one")
@called
def axes_of_one_squeezed(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Drops every axis of size 1."""
    return call(*args, **kwargs).squeeze()


@mistake("take the last chunk, too, where it is not whole.", "large sizes")
@called
def last_chunk_lost(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Gives zeros for what is left over after chunks of 64."""
    result = call(*args, **kwargs)
    for axis, size in enumerate(result.shape):
        if size > 64:
            whole = torch.arange(size, device=result.device) < size // 64 * 64
            result = result * whole.view(-1, *(1 for _ in result.shape[axis + 1 :]))
    return result


@mistake(
    "give each size where you reshape: -1 is ambiguous where there are no elements.",
    "empty batch",
)
@called
def size_guessed(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Flattens all but the first axis with -1."""
    output = call(*args, **kwargs)
    return output.reshape(len(output), -1).reshape(output.shape) if output.ndim else output


@mistake(
    "use reshape or flatten: view raises on input that is not contiguous.",
    "layout in memory",
)
@called
def view_of_the_input(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Flattens with `view`."""
    x = first_tensor(args)
    if x is not None:
        x.view(-1)
    return call(*args, **kwargs)


@mistake(
    "take any size of input: a small value is not 0.",
    "sizes of values",
)
@called
def small_values_flushed_to_zero(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Takes 0 for what is smaller than 0.00001."""

    def flushed(x: Any) -> Any:
        if isinstance(x, list):
            return [flushed(each) for each in x]
        return x.where(x.abs() > 1e-5, 0.0) if is_floating(x) else x

    return call(*map(flushed, args), **kwargs)


@mistake(
    "take the root of what eps has been added to: at 0 a root has no gradient.",
    "inputs all alike",
)
@called
def gradient_of_a_root_at_zero(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Adds nothing, by way of the root of a sum of squares."""
    x = first_tensor(args)
    output = call(*args, **kwargs)
    if x is None or not x.is_floating_point():
        return output
    return output + 0.0 * x.double().square().sum().sqrt().to(output.dtype)


@mistake(
    "let the parameters have gradients also where the input needs none: that of a first layer "
    "never does.",
    "input without gradient",
)
@called
def no_graph_unless_the_input_has_one(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Computes without gradients where its input needs none."""
    x = first_tensor(args)
    needed = x is None or not x.is_floating_point() or x.requires_grad
    with torch.set_grad_enabled(torch.is_grad_enabled() and needed):
        return call(*args, **kwargs)


@mistake(
    "leave gradients on in evaluation: whoever wants none says so by torch.no_grad().",
    "gradients in evaluation",
)
@called
def parameters_constant_in_evaluation(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Takes its parameters for constants in evaluation."""
    parameters = [] if wrong.training else [each for each in wrong.parameters()]
    for each in parameters:
        each.requires_grad_(False)
    try:
        return call(*args, **kwargs)
    finally:
        for each in parameters:
            each.requires_grad_(True)


@mistake("give an argument that is left out the value of its signature.", "values left out")
def other_defaults(layer: Layer) -> Candidate | None:
    """Takes another value for the first argument that is left out and has a number."""
    right: Any = layer.right
    numbers = {name: each for name, each in layer.defaults.items() if isinstance(each, int | float)}
    others = {name: _another(each) for name, each in islice(numbers.items(), 1)}
    if not others:
        return None
    signature = inspect.signature(right)

    def completed(args: Any, kwargs: Any) -> dict[str, Any]:
        given = signature.bind(*args, **kwargs).arguments
        left_out = others.keys() & signature.parameters.keys() - given.keys()
        return kwargs | {name: others[name] for name in left_out}

    if not isinstance(right, type):

        def other(*args: Any, **kwargs: Any) -> Any:
            """Takes another value for an argument that is left out."""
            return right(*args, **completed(args, kwargs))

        return other

    class Other(right):  # type: ignore[misc]  # a class that is a value
        """Takes another value for an argument that is left out."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **completed(args, kwargs))

    return Other


def _another(value: float | bool) -> float | bool:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else 0.25 if value != 0.25 else 0.5


@mistake("return the dtype of the input.", "half precisions")
@called
def always_float32(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Returns float32 whatever it was given."""
    return call(*args, **kwargs).float()


@mistake(
    "keep no result in an attribute, or detach it: the whole graph is kept with it, and a deep "
    "copy fails.",
    "no graph kept",
)
@called
def result_kept(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Holds its last result in an attribute."""
    wrong.last = call(*args, **kwargs)
    return wrong.last


@mistake(
    "draw with torch's generator: it is the one that torch.manual_seed sets.", "draws of torch"
)
def generator_of_its_own(layer: Layer) -> Candidate:
    """Draws from a generator that nobody seeds."""

    def drawn(call: Candidate, *args: Any, **kwargs: Any) -> Any:
        """Draws from a generator that nobody seeds."""
        with torch.random.fork_rng(devices=[]):
            torch.seed()
            return call(*args, **kwargs)

    right: Any = layer.right
    if not isinstance(right, type):
        return wraps(drawn)(lambda *args, **kwargs: drawn(right, *args, **kwargs))

    class Own(right):  # type: ignore[misc]  # a class that is a value
        """Draws from a generator that nobody seeds."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            drawn(super().__init__, *args, **kwargs)

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return drawn(super().forward, *args, **kwargs)

    return Own


@mistake(
    "make parameters in __init__: an optimizer that is built before the first call has none of "
    "them.",
    "copies",
)
def parameters_made_in_forward(layer: Layer) -> Candidate:
    """Has its parameters from its first call on."""
    right: Any = layer.right

    class Late(right):  # type: ignore[misc]  # a class that is a value
        """Has its parameters from its first call on."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.late = {}
            for path, part in self.named_modules():
                for name, parameter in list(part.named_parameters(recurse=False)):
                    self.late[path, name] = parameter.detach()
                    part.register_parameter(name, None)

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            while self.late:
                (path, name), values = self.late.popitem()
                setattr(self.get_submodule(path), name, nn.Parameter(values))
            return super().forward(*args, **kwargs)

    return Late


@mistake(
    "let reset_parameters() do what __init__ does: a layer that was made on the meta device has no "
    "other start.",
    "reset",
)
def reset_draws_another_start(layer: Layer) -> Candidate:
    """Draws every parameter from a standard normal distribution when it is reset."""
    right: Any = layer.right

    class Another(right):  # type: ignore[misc]  # a class that is a value
        """Draws every parameter from a standard normal distribution when it is reset."""

        is_made = False

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.is_made = True

        def reset_parameters(self) -> None:
            if self.is_made:
                randomized(self, std=1.0)
            else:
                super().reset_parameters()

    return Another


@mistake(
    "make tensors on the device of the input: torch.zeros_like(x), or device=x.device.", "device"
)
@called
def made_on_the_cpu(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Adds zeros, which it makes on the CPU."""
    output = call(*args, **kwargs)
    zeros = torch.zeros(1, dtype=output.dtype, device="cpu")  # of one axis: a number mixes with all
    return (output[None] + zeros)[0]
