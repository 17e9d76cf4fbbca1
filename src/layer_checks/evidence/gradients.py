"""Gradients of two implementations, side by side."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from layer_checks.evidence.comparison import Comparison, compare
from layer_checks.evidence.evidence import Evidence, evidence_of

NamedTensors: TypeAlias = Mapping[str, Tensor]
ParameterMap: TypeAlias = Mapping[str, str] | Callable[[NamedTensors], NamedTensors]

IN_INFERENCE_MODE = "it computes in inference mode, where nothing has a gradient"


def same_gradients(
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    *inputs: Any,
    atol: float | None = None,
    rtol: float | None = None,
    parameters: ParameterMap | None = None,
    seed: int = 0,
) -> Evidence:
    r"""Checks that two implementations have the same input and parameter gradients.

    With one random cotangent :math:`g` of the output's shape, the gradients of
    :math:`\langle g, f(x, \theta) \rangle` are compared: those of each floating-point input, and,
    where both sides are modules, those of each parameter that requires a gradient. A gradient that
    does not exist counts as zero. Neither the `grad` fields nor the global random state change.

    Args:
        ours: Module or function. Of an output that is a tuple, the first element is used.
        theirs: The same. To leave the parameters out, pass `module.forward` on both sides.
        *inputs: What both are called with. Floating-point tensors are differentiated, all else
            (masks, token ids, None) is handed through.
        atol: Absolute tolerance, as for `equivalent`.
        rtol: Relative tolerance, as for `equivalent`.
        parameters: How our parameters' names become theirs: a mapping of the names that differ, or
            a function from named tensors to named tensors, for weights that are transposed or
            packed (it acts on gradients as it does on weights). Names that match need nothing.
        seed: Seed of the cotangent.

    Returns:
        Evidence with the largest difference over all gradients.

    Raises:
        AssertionError: If a gradient differs (the message names it), the outputs differ in shape or
            dtype, an output does not depend on anything, or a parameter has no counterpart.
        ValueError: If there is nothing to differentiate.

    Examples:
        >>> x = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3)
        >>> same_gradients(lambda x: x * x.sigmoid(), torch.nn.functional.silu, x)
        equal: largest difference ..., tolerance 1e-12
    """
    state = torch.get_rng_state()
    try:
        output, our_gradients = _gradients("ours", ours, inputs, seed)
        torch.set_rng_state(state)
        other, their_gradients = _gradients("theirs", theirs, inputs, seed)
    finally:
        torch.set_rng_state(state)
    _require_same_kind(output, other)
    our_gradients = _renamed(our_gradients, parameters)
    _require_counterparts(our_gradients, their_gradients)
    return compared_gradients(output, other, our_gradients, their_gradients, atol, rtol)


def _require_same_kind(output: Tensor, other: Tensor) -> None:
    if output.shape != other.shape or output.dtype != other.dtype:
        raise AssertionError(
            f"not equal: the outputs have shape {tuple(output.shape)}, {output.dtype} against "
            f"{tuple(other.shape)}, {other.dtype}"
        )


def compared_gradients(
    output: Tensor,
    other: Tensor,
    our_gradients: Mapping[str, Tensor],
    their_gradients: Mapping[str, Tensor],
    atol: float | None = None,
    rtol: float | None = None,
) -> Evidence:
    """Holds gradients against those of the same names.

    Args:
        output: Our output.
        other: Theirs, which must have its shape and dtype.
        our_gradients: By name.
        their_gradients: By name, with all names of ours.
        atol: Absolute tolerance, as for `equivalent`.
        rtol: Relative tolerance, as for `equivalent`.

    Returns:
        Evidence with the largest difference over all gradients.

    Raises:
        AssertionError: If one differs; the message names it.
    """
    _require_same_kind(output, other)
    comparisons = {
        name: compare(gradient, their_gradients[name], atol, rtol)
        for name, gradient in our_gradients.items()
    }
    failed = {name: found for name, found in comparisons.items() if found.failure is not None}
    if failed:
        worst = max(failed, key=lambda name: _severity(failed[name]))
        first, _, rest = str(failed[worst].failure).partition("\n")
        first = first.replace("not equal: ", f"not equal: gradient of {worst}: ")
        others = ", ".join(name for name in failed if name != worst)
        raise AssertionError(f"{first}\n{rest}" + (f"\n  also wrong: {others}" if others else ""))
    return evidence_of(max(comparisons.values(), key=lambda found: found.largest))


def differentiated(
    side: str,
    function: Callable[..., Any],
    inputs: Sequence[Any],
    parameters: Mapping[str, Tensor],
    cotangent: Callable[[Tensor], Tensor],
    *,
    of_inputs: bool = True,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The output, and its gradients with respect to floating-point inputs and some parameters.

    Args:
        side: Whose they are, for errors.
        function: Module or function. Of an output that is a tuple, the first element is used.
        inputs: What it is called with.
        parameters: The parameters by name.
        cotangent: Makes the gradient of the output from the output.
        of_inputs: Whether inputs need a gradient.

    Returns:
        The output, and the gradients by name, inputs first: zeros for one that does not exist.

    Raises:
        AssertionError: If the output is not a tensor, or does not depend on anything.
        ValueError: If there is nothing to differentiate.
    """
    leaves: dict[str, Tensor] = {}
    arguments = []
    for position, value in enumerate(inputs):
        if of_inputs and isinstance(value, Tensor) and value.is_floating_point():
            # Not cloned to contiguous memory: the strides are part of what is tested.
            value = value.detach().requires_grad_()
            leaves[f"input {position}"] = value
        arguments.append(value)
    leaves |= parameters
    if not leaves:
        raise ValueError(
            f"nothing to differentiate in {side}: no floating-point input, no parameter"
        )
    output = function(*arguments)
    if isinstance(output, tuple):
        output = output[0]
    if not isinstance(output, Tensor):
        raise AssertionError(f"the output of {side} is not a tensor but {type(output).__name__}")
    if output.is_inference():
        raise AssertionError(IN_INFERENCE_MODE)
    if not output.requires_grad:
        raise AssertionError(f"the output of {side} depends on none of: {', '.join(leaves)}")
    gradients = torch.autograd.grad(
        output, list(leaves.values()), cotangent(output.detach()), allow_unused=True
    )
    return output.detach(), {
        name: torch.zeros_like(leaf) if gradient is None else gradient
        for (name, leaf), gradient in zip(leaves.items(), gradients, strict=True)
    }


