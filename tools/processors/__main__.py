"""`python -m tools.processors`, `make processors`: what differs on other kinds of processor.

The book's cells run, and the tests of layers, checks and training, on each kind of processor that
this one can be (as it is, `own`; without vectors, `none`; `avx2`; `avx512`), with one thread and
with two. Each keeps what has run in a folder of its own, book/_build/processors, so that a second
time only pages run that have changed. What differs is printed by the check of the book and by
pytest. The exit status is 1 if anything differs.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from tools.processors.kinds import KINDS, Kind, environment, why_not

ROOT = Path(__file__).parents[2]
PACKAGES = ("transformer_layers", "layer_checks", "transformer_training")
TESTS = tuple(f"{folder}/{name}" for name in PACKAGES for folder in ("src", "tests"))
WHAT = ("book", "tests")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what was asked for, and prints what differs."""
    options = _parser().parse_args(arguments)
    names: dict[str, Kind] = {kind.name: kind for kind in KINDS}
    differing: list[str] = []
    ran = 0
    for name, threads in product(options.kinds, options.threads):
        where = f"{name}, {threads} thread{'s' if threads > 1 else ''}"
        if reason := why_not(names[name], options.others):
            print(f"== {where}: skipped, {reason}", flush=True)
            continue
        folder = options.output.absolute() / f"{name}-{threads}"
        folder.mkdir(parents=True, exist_ok=True)
        for what in options.only:
            begin = time.monotonic()
            status = subprocess.call(
                [sys.executable, "-m", *command(what, threads, folder, options)],
                cwd=ROOT,
                env=environment(names[name], threads),
            )
            ran += 1
            said = f"ended with status {status}" if status else "nothing differs"
            seconds = time.monotonic() - begin
            print(f"== {where}, {what}: {said}, {seconds:.0f} s", flush=True)
            differing += [f"{where}, {what}"] if status else []
    if differing:
        print(f"== {len(differing)} of {ran} differ: {'; '.join(differing)}")
        print("== CONTRIBUTING.md says what to do, in 'Green on every processor'.")
        return 1
    print(f"== nothing differs in {ran}")
    return 0


def command(what: str, threads: int, folder: Path, options: argparse.Namespace) -> list[str]:
    """What runs the cells or the tests, in processes that together have a thread for each core."""
    beside = str(max(1, (os.cpu_count() or 1) // threads))
    if what == "book":
        book = str(options.book.absolute())
        return ["verified_book", "check", "--jobs", beside, "--builds", str(folder), book]
    pytest = ["pytest", "--quiet", "--numprocesses", beside, "--dist", "loadgroup"]
    return [*pytest, "-o", f"cache_dir={folder / '.pytest_cache'}", *options.tests]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.processors", description=__doc__)
    names = [kind.name for kind in KINDS]
    parser.add_argument("--kinds", nargs="+", choices=names, default=names, help="all unless given")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument(
        "--others", action="store_true", help="but not the kind that this processor is by itself"
    )
    parser.add_argument("--only", nargs="+", choices=WHAT, default=WHAT, help="both unless given")
    parser.add_argument("--book", type=Path, default=ROOT / "book", help="a book, or its pages")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="tests, as pytest takes them")
    parser.add_argument("--output", type=Path, default=ROOT / "book/_build/processors")
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
