"""Puts objects in the place of names of other packages, and the originals back."""

from importlib import import_module
from typing import Any

from sphinx.errors import ExtensionError


class Replacements:
    """Names that stand for something else until they are restored."""

    def __init__(self) -> None:
        self._originals: list[tuple[Any, str, Any]] = []

    def put(self, names: dict[str, Any]) -> None:
        """Replaces `package.module.name` by a value each."""
        for full, value in names.items():
            path, _, name = full.rpartition(".")
            module = import_module(path)
            if not hasattr(module, name):
                self.restore()
                raise ExtensionError(
                    f"verified_book does not know this version of {path.partition('.')[0]}: "
                    f"it has no {full}"
                )
            self._originals.append((module, name, getattr(module, name)))
            setattr(module, name, value)

    def restore(self) -> None:
        """Puts every original back."""
        while self._originals:
            setattr(*self._originals.pop())
