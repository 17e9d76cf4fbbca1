"""Defaults of a reader's functions that a call changes: Python makes each once, for all calls."""

import inspect
from dataclasses import dataclass, field
from typing import Any


@dataclass
class SharedDefaults:
    """The lists, dictionaries and sets that are defaults of a class's methods, or of a function.

    Attributes:
        candidate: The reader's class or function.
        changed: Those that a call changed, as they are written, for each function.
    """

    candidate: Any
    changed: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        functions = [self.candidate]
        if inspect.isclass(self.candidate):
            functions = [each for each in vars(self.candidate).values() if inspect.isfunction(each)]
        self._found = [
            (function.__name__, name, each.default, type(each.default)(each.default))
            for function in functions
            if inspect.isfunction(function)
            for name, each in inspect.signature(function).parameters.items()
            if isinstance(each.default, list | dict | set)
        ]

    def restore(self) -> None:
        """Makes them again what they were when the class was written."""
        for function, name, default, before in self._found:
            if len(default) != len(before):
                default.clear()
                default.extend(before) if isinstance(default, list) else default.update(before)
                self.changed[f"{function}({name}={before!r})"] = None
