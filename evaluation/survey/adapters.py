"""A work's layer under the names of ours, so that a check sees the layer and not its spelling."""

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from layer_checks.kit.arguments import CannotTakeError


class Adapted(nn.Module):
    """Holds parameters under our names, and hands them to a work's module when it is called.

    Args:
        inner: The work's module.
        names: For each of our parameters where it is in theirs. `qkv.weight#1/3` is the second
            third of the rows; `.T` at the end takes the transpose, and `+1` is theirs and one. A
            parameter that they have not is left out.
        call: Calls their module: it gets the module and our arguments.
        zeros: Names of their parameters that are to be zeros, and no parameters of ours.
        dtype: Of the parameters, if it is to be another than theirs.
        device: Where the parameters are to be, if elsewhere.
    """

    inner: nn.Module

    def __init__(
        self,
        inner: nn.Module,
        names: Mapping[str, str],
        call: Callable[..., Any] | None = None,
        zeros: Collection[str] = (),
        dtype: torch.dtype | None = None,
        device: Any = None,
    ) -> None:
        super().__init__()
        object.__setattr__(self, "inner", inner)  # not a submodule: its parameters are ours
        self.names = dict(names)
        self.call = call or plainly
        theirs = dict(inner.named_parameters())
        left = {_place(place).name for place in names.values()}
        if unknown := left - theirs.keys():
            raise ValueError(f"{type(inner).__name__} has no {unknown}; it has {list(theirs)}")
        for ours, place in self.names.items():
            where = _place(place)
            value = theirs[where.name].detach().chunk(where.parts)[where.part] + where.offset
            value = value.T if where.transposed else value
            _put(self, ours, nn.Parameter(value.clone().contiguous()))
        for name, parameter in theirs.items():
            if name in zeros:
                parameter.requires_grad_(False).zero_()
            elif name not in left:
                _put(self, f"other.{name}", parameter)
        self.to(dtype=dtype, device=device)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Calls the work's module with our parameters in the place of its own."""
        known = inspect.signature(self.call).parameters
        takes_all = any(each.kind is each.VAR_KEYWORD for each in known.values())
        if not takes_all and (unknown := named.keys() - known.keys()):
            raise NotImplementedError(f"is not called with {', '.join(sorted(unknown))}")
        pieces: dict[str, dict[int, Tensor]] = {}
        for ours, place in self.names.items():
            where = _place(place)
            value = _get(self, ours) - where.offset
            value = value.T if where.transposed else value
            pieces.setdefault(where.name, {})[where.part] = value
        whole = {
            name: parts[0] if len(parts) == 1 else torch.cat([parts[i] for i in sorted(parts)])
            for name, parts in pieces.items()
        }
        caller = _Caller(self.inner, self.call)
        return functional_call(
            caller, {f"m.{key}": each for key, each in whole.items()}, inputs, named
        )

    def train(self, mode: bool = True) -> "Adapted":
        """Sets the mode of both."""
        self.inner.train(mode)
        return super().train(mode)

    def _apply(self, fn: Any, recurse: bool = True) -> "Adapted":
        self.inner._apply(fn, recurse)
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]


class _Caller(nn.Module):
    def __init__(self, inner: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.m = inner
        self.training = inner.training
        self.call = call

    def forward(self, *inputs: Any, **named: Any) -> Any:
        return self.call(self.m, *inputs, **named)


def plainly(module: nn.Module, *inputs: Any, **named: Any) -> Any:
    """Calls a module that takes no named arguments."""
    if named:
        raise NotImplementedError(f"is not called with {', '.join(named)}")
    return module(*inputs)


class _Place(NamedTuple):
    name: str
    part: int
    parts: int
    transposed: bool
    offset: int


def _place(place: str) -> _Place:
    transposed, offset = place.endswith(".T"), int(place.endswith("+1"))
    name, _, part = place.removesuffix(".T").removesuffix("+1").partition("#")
    which, _, parts = part.partition("/")
    return _Place(name, int(which or 0), int(parts or 1), transposed, offset)


def _put(module: nn.Module, name: str, parameter: nn.Parameter) -> None:
    *path, last = name.split(".")
    for step in path:
        if step not in module._modules:
            module.add_module(step, nn.Module())
        module = module._modules[step]  # type: ignore[assignment]
    module.register_parameter(last, parameter)


def _get(module: nn.Module, name: str) -> Tensor:
    *path, last = name.split(".")
    for step in path:
        module = getattr(module, step)
    return getattr(module, last)


def renamed(make: Callable[..., nn.Module], **names: str) -> type[Adapted]:
    """A class with our parameters' names, whose arguments `make` turns into the work's module.

    Args:
        make: Builds the work's module from our arguments.
        names: Theirs by ours; dots are written as `__`.

    Returns:
        A class that is built as ours is.
    """
    return with_call(make, None, **names)


def with_call(
    make: Callable[..., nn.Module], call: Callable[..., Any] | None, **names: str
) -> type[Adapted]:
    """As `renamed`, where calling differs too."""
    ours = {name.replace("__", "."): place for name, place in names.items()}

    class Layer(Adapted):
        def __init__(
            self, *args: Any, dtype: Any = None, device: Any = None, **kwargs: Any
        ) -> None:
            biased = True
            if "eps" in kwargs and "eps" not in inspect.signature(make).parameters:
                raise CannotTakeError("it takes no eps", "eps")
            if "bias" not in inspect.signature(make).parameters:
                biased = kwargs.pop("bias", True)
            inner = make(*args, **kwargs)
            theirs = dict(inner.named_parameters())
            known = {name: place for name, place in ours.items() if _place(place).name in theirs}
            zeros = set()
            if not biased:  # theirs cannot be built without: they are zeros
                zeros = {_place(known.pop(name)).name for name in list(known) if "bias" in name}
            super().__init__(inner, known, call, zeros, dtype, device)

    return Layer


# Names of the four projections, and of the three of a packed one.
def projections(query: str, key: str, value: str, output: str) -> dict[str, str]:
    """Where the projections of a multi-head attention are."""
    places = {"query_proj": query, "key_proj": key, "value_proj": value, "output_proj": output}
    return {
        f"{ours}__{kind}": f"{theirs}.{kind}"
        for ours, theirs in places.items()
        for kind in ("weight", "bias")
    }


def packed(qkv: str, output: str, weight: str = ".weight", bias: str = ".bias") -> dict[str, str]:
    """Where they are if one map holds query, key and value, in this order."""
    names = {}
    for part, ours in enumerate(("query_proj", "key_proj", "value_proj")):
        names[f"{ours}__weight"] = f"{qkv}{weight}#{part}/3"
        names[f"{ours}__bias"] = f"{qkv}{bias}#{part}/3"
    return {
        **names,
        "output_proj__weight": f"{output}.weight",
        "output_proj__bias": f"{output}.bias",
    }


def heads_of(mask: Tensor | None) -> Tensor | None:
    """Our mask with an axis for the heads, where it has one for the sequences."""
    return mask if mask is None or mask.ndim == 2 else mask.unsqueeze(-3)


def additive(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Our mask as numbers to add: 0 where allowed, -inf where not."""
    if mask is None:
        return None
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, float("-inf"))
