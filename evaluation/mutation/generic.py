"""Holds the tests of modules against generic mutants of them, and prints which survive.

Run as `python -m evaluation.mutation --generic`, with the names of modules or folders
below `src` or below `src/transformer_layers`, which is what is meant if there are none. The exit
status is 1 if a mutant survives that is not in `accepted.py`.
"""

import ast
import random
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from evaluation.mutation.accepted import ACCEPTED, stale
from evaluation.mutation.changes import CHANGES
from evaluation.mutation.mutants import Mutant, mutants_of
from evaluation.mutation.processes import Result, results_of
from evaluation.mutation.subjects import Subject
from evaluation.mutation.tables import FAILED
from evaluation.mutation.trials import TESTS, Trial, path_of
from evaluation.mutation.wrongs import PACKAGE, SOURCE

LEAST_SECONDS = 20.0  # for one trial, or this many times what the tests take on the right package
TIMES = 5.0


@dataclass(frozen=True)
class Against:
    """A module of tests that a module is held against.

    Attributes:
        name: As `path_of` takes it.
        select: Which of them, as pytest's `-k` takes it; all of them if empty.
    """

    name: str
    select: str = ""


def run(names: Sequence[str], sample: int | None = None, seed: int = 0) -> int:
    """Prints which mutants survive.

    Args:
        names: Modules or folders; all of `transformer_layers` if there are none.
        sample: How many mutants are chosen by chance; None for all.
        seed: Of the choice.

    Returns:
        The exit status.

    Raises:
        ValueError: If there is no module of a name, or no module of tests for one.
    """
    begin = time.monotonic()
    modules = modules_named(names)
    problems = stale(each for each in ACCEPTED if each.module in modules)
    mutants = [mutant for module in modules for mutant in mutants_of(module)]
    if sample is not None:
        mutants = random.Random(seed).sample(mutants, min(sample, len(mutants)))
    modules = [module for module in modules if any(each.module == module for each in mutants)]
    tests = {module: held_against(module) for module in modules}
    survived = []
    accepted = 0
    for module in modules:
        sys.stdout.flush()  # a run takes hours
        those = [mutant for mutant in mutants if mutant.module == module]
        left, errors = survivors(those, tests[module])
        problems += errors
        for mutant in left:
            reason = next((each.reason for each in ACCEPTED if each.is_of(mutant)), None)
            accepted += reason is not None
            survived += [mutant] if reason is None else []
            print(shown(mutant, reason))
        names_of_tests = ", ".join(path_of(each.name) for each in tests[module])
        print(
            f"{module}.py: {len(those)} mutants, {len(left)} survive {names_of_tests}\n", flush=True
        )
    print(
        f"{len(mutants)} mutants of {len(modules)} modules: "
        f"{len(mutants) - len(survived) - accepted} noticed, {accepted} accepted, "
        f"{len(survived)} survived, {time.monotonic() - begin:.0f} s"
    )
    for problem in problems:
        print(f"problem: {problem}")
    return 1 if survived or problems else 0


def modules_named(names: Sequence[str]) -> list[str]:
    """The modules below `src` of these names of modules or folders, without `.py`."""
    modules: list[str] = []
    for name in names or [PACKAGE.name]:
        name = name.removeprefix("src/").removesuffix(".py").strip("/")
        for path in (SOURCE / name, PACKAGE / name):
            files = (
                sorted(path.rglob("*.py")) if path.is_dir() else [path.with_name(f"{path.name}.py")]
            )
            found = [
                each.relative_to(SOURCE).with_suffix("").as_posix()
                for each in files
                if each.is_file()
            ]
            if found:
                break
        else:
            raise ValueError(f"there is no module or folder {name!r} below {SOURCE}")
        modules += found
    return list(dict.fromkeys(modules))


def held_against(module: str) -> list[Against]:
    """The modules of tests that a module is held against.

    That of the same name in the same place, and those whose table of changes has some of this
    module; if there are none, those of the modules that import it, or that import these.

    Raises:
        ValueError: If nothing imports it that has tests.
    """
    level, seen = [module], {module}
    while level:
        found = {each.name: each for one in level for each in own_tests(one)}
        if found:
            return list(found.values())
        level = [each for one in level for each in importers_of(one) if each not in seen]
        seen.update(level)
    raise ValueError(f"no tests of {module}.py, or of what imports it")


def own_tests(module: str) -> list[Against]:
    """The tests of a module that are not only tests of what imports it."""
    package, _, rest = module.partition("/")
    name = rest if package == PACKAGE.name else f"../{module}"
    tests = [Against(name)] if (TESTS / path_of(name)).is_file() else []
    for table, changes in CHANGES.items():
        of_this = [each for each in changes if package == PACKAGE.name and each.module == rest]
        if of_this and table != name:
            tests.append(Against(table, Subject(table, tuple(of_this)).select))
    return tests


@cache
def importers_of(module: str) -> list[str]:
    """The modules of a package that import one of its modules."""
    package = module.partition("/")[0]
    dotted = module.removesuffix("/__init__").replace("/", ".")
    importers = []
    for path in sorted((SOURCE / package).rglob("*.py")):
        if path.name != "__init__.py" and dotted in imported(path):
            importers.append(path.relative_to(SOURCE).with_suffix("").as_posix())
    return importers


@cache
def imported(path: Path) -> frozenset[str]:
    """The dotted names of modules, and of what may be one, that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(names)


def survivors(
    mutants: Sequence[Mutant], tests: Iterable[Against]
) -> tuple[list[Mutant], list[str]]:
    """The mutants that all tests pass, and why tests cannot be run on the right package."""
    left, problems = list(mutants), []
    for each in tests:
        if not left:
            break
        seconds, problem = on_the_right_package(each)
        if problem:
            problems.append(problem)
            continue
        trials = [Trial(each.name, mutant, each.select, stop=True) for mutant in left]
        results = results_of(trials, max(LEAST_SECONDS, TIMES * seconds))
        left = [one for one, result in zip(left, results, strict=True) if not notices(result)]
    return left, problems


@cache
def on_the_right_package(tests: Against) -> tuple[float, str]:
    """How long tests take, and why they cannot be held against anything, if so."""
    begin = time.monotonic()
    (right,) = results_of([Trial(tests.name, select=tests.select)])
    failed = [case for case, outcome in right.outcomes.items() if outcome in (*FAILED, "unfit")]
    problem = right.error or ", ".join(failed)
    if problem:
        problem = f"{path_of(tests.name)} does not pass on the package as it is: {problem}"
    return time.monotonic() - begin, problem


def notices(result: Result) -> bool:
    """Whether a test fails, or none can be run."""
    return bool(result.error) or any(
        outcome in (*FAILED, "unfit") for outcome in result.outcomes.values()
    )


def shown(mutant: Mutant, reason: str | None) -> str:
    """What is said of a mutant that survived."""
    head = f"survived: src/{mutant.label}"
    lines = [f"  - {line}" for line in mutant.removed.splitlines()]
    lines += [f"  + {line}" for line in mutant.added.splitlines()]
    return "\n".join([head + (f" (accepted: {reason})" if reason else ""), *lines])
