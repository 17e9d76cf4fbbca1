"""Holds the tests of the layers against wrong versions, and prints which test fails on which.

Run from the repository's root as `python -m evaluation.mutation`, or with the names of
modules or layers. The exit status is 1 if a test has been seen to fail on none, or if no test
notices one. With `--generic`, the tests are held against generic mutants of the modules instead:
see `generic.py`.
"""

import argparse
import gc
import importlib
import sys
import time
from collections.abc import Sequence
from itertools import chain

import torch

from evaluation.mutation.processes import results_of
from evaluation.mutation.subjects import Subject, all_subjects, subjects_named
from evaluation.mutation.tables import Table
from evaluation.mutation.trials import Trial, path_of
from evaluation.mutation.wrongs import Replacement, problems_of

# What the tests import and is slow to import: here once, instead of in every process.
SLOW = ("beartype", "torch._dynamo", "torch.export", "transformers.models.gpt2.modeling_gpt2")

LEGEND = """\
x  fails on the wrong version of this number
.  passes
-  the wrong version lacks an argument or an attribute that the test needs: does not count
"""


def main(arguments: Sequence[str]) -> int:
    """Prints a table for each module of tests, and what is wrong with it.

    Args:
        arguments: Names of modules or of layers, all of them if there are none; and options.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(prog="python -m evaluation.mutation")
    parser.add_argument("names", nargs="*", help="modules or layers; all of them if none is named")
    parser.add_argument("--generic", action="store_true", help="generic mutants of the modules")
    parser.add_argument("--sample", type=int, metavar="N", help="of them, N by chance")
    parser.add_argument("--seed", type=int, metavar="S", default=0, help="of the choice")
    options = parser.parse_args(arguments)
    try:
        if options.generic:
            from evaluation.mutation import generic  # imports mutmut, which takes a second

            prepare()
            return generic.run(options.names, options.sample, options.seed)
        return tables(options.names)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


def tables(names: Sequence[str]) -> int:
    """Prints the tables of the modules or layers that are named, and their problems."""
    subjects = subjects_named(list(names))
    if broken := problems_of(chain(*(subject.changes for subject in subjects))):
        raise ValueError("\n".join(broken))
    begin = time.monotonic()
    prepare()
    print(LEGEND)
    found = []
    for subject in subjects:
        found.append(table_of(subject))
        print(f"{found[-1]}\n", flush=True)
    print(summary(found, time.monotonic() - begin))
    problems = [problem for table in found for problem in table.problems()]
    for problem in problems:
        print(f"problem: {problem}")
    if not names:
        for name in (name for name, subject in all_subjects().items() if not subject.wrongs):
            print(f"not held against anything: {path_of(name)}")
    return 1 if problems else 0


def prepare() -> None:
    """Imports what is slow to import, and keeps it out of the collector's way."""
    torch.set_num_threads(1)
    for module in SLOW:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()


def table_of(subject: Subject) -> Table:
    """Runs a subject's tests on the package as it is, and on each of the wrong versions."""
    trials = [Trial(subject.tests, select=subject.select)]
    trials += [Trial(subject.tests, wrong, wrong.select) for wrong in subject.wrongs]
    right, *results = results_of(trials)
    return Table(subject, right, results)


def summary(tables: Sequence[Table], seconds: float) -> str:
    """How much was run."""
    tests = sum(len(table.tests) for table in tables)
    wrongs = [wrong for table in tables for wrong in table.subject.wrongs]
    layers = [wrong.layer for wrong in wrongs if isinstance(wrong, Replacement)]
    return (
        f"{tests} tests, {len(layers)} wrong versions of {len(set(layers))} layers, "
        f"{len(wrongs) - len(layers)} changed lines, {seconds:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
