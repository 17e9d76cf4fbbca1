"""`python -m tools.processors`, `make processors`: what differs on other kinds of processor.

The book's cells run, and the tests of layers, checks and training, on each kind of processor that
this one can be (as it is, `own`; without vectors, `none`; `avx2`; `avx512`), with one thread and
with two. Each keeps what has run in a folder of its own, book/_build/processors, so that a second
time only pages run that have changed. What differs is printed: of a page the line, what it expects
and what was found; of a test its name and its reason. The exit status is 1 if anything differs.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from tools.processors.kinds import KINDS, Kind, why_not
from tools.processors.runs import ROOT, TESTS, Surroundings, differing_cells, failing_tests

WHAT = ("book", "tests")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what was asked for, and prints what differs."""
    options = _parser().parse_args(arguments)
    names: dict[str, Kind] = {kind.name: kind for kind in KINDS}
    differing: list[str] = []
    ran = 0
    for name, threads in product(dict.fromkeys(options.kinds), dict.fromkeys(options.threads)):
        folder = options.output.absolute() / f"{name}-{threads}"
        where = Surroundings(names[name], threads, folder)
        if reason := why_not(where.kind, options.others):
            print(f"== {where.name}: skipped, {reason}", flush=True)
            continue
        for what in options.only:
            begin = time.monotonic()
            found = (
                differing_cells(where, options.book)
                if what == "book"
                else failing_tests(where, options.tests)
            )
            ran += 1
            for text in found:
                print(text)
            said = f"{len(found)} differ" if found else "nothing differs"
            seconds = time.monotonic() - begin
            print(f"== {where.name}, {what}: {said}, {seconds:.0f} s", flush=True)
            differing += [f"{where.name}, {what}"] if found else []
    if differing:
        print(f"== {len(differing)} of {ran} differ: {'; '.join(differing)}")
        print("== CONTRIBUTING.md says what to do, in 'Green on every processor'.")
        return 1
    print(f"== nothing differs in {ran}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.processors", description=__doc__)
    names = [kind.name for kind in KINDS]
    parser.add_argument("--kinds", nargs="+", choices=names, default=names, help="all unless given")
    parser.add_argument(
        "--threads", nargs="+", type=_count, default=[1, 2], help="1 and 2 unless given"
    )
    parser.add_argument(
        "--others", action="store_true", help="but not the kind that this processor is by itself"
    )
    parser.add_argument("--only", nargs="+", choices=WHAT, default=WHAT, help="both unless given")
    parser.add_argument("--book", type=Path, default=ROOT / "book", help="a book, or its pages")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="tests, as pytest takes them")
    parser.add_argument("--output", type=Path, default=ROOT / "book/_build/processors")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of threads is at least 1, got {text!r}")
    return int(text)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