def of_module(
    side: str, module: nn.Module, inputs: tuple[Any, ...], seed: int = 0
) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """A module's output, and the gradients of its inputs and of its parameters, each by name."""
    state = torch.get_rng_state()
    try:
        output, gradients = _gradients(side, module, inputs, seed)
    finally:
        torch.set_rng_state(state)
    prefix = "parameter "
    of_inputs = {name: each for name, each in gradients.items() if not name.startswith(prefix)}
    of_parameters = {
        name.removeprefix(prefix): each
        for name, each in gradients.items()
        if name.startswith(prefix)
    }
    return output, of_inputs, of_parameters


def same_without_gradient_of_inputs(
    module: nn.Module, inputs: tuple[Any, ...], atol: float, seed: int = 0
) -> Evidence:
    """Checks that parameters have the same gradients whether the inputs need one or not.

    Args:
        module: The layer.
        inputs: What it is called with.
        atol: Absolute tolerance, as for `equivalent`.
        seed: Seed of the cotangent.

    Raises:
        AssertionError: If one differs; the message names it.
    """
    output, _, expected = of_module("the layer", module, inputs, seed)
    other, found = _gradients("the layer", module, inputs, seed, of_inputs=False)
    return compared_gradients(
        other, output, found, {f"parameter {name}": each for name, each in expected.items()}, atol
    )


def _gradients(
    side: str,
    function: Callable[..., Any],
    inputs: tuple[Any, ...],
    seed: int,
    *,
    of_inputs: bool = True,
) -> tuple[Tensor, dict[str, Tensor]]:
    def cotangent(output: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(output.shape, generator=generator, dtype=torch.float64).to(output)

    named = function.named_parameters() if isinstance(function, nn.Module) else ()
    parameters = {f"parameter {name}": each for name, each in named if each.requires_grad}
    return differentiated(side, function, inputs, parameters, cotangent, of_inputs=of_inputs)


def _renamed(gradients: dict[str, Tensor], parameters: ParameterMap | None) -> dict[str, Tensor]:
    if parameters is None:
        return gradients
    prefix = "parameter "
    named = {
        name.removeprefix(prefix): gradient
        for name, gradient in gradients.items()
        if name.startswith(prefix)
    }
    if callable(parameters):
        renamed = parameters(named)
    else:
        unknown = sorted(set(parameters) - set(named))
        if unknown:
            raise ValueError(f"parameters= names {unknown}, ours has {sorted(named)}")
        renamed = {parameters.get(name, name): gradient for name, gradient in named.items()}
    of_inputs = {name: each for name, each in gradients.items() if not name.startswith(prefix)}
    return of_inputs | {prefix + name: gradient for name, gradient in renamed.items()}


def _require_counterparts(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    only_ours = [name for name in ours if name not in theirs]
    only_theirs = [name for name in theirs if name not in ours]
    if only_ours or only_theirs:
        raise AssertionError(
            f"not equal: no counterpart: {_sides(only_ours, only_theirs)}\n"
            "  where only the names differ, pass parameters={our name: their name}"
        )


def _sides(only_ours: list[str], only_theirs: list[str]) -> str:
    parts = [f"{', '.join(only_ours)} in ours only"] if only_ours else []
    parts += [f"{', '.join(only_theirs)} in theirs only"] if only_theirs else []
    return "; ".join(parts)


def _severity(comparison: Comparison) -> float:
    # A NaN, or another shape, is worse than any difference.
    return comparison.excess if comparison.excess > 0 else float("inf")
