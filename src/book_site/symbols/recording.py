"""Records, in a cell, the shapes and dtypes of the variables of a function while it runs."""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

Kind = dict[str, Any]
"""What a value is: its shape and its dtype, or else its type."""


@dataclass(frozen=True)
class Recorded:
    """What the variables of some functions were; the last value of a cell, it goes with the page.

    Attributes:
        kinds: The kinds that each variable had, one for each function that has such a name.
        sizes: The sizes of the axes, by their names.
    """

    kinds: Mapping[str, list[Kind]]
    sizes: Mapping[str, int]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Any:
        text = f"recorded: {', '.join(self.kinds)}"
        # Pairs, since a notebook on disk has the keys of a dict in the order of the alphabet.
        about = {"kinds": dict(self.kinds), "sizes": [list(pair) for pair in self.sizes.items()]}
        return {"text/plain": text}, {"symbols": about}


def record(
    call: Callable[[], object],
    /,
    *functions: Callable[..., object],
    also: Mapping[str, object] | None = None,
    **sizes: int,
) -> Recorded:
    """Runs a call, and records what the variables of functions are when these return.

    Args:
        call: What is run.
        functions: The functions that are run in it. Recorded are their variables and, where the
            function names them, the attributes of `self`; `return` is the value that it returns.
            Of several runs of one function the last is recorded.
        also: More values, by the names by which the source has them.
        sizes: The size of each axis, by its name. A shape is told in these names.

    Returns:
        What is recorded. A cell that ends in it hands it to the page's table.

    Raises:
        ValueError: If two axes have one size or one has size 1, so that shapes would not tell them
            apart, or if a function was not run.

    Examples:
        >>> def scaled(x, factor):
        ...     y = factor * x
        ...     return y
        >>> record(lambda: scaled(2.0, 3), scaled).kinds["y"]
        [{'type': 'float'}]
    """
    if len(set(sizes.values())) < len(sizes) or 1 in sizes.values():
        raise ValueError(f"the sizes must differ from each other and from 1, got {sizes}")
    found: dict[CodeType, dict[str, Kind]] = {}
    codes = {_code(function): function for function in functions}

    def watch(frame: FrameType, event: str, value: object) -> None:
        if event == "return" and frame.f_code in codes:
            found[frame.f_code] = _kinds(frame, value)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
    kinds = {name: [kind_of(value)] for name, value in (also or {}).items()}
    for code, function in codes.items():
        if code not in found:
            raise ValueError(f"{function.__qualname__} was not run, so nothing of it is recorded")
        for name, kind in found[code].items():
            known = kinds.setdefault(name, [])
            if kind not in known and name not in (also or {}):
                known.append(kind)
    return Recorded(kinds, sizes)


def kind_of(value: object) -> Kind:
    """The shape and the dtype of an array, the type of anything else.

    Examples:
        >>> kind_of(1e-5), kind_of([1])
        ({'type': 'float'}, {'type': 'list'})
    """
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        dtype = str(value.dtype).rpartition(".")[2]  # torch says torch.float32
        return {"shape": [int(size) for size in value.shape], "dtype": dtype}
    return {"type": type(value).__name__}


def _code(function: Callable[..., object]) -> CodeType:
    code: CodeType = inspect.unwrap(getattr(function, "__func__", function)).__code__
    return code


def _kinds(frame: FrameType, returned: object) -> dict[str, Kind]:
    """The kinds of the variables of a frame that ends, and of what it used of `self`."""
    values = {**frame.f_locals, "return": returned}
    itself = values.pop("self", None)
    for name in frame.f_code.co_names if itself is not None else ():
        if hasattr(itself, name):
            values[f"self.{name}"] = getattr(itself, name)
    return {name: kind_of(value) for name, value in values.items()}
