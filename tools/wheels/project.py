"""The distributions: where each is, what it declares, and what its modules import."""

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Project:
    """A distribution.

    Attributes:
        folder: Where its `pyproject.toml` and its README are.
        packages: The packages that it brings.
    """

    folder: Path
    packages: tuple[str, ...]

    @property
    def settings(self) -> dict[str, Any]:
        return tomllib.loads((self.folder / "pyproject.toml").read_text(encoding="utf-8"))

    @property
    def name(self) -> str:
        return str(self.settings["project"]["name"])

    @property
    def readme(self) -> str:
        return (self.folder / "README.md").read_text(encoding="utf-8")

    @property
    def changelog(self) -> str:
        return (self.folder / "CHANGELOG.md").read_text(encoding="utf-8")

    @property
    def version(self) -> str:
        """The version, read without importing what may not be installed."""
        attribute = self.settings["tool"]["setuptools"]["dynamic"]["version"]["attr"]
        module, _, name = attribute.rpartition(".")
        path = ROOT / "src" / module.replace(".", "/")
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        (found,) = re.findall(rf'^{name} = "(.+)"$', file.read_text(encoding="utf-8"), re.MULTILINE)
        return str(found)

    def required(self) -> list[Requirement]:
        """What is installed with it."""
        return [Requirement(line) for line in self.settings["project"]["dependencies"]]

    def optional(self, extras: Iterable[str]) -> list[Requirement]:
        """What its extras install."""
        declared = self.settings["project"]["optional-dependencies"]
        return [Requirement(line) for extra in extras for line in declared[extra]]

    def imports(self) -> dict[str, list[str]]:
        """The packages of others that its modules import, each with the places."""
        places = defaultdict(list)
        for package in self.packages:
            for path in sorted((ROOT / "src" / package).rglob("*.py")):
                if "build" in path.parts:
                    continue
                for name, line in imported(path.read_text(encoding="utf-8")):
                    if name not in self.packages:
                        places[name].append(f"{path.relative_to(ROOT)}:{line}")
        return dict(places)


LAYERS = Project(ROOT, ("layer_checks", "transformer_layers", "transformer_training"))
EXTENSION = Project(ROOT / "src/verified_book", ("verified_book",))


def imported(source: str) -> Iterator[tuple[str, int]]:
    """The top-level packages that a module imports, with the lines; none of Python's own."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        else:
            continue
        for name in names:
            top = name.partition(".")[0]
            if top not in sys.stdlib_module_names:
                yield top, node.lineno


def oldest(requirement: Requirement) -> str:
    """A requirement of the oldest version that another one allows.

    Raises:
        ValueError: If it has no lower bound.
    """
    bounds = [part.version for part in requirement.specifier if part.operator == ">="]
    if len(bounds) != 1:
        raise ValueError(f"{requirement}: it should have one bound of the form >=VERSION")
    return f"{canonicalize_name(requirement.name)}=={bounds[0]}"
