"""The layers that have checks and known wrong versions."""

import importlib
import pkgutil
from types import ModuleType

import transformer_layers
from layer_checks import checks, wrong
from layer_checks.kit import mistakes
from layer_checks.kit.definitions import Candidate, Layer, WrongVersion


def modules_of(package: ModuleType) -> list[ModuleType]:
    """All modules of a package, by name: what each of them declares is known from then on."""
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


# In the order of the modules' names, and in each of them as they stand there.
LAYERS = {
    layer.name: layer
    for module in modules_of(checks)
    for layer in vars(module).values()
    if isinstance(layer, Layer)
}
modules_of(wrong)
for _layer in LAYERS.values():
    mistakes.declare(_layer, getattr(transformer_layers, _layer.name))


def layer_named(layer_name: str) -> Layer:
    """What is known about a layer.

    Raises:
        ValueError: If there is no layer of this name.
    """
    if layer_name not in LAYERS:
        raise ValueError(f"no layer {layer_name!r}; there are checks for {', '.join(LAYERS)}")
    return LAYERS[layer_name]


def right_version(layer_name: str) -> Candidate:
    """The book's own layer."""
    return getattr(transformer_layers, layer_named(layer_name).name)


def wrong_versions(layer_name: str) -> tuple[WrongVersion, ...]:
    """The known wrong versions of a layer.

    Args:
        layer_name: Its name in `transformer_layers`.

    Returns:
        The wrong versions, each with a name, one sentence of advice, the class or function, and
        where it was published, if it was.

    Raises:
        ValueError: If there is no layer of this name.

    Examples:
        >>> wrong_versions("LayerNorm")[0]
        variance not biased - divide the sum of squares by n, not by n - 1 (in torch: correction=0).
    """
    return layer_named(layer_name).wrong_versions


def wrong_version(layer_name: str, name: str) -> WrongVersion:
    """One wrong version of a layer.

    Args:
        layer_name: The layer's name in `transformer_layers`.
        name: The wrong version's name.

    Returns:
        The wrong version.

    Raises:
        ValueError: If there is no layer, or no wrong version of it, of this name.

    Examples:
        >>> import torch
        >>> wrong_version("LayerNorm", "no gain").layer(3)(torch.tensor([1.0, 2.0, 3.0])).detach()
        tensor([-1.2247,  0.0000,  1.2247])
    """
    by_name = {version.name: version for version in wrong_versions(layer_name)}
    if name not in by_name:
        raise ValueError(
            f"no wrong version {name!r} of {layer_name}; there are: {', '.join(by_name)}"
        )
    return by_name[name]
