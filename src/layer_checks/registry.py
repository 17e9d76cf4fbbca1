"""The layers that have checks and known wrong versions: the book's, and those of other packages.

The book's are what the modules of `checks/` and `wrong/` declare. Another distribution has layers
of its own by an entry point of the group `layer_checks`, whose value is a module that declares each
as a `Layer`, with its checks, its right version and its wrong ones. In its `pyproject.toml`:

    [project.entry-points.layer_checks]
    gated = "theirpackage.checks"

They are looked for when a layer is asked for the first time. An entry point that cannot be used,
and a layer whose name is taken, is left out with a warning.
"""

import importlib
import pkgutil
from types import ModuleType

from layer_checks import checks, entry_points, wrong
from layer_checks.kit import initial, mistakes, weight_maps
from layer_checks.kit import protocol_mistakes as protocol_mistakes
from layer_checks.kit import situation_mistakes as situation_mistakes
from layer_checks.kit.definitions import Candidate, Layer, WrongVersion

# The book's, in the order of the modules' names, and in each of them as they stand there; then
# those of others, once one is asked for: see `layers`.
LAYERS: dict[str, Layer] = {}
_asked = False


def modules_of(package: ModuleType) -> list[ModuleType]:
    """All modules of a package, by name: what each of them declares is known from then on."""
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def _layers_in(module: ModuleType) -> list[Layer]:
    return [each for each in vars(module).values() if isinstance(each, Layer)]


def _register(layer: Layer) -> None:
    if LAYERS.get(layer.name) is layer:  # imported from where it was declared
        return
    if layer.name in LAYERS:
        raise ValueError(f"there is a layer {layer.name!r} already: give it another name")
    if layer.right is None:
        raise ValueError(f"the layer {layer.name!r} does not tell its right version: give right=")
    weight_maps.declare(layer.weight_maps)
    initial.declare(layer)
    mistakes.declare(layer)
    LAYERS[layer.name] = layer


def _register_those_of(module: ModuleType) -> None:
    layers = _layers_in(module)
    if not layers:
        raise ValueError("it declares no layer_checks.kit.definitions.Layer")
    errors = []
    for layer in layers:
        try:
            _register(layer)
        except ValueError as error:
            errors.append(str(error))
    if errors:
        raise ValueError("; ".join(errors))


# The book's alone, which no other distribution changes.
OWN = tuple(layer for module in modules_of(checks) for layer in _layers_in(module))
modules_of(wrong)
for _layer in OWN:
    _register(_layer)


def layers() -> tuple[Layer, ...]:
    """All layers: the book's, and those of other distributions.

    Warns:
        UserWarning: The first time, for each distribution whose layers cannot be used.
    """
    global _asked
    if not _asked:
        _asked = True  # first: what is imported may ask for a layer itself
        entry_points.each_module(_register_those_of)
    return tuple(LAYERS.values())


def layer_named(layer_name: str) -> Layer:
    """What is known about a layer.

    Raises:
        ValueError: If there is no layer of this name.
    """
    layers()
    if layer_name not in LAYERS:
        raise ValueError(f"no layer {layer_name!r}; there are checks for {', '.join(LAYERS)}")
    return LAYERS[layer_name]


def right_version(layer_name: str) -> Candidate:
    """The right layer: the book's own, or that of the package that registers it."""
    return layer_named(layer_name).right


def wrong_versions(layer_name: str) -> tuple[WrongVersion, ...]:
    """The known wrong versions of a layer.

    Args:
        layer_name: Its name in `transformer_layers`, or in the package that registers it.

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
