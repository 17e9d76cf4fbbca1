"""The modules that other distributions name for layers of their own."""

import warnings
from collections.abc import Callable
from importlib import metadata
from types import ModuleType

GROUP = "layer_checks"


def each_module(use: Callable[[ModuleType], None]) -> None:
    """Imports what the entry points of the group `layer_checks` name, and hands it over.

    What goes wrong with one of them, by whatever error, is a warning, and the others go on.

    Args:
        use: What is done with each module.

    Warns:
        UserWarning: With the distribution, its entry point and the error.
    """
    for point in metadata.entry_points(group=GROUP):
        try:
            module = point.load()
            if not isinstance(module, ModuleType):
                raise TypeError(f"it is no module but a {type(module).__name__}")
            use(module)
        except (Exception, SystemExit) as error:  # somebody's module can raise anything
            distribution = point.dist.name if point.dist else "unknown"
            warnings.warn(
                f"the distribution {distribution} names {point.value} for its layers, which cannot "
                f"be used: {type(error).__name__}: {error}",
                stacklevel=2,
            )
