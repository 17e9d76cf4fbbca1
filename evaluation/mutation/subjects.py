"""Which wrong versions each module of tests is held against.

`tests/transformer_layers/test_<name>.py` is held against the wrong versions of all layers that
`transformer_layers/<name>.py` defines and `layer_checks` knows, and against the changes that
stand under `<name>` in `changes`. Where a wrong version changes nothing but methods that its layer
has from another module, as GPT-2 has `generate`, the tests of that module are held against it.
Nothing else is to be said for a new layer. The name of a module in a folder has the folder in it:
`checkpoints/weights`.
"""

from dataclasses import dataclass
from types import FunctionType
from typing import Any

from evaluation.mutation.changes import CHANGES
from evaluation.mutation.trials import TESTS
from evaluation.mutation.wrongs import Change, Replacement, Wrong
from layer_checks.registry import LAYERS, right_version


@dataclass(frozen=True)
class Subject:
    """A module of tests, and what it is held against.

    Attributes:
        tests: The module, as `path_of` takes it.
        wrongs: What is wrong, one thing at a time.
    """

    tests: str
    wrongs: tuple[Wrong, ...]

    @property
    def changes(self) -> list[Change]:
        """Those of the wrong versions that are changed lines."""
        return [wrong for wrong in self.wrongs if isinstance(wrong, Change)]

    @property
    def select(self) -> str:
        """Which tests are run for one or other of the wrong versions, as pytest's `-k` takes it."""
        selects = [wrong.select for wrong in self.wrongs]
        return " or ".join(f"({each})" for each in selects) if all(selects) else ""


def module_of(layer: str) -> str:
    """The module that defines a layer, without the package."""
    return right_version(layer).__module__.partition(".")[2].replace(".", "/")


def changed_module(layer: str, wrong: Any) -> str:
    """The module of what a wrong version changes, without the package."""
    right, own = right_version(layer), module_of(layer)
    if not isinstance(wrong, type) or right not in wrong.__mro__:
        return own
    classes = wrong.__mro__[: wrong.__mro__.index(right)]
    methods = [getattr(right, name, None) for each in classes for name in vars(each)]
    homes = {each.__module__ for each in methods if isinstance(each, FunctionType)}
    found = {home.partition(".")[2].replace(".", "/") for home in homes}
    return own if own in found or len(found) != 1 else found.pop()


def all_subjects() -> dict[str, Subject]:
    """All modules of tests of the layers, by name."""
    paths = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    names = sorted(path.with_name(path.stem.removeprefix("test_")).as_posix() for path in paths)
    return {name: Subject(name, (*replacements(name), *CHANGES.get(name, ()))) for name in names}


def replacements(module: str) -> list[Replacement]:
    """The known wrong versions that change a module."""
    return [
        Replacement(layer.name, version.name)
        for layer in LAYERS.values()
        for version in layer.wrong_versions
        if not version.generic  # the layers' tests need not ask what the probes do
        and changed_module(layer.name, version.layer) == module
    ]


def subjects_named(names: list[str]) -> list[Subject]:
    """The subjects of these names of modules or layers; all that have wrong versions if none.

    Raises:
        ValueError: If there is nothing of a name, or nothing to hold its tests against.
    """
    subjects = {name: each for name, each in all_subjects().items() if each.wrongs}
    modules = dict.fromkeys(module_of(name) if name in LAYERS else name for name in names)
    for module in modules:
        if module not in subjects:
            raise ValueError(
                f"no wrong versions for tests of {module!r}; there are some for "
                f"{', '.join((*subjects, *LAYERS))}"
            )
    return [subjects[module] for module in modules] or list(subjects.values())
