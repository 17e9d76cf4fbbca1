"""One trial: the tests of a module run in a process of their own while something is wrong."""

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import hypothesis
import pytest

from evaluation.mutation.wrongs import (
    ROOT,
    SOURCE,
    Replacement,
    Wrong,
    put_in_front,
    replace,
)

TESTS = ROOT / "tests" / "transformer_layers"

# The wrong version cannot be called the way the test does, which says nothing about the test.
UNFIT = re.compile(
    r"has no attribute|unexpected keyword argument|positional argument|is not defined"
)


@dataclass(frozen=True)
class Trial:
    """What to run, and what is wrong meanwhile.

    Attributes:
        tests: The module of tests, as `path_of` takes it.
        wrong: What is wrong; None for the package as it is.
        select: Which tests to run, as pytest's `-k` takes it; all of them if empty.
        stop: Whether the first test that fails is the last that is run.
    """

    tests: str
    wrong: Wrong | None = None
    select: str = ""
    stop: bool = False


def run(trial: Trial, folder: Path) -> None:
    """Runs the tests, and writes a line of JSON to `records` for each thing that happens to one.

    To be called in a process that ends with it: the package is imported anew, and what is printed
    goes to `log`. Everything that is written is written to the folder.
    """
    os.setsid()  # whoever ends this process for its time can end those that it started
    with (folder / "log").open("w") as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
    for name in list(sys.modules):
        if (SOURCE / name.split(".")[0]).is_dir():
            del sys.modules[name]
    os.environ.pop("PYTEST_ADDOPTS", None)  # options of plugins that a trial has not loaded
    if trial.wrong is not None and not isinstance(trial.wrong, Replacement):
        put_in_front(trial.wrong, folder)
    options = ["--quiet", "--tb=native", "--capture=no", "-p", "no:cacheprovider"]
    options += ["--disable-plugin-autoload", "--basetemp", str(folder / "tmp")]
    options += ["--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), "-k", trial.select]
    options += ["--exitfirst"] if trial.stop else []
    path = TESTS / path_of(trial.tests)
    with (folder / "records").open("w", buffering=1) as file:
        recorder = Recorder(file, trial.wrong)
        recorder.write(status=int(pytest.main([*options, str(path)], plugins=[recorder])))


def path_of(tests: str) -> str:
    """The path of a module of tests below their folder.

    Args:
        tests: The module without `test_`, as `masks`; one in a folder as `checkpoints/weights`, one
            of another package as `../transformer_training/agreement`.
    """
    folder, slash, module = tests.rpartition("/")
    return f"{folder}{slash}test_{module}.py"


class Recorder:
    """A plugin of pytest that puts the wrong version in place and notes what tests make of it."""

    def __init__(self, file: TextIO, wrong: Wrong | None) -> None:
        self.file = file
        self.wrong = wrong

    def write(self, **record: Any) -> None:
        self.file.write(json.dumps(record) + "\n")

    def pytest_sessionstart(self) -> None:
        # The conftest is loaded: annotations will be checked. No module of tests is imported yet.
        hypothesis.settings.register_profile(
            "against wrong versions",
            parent=hypothesis.settings(),
            max_examples=25,
            phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        )
        hypothesis.settings.load_profile("against wrong versions")
        if isinstance(self.wrong, Replacement):
            replace(self.wrong)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        self.write(case=case_of(item.nodeid), outcome="not run")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.write(case=case_of(nodeid), outcome="failed")  # unless it comes to an end

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[None]:
        report = yield
        if report.when == "call" or not report.passed:
            outcome = kind_of(call.excinfo.value) if report.failed else report.outcome
            self.write(case=case_of(item.nodeid), outcome=outcome)
        return report


def kind_of(error: BaseException) -> str:
    """How a test failed: `unfit` if the wrong version lacks an argument, an attribute or a name."""
    if isinstance(error, AttributeError | TypeError | NameError) and UNFIT.search(str(error)):
        return "unfit"
    nothing_raised = isinstance(error, pytest.fail.Exception) and "DID NOT RAISE" in str(error)
    return "not raised" if nothing_raised else "failed"


def case_of(nodeid: str) -> str:
    """The name of a test, with its parameters and without its file."""
    return nodeid.split("::", maxsplit=1)[1]
