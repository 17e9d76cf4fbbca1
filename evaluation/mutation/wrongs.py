"""Something wrong with the package: a layer replaced by a wrong version, or a line changed."""

import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from evaluation.mutation.definitions import spans_of

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "transformer_layers"


@dataclass(frozen=True)
class Replacement:
    """A known wrong version of `layer_checks`, in the place of the layer.

    Attributes:
        layer: The layer's name in `transformer_layers`.
        version: The wrong version's name.
    """

    layer: str
    version: str
    select = ""  # all tests of the layer's module

    @property
    def label(self) -> str:
        return f"{self.layer}: {self.version}"


def line_of_the_table() -> str:
    """The file and the line that make a change, or ask a function for one."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename in (__file__, "<string>"):  # dataclasses'
        frame = frame.f_back
    path = Path(frame.f_code.co_filename)
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{frame.f_lineno}"


@dataclass(frozen=True)
class Change:
    """A few characters of a function that are wrong, for what has no wrong versions of its own.

    Attributes:
        place: The module of `transformer_layers` and the function, as `gpt2/model:GPT2.loss`; a
            class stands for what it says outside its methods, and a constant for its assignment.
        name: What is wrong, in a few words.
        old: Text that occurs once in the function's code; its docstring does not count.
        new: What stands there instead.
        select: Which tests to run, as pytest's `-k` takes it; all of them if empty.
        where: The file and the line of the table.
    """

    place: str
    name: str
    old: str
    new: str
    select: str = ""
    where: str = field(default_factory=line_of_the_table, compare=False, repr=False)

    @property
    def module(self) -> str:
        return self.place.partition(":")[0]

    @property
    def path(self) -> Path:
        return PACKAGE / f"{self.module}.py"

    @property
    def label(self) -> str:
        return f"{self.place}: {self.name}"

    def altered(self) -> str:
        """The module's text with the change in it.

        Raises:
            ValueError: If there is no such module or function, if the old text does not occur in
                it exactly once, or if what comes of it is not Python.
        """
        function = self.place.partition(":")[2]
        here = f"{self.where}: {self.label}"
        if not self.path.is_file():
            raise ValueError(f"{here}: there is no {self.module}.py")
        text = self.path.read_text(encoding="utf-8")
        spans = spans_of(text, function)
        if not spans:
            raise ValueError(f"{here}: there is no {function!r} in the module")
        found = [span for span in spans for _ in range(text[slice(*span)].count(self.old))]
        if len(found) != 1:
            raise ValueError(f"{here}: {self.old!r} occurs {len(found)} times there, not once")
        begin, end = found[0]
        altered = text[:begin] + text[begin:end].replace(self.old, self.new) + text[end:]
        try:
            compile(altered, self.module, "exec")
        except SyntaxError as error:
            raise ValueError(f"{here}: is not Python: {error}") from error
        return altered


@dataclass(frozen=True)
class Function:
    """A function that several changes are of; each is a call with what is left to say of it.

    Attributes:
        place: As in `Change`.
        select: Which tests to run for a change that does not say it.
    """

    place: str
    select: str = ""

    def __call__(self, name: str, old: str, new: str, select: str | None = None) -> Change:
        return Change(self.place, name, old, new, self.select if select is None else select)


class Altered(Protocol):
    """A module that is other than it is: a change, or a generic mutant."""

    @property
    def path(self) -> Path: ...
    @property
    def label(self) -> str: ...
    @property
    def select(self) -> str: ...
    def altered(self) -> str:
        """The module's text."""


Wrong: TypeAlias = Replacement | Altered


def problems_of(changes: Iterable[Change]) -> list[str]:
    """Why changes cannot be made, a line for each that cannot."""
    problems = []
    for change in changes:
        try:
            change.altered()
        except ValueError as error:
            problems.append(str(error))
    return problems


def put_in_front(wrong: Altered, folder: Path) -> None:
    """Puts a copy of the package with the change in it first on the path.

    Processes that are started get the path too, be they spawned by `multiprocessing` or not.
    """
    path = wrong.path.relative_to(SOURCE)
    package = path.parts[0]
    shutil.copytree(
        SOURCE / package, folder / package, ignore=shutil.ignore_patterns("__pycache__")
    )
    (folder / path).write_text(wrong.altered(), encoding="utf-8")
    sys.path.insert(0, str(folder))
    paths = [str(folder), str(SOURCE), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))


def replace(replacement: Replacement) -> None:
    """Puts the wrong version in the layer's place, in every module of the package."""
    from layer_checks.registry import right_version, wrong_version  # of the package as it is now

    right = right_version(replacement.layer)
    wrong = wrong_version(replacement.layer, replacement.version).layer
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == PACKAGE.name:
            for attribute, value in list(vars(module).items()):
                if value is right:
                    setattr(module, attribute, wrong)
