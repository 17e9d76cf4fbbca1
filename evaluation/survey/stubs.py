"""Stand-ins for packages that a work imports and its layers do not need."""

import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any


class _Stub(types.ModuleType):
    """A module of which every name is a class that does nothing."""

    __path__: list[str] = []  # noqa: RUF012
    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (_Anything,), {})
        setattr(self, name, made)
        return made


class _Meta(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


class _Anything(metaclass=_Meta):
    """Can be called, decorated with and asked for anything."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __init_subclass__(cls, **kwargs: Any) -> None: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) else _Anything()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def __getitem__(self, item: Any) -> Any:
        return _Anything()

    def __or__(self, other: Any) -> Any:
        return _Anything()

    __ror__ = __or__


class _Finder:
    def __init__(self, names: Sequence[str]) -> None:
        self.names = set(names)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Finds a stub of a listed package, and of anything in it."""
        if any(name == each or name.startswith(f"{each}.") for each in self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        """Makes the stub."""
        return _Stub(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Does nothing."""


def stub(*names: str, instead: bool = False) -> None:
    """Lets these packages be imported where they are missing, as stand-ins.

    Args:
        names: The packages, or modules.
        instead: Whether they stand in for packages that are there, too.
    """
    finder = _Finder(names)
    sys.meta_path.insert(0 if instead else len(sys.meta_path), finder)
