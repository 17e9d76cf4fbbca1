"""Something wrong with the package: a layer replaced by a wrong version, or a line changed."""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "transformer_layers"


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


@dataclass(frozen=True)
class Change:
    """A few characters of the package that are wrong, for what has no wrong versions of its own.

    Attributes:
        module: The module of `transformer_layers`; one in a folder as `gpt2/files/weights`.
        name: What is wrong, in a few words.
        old: Text that occurs in the module once.
        new: What stands there instead.
        select: Which tests to run, as pytest's `-k` takes it; all of them if empty.
    """

    module: str
    name: str
    old: str
    new: str
    select: str = ""

    @property
    def label(self) -> str:
        return f"{self.module}.py: {self.name}"

    def altered(self) -> str:
        """The module's text with the change in it.

        Raises:
            ValueError: If the old text does not occur there exactly once.
        """
        text = (PACKAGE / f"{self.module}.py").read_text(encoding="utf-8")
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"{self.label}: {self.old!r} occurs {found} times there, not once")
        return text.replace(self.old, self.new)


Wrong: TypeAlias = Replacement | Change


def put_in_front(change: Change, folder: Path) -> None:
    """Puts a copy of the package with the change in it first on the path.

    Processes that `multiprocessing` spawns get the path too.
    """
    copy = shutil.copytree(
        PACKAGE, folder / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__")
    )
    (copy / f"{change.module}.py").write_text(change.altered(), encoding="utf-8")
    sys.path.insert(0, str(folder))


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
