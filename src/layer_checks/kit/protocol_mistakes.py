"""Mistakes that any layer can make with torch: what the probes of the protocol are for."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.mistakes import called, first_tensor, is_floating, mistake


@mistake(
    "take the input as it comes: what was computed from something needs its gradient as a leaf "
    "does, so neither detach() nor .data.",
    "input of another layer",
)
@called
def gradient_for_leaves_alone(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Detaches an input that was computed from something."""

    def cut(x: Any) -> Any:
        if isinstance(x, list):
            return [cut(each) for each in x]
        return x.detach() if is_floating(x) and not x.is_leaf else x

    return call(*map(cut, args), **kwargs)


@mistake(
    "give the result all axes of the input: where two were joined before a product, part them "
    "again.",
    "fewer and more axes",
)
@called
def leading_axes_joined(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Joins the axes before the last two, and leaves them joined."""
    output = call(*args, **kwargs)
    return output.flatten(0, -3) if output.ndim > 3 else output


@mistake(
    "let a tensor that is handed in twice count twice: which object it is does not matter.",
    "one tensor for several",
)
@called
def one_tensor_counted_once(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Takes an argument that it has already seen for a constant."""
    seen: set[int] = set()

    def once(x: Any) -> Any:
        if isinstance(x, list):
            return [once(each) for each in x]
        if is_floating(x) and id(x) in seen:
            return x.detach()
        seen.add(id(x))
        return x

    return call(*map(once, args), **kwargs)


@mistake(
    "take the absolute value, not the root of the square: at 0 a root has no gradient.",
    "zeros",
)
@called
def roots_of_squares(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Adds nothing, by way of the root of each square."""
    x = first_tensor(args)
    output = call(*args, **kwargs)
    return output if x is None else output + 0.0 * x.square().sqrt().sum()


class _FirstOrder(torch.autograd.Function):
    """Changes nothing, and has a gradient that is taken for a constant."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing is kept."""

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient.detach()


@mistake(
    "write the backward pass of an autograd.Function in operations that have gradients, or mark "
    "it with once_differentiable, so that it refuses.",
    "gradient of the gradient",
    published="torch, native_batch_norm, whose third derivative is another one, "
    "https://github.com/pytorch/pytorch/issues/186256",
)
@called
def gradient_taken_for_a_constant(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Has a backward pass that cannot be differentiated, and does not say so."""
    return _FirstOrder.apply(call(*args, **kwargs))  # type: ignore[no-untyped-call]  # torch's


@mistake(
    "ask for no value of a tensor: neither if nor .item(), which no vmap or compiler can follow.",
    "mapped over an axis",
    published="transformers, masks of scaled_dot_product_attention, "
    "https://github.com/MadryLab/trak/pull/78",
)
@called
def branch_on_values(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Asks whether all of its input is finite."""
    x = first_tensor(args)
    if x is not None and not x.is_meta:
        bool(x.isfinite().all())
    return call(*args, **kwargs)


@mistake(
    "give an operation that wants one dtype tensors of one dtype: under autocast products are "
    "bfloat16 and parameters are not.",
    "autocast",
    published="torchvision, Mask R-CNN, https://github.com/pytorch/pytorch/pull/41035",
)
@called
def dtypes_mixed_under_autocast(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Writes a product between numbers of the dtype that it had outside of autocast."""
    output = call(*args, **kwargs)
    if not output.is_floating_point():
        return output
    zeros = torch.zeros(1, 1, dtype=output.dtype, device=output.device)
    if torch.is_autocast_enabled("cpu"):
        zeros = zeros.float()
    nothing = torch.lerp(zeros, zeros @ zeros, 1.0)
    return output + nothing[0, 0].to(output.dtype)


@mistake(
    "call the parts that hold weights, by part(x): part.forward(x), and its weight by itself, run "
    "no hook, and no adapter that took its place.",
    "parts called",
    published="torch, nn.MultiheadAttention, https://github.com/pytorch/pytorch/issues/78109",
)
@called
def hooks_of_parts_left_out(call: Candidate, args: Any, kwargs: Any, wrong: Any) -> Any:
    """Calls the parts' forward by itself."""
    parts = list(wrong.modules())[1:]
    held = [(part, part._forward_hooks) for part in parts]
    for part in parts:
        part._forward_hooks = type(part._forward_hooks)()
    try:
        return call(*args, **kwargs)
    finally:
        for part, hooks in held:
            part._forward_hooks = hooks


@mistake(
    "take a weight from its attribute in each call: a list of parameters keeps those that another "
    "call has replaced.",
    "weights put in place",
    published="TransformerLens, UnembeddingBridge, "
    "https://github.com/TransformerLensOrg/TransformerLens/issues/1725",
)
def weights_held_in_a_list(layer: Layer) -> Candidate:
    """Computes with the parameters that it was built with."""
    right: Any = layer.right

    class Held(right):  # type: ignore[misc]  # a class that is a value
        """Computes with the parameters that it was built with."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.held = [parameter for _, _, parameter in _registered(self)]

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            now = _registered(self)
            for (part, name, current), held in zip(now, self.held, strict=True):
                if held.device == current.device:
                    part._parameters[name] = held
            try:
                return super().forward(*args, **kwargs)
            finally:
                for part, name, current in now:
                    part._parameters[name] = current

    return Held


@mistake(
    "keep no lambda in an attribute: torch.save and processes pickle a module, and cannot pickle "
    "it.",
    "pickled",
    published="pytorch_resnet_cifar10, "
    "https://github.com/akamaster/pytorch_resnet_cifar10/issues/11",
)
def lambda_in_an_attribute(layer: Layer) -> Candidate:
    """Keeps a function without a name."""
    right: Any = layer.right

    class Lambda(right):  # type: ignore[misc]  # a class that is a value
        """Keeps a function without a name."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.last_step: Callable[[Any], Any] = lambda x: x

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return self.last_step(super().forward(*args, **kwargs))

    return Lambda


@mistake(
    "write new values into the parameters that there are: an optimizer knows nothing of new ones.",
    "parameters kept",
    published="nncf, https://github.com/openvinotoolkit/nncf/pull/327",
)
def parameters_replaced_by_a_reset(layer: Layer) -> Candidate:
    """Makes new parameters when it is reset."""
    right: Any = layer.right

    class Replaced(right):  # type: ignore[misc]  # a class that is a value
        """Makes new parameters when it is reset."""

        is_made = False

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.is_made, self.sizes = True, (args, kwargs)

        def reset_parameters(self) -> None:
            if not self.is_made:
                super().reset_parameters()
                return
            args, kwargs = self.sizes
            fresh = right(*args, **kwargs)
            for (part, name, current), (_, _, new) in zip(
                _registered(self), _registered(fresh), strict=True
            ):
                setattr(part, name, nn.Parameter(new.detach().to(current)))
            for current, new in zip(self.buffers(), fresh.buffers(), strict=True):
                current.copy_(new)

    return Replaced


@mistake(
    "register a tensor that it computes with as a buffer: .to() leaves a plain attribute behind.",
    "moved",
)
def tensor_left_behind(layer: Layer) -> Candidate:
    """Holds a tensor that is neither a parameter nor a buffer."""
    right: Any = layer.right

    class Behind(right):  # type: ignore[misc]  # a class that is a value
        """Holds a tensor that is neither a parameter nor a buffer."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.ones = torch.ones(1, dtype=torch.int64, device="cpu")

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return super().forward(*args, **kwargs) * self.ones

    return Behind


def _registered(module: nn.Module) -> list[tuple[nn.Module, str, nn.Parameter]]:
    return list(_each_registered(module))


def _each_registered(module: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Parameter]]:
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                yield part, name, parameter
