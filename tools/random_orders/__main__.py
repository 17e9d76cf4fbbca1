"""`python -m tools.random_orders`, `make test-hard`: all tests, in orders by chance, under load.

The tests run ten times, each time in another order, with other draws and another order of sets,
beside two processes that keep the machine busy. The exit status is 1 if any run failed. The last
lines then name the seeds of those that did: each can be run again by `--runs 1 --seed SEED`.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

# It ends with whoever holds the other end of its input, also where that one is killed.
BUSY = """\
import select, sys
while not select.select([sys.stdin], [], [], 0)[0]:
    sum(range(100_000))
"""


@contextmanager
def busy() -> Iterator[int]:
    """A process that computes as long as the context lasts; gives its id."""
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        yield process.pid  # leaving it closes the input, and waits


def run(seed: int, arguments: Sequence[str]) -> int:
    """Runs the tests with one seed, and gives pytest's exit status."""
    command = [sys.executable, "-m", "pytest", "--quiet", "--randomly-seed", str(seed), *arguments]
    return subprocess.call(command, env={**os.environ, "PYTHONHASHSEED": str(seed)})


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the tests as often as is asked, and prints which seeds failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.random_orders", description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="how often; 10 unless given")
    parser.add_argument("--seed", type=int, help="of the first run, below 2**31; by chance")
    parser.add_argument("--busy", type=int, default=2, help="processes beside it; 2 unless given")
    asked, more = parser.parse_known_args(arguments)
    if asked.runs < 1:
        parser.error(f"--runs must be at least 1, got {asked.runs}")
    first = random.SystemRandom().randrange(2**31) if asked.seed is None else asked.seed
    if not 0 <= first < 2**31:
        parser.error(f"--seed must be in [0, 2**31), got {first}")
    seeds, failed = range(first, first + asked.runs), []
    print(f"== {asked.runs} runs, seeds {seeds[0]} to {seeds[-1]}", flush=True)
    with ExitStack() as beside:
        for _ in range(asked.busy):
            beside.enter_context(busy())
        for number, seed in enumerate(seeds, start=1):
            begin = time.monotonic()
            status = run(seed, more)
            if status:
                failed.append(seed)
            said = f"failed with status {status}" if status else "passed"
            seconds = time.monotonic() - begin
            print(
                f"== run {number} of {asked.runs}, seed {seed}: {said}, {seconds:.0f} s", flush=True
            )
    if failed:
        print(f"== {len(failed)} of {asked.runs} runs failed, with the seeds {failed}")
        again = ["--runs", "1", "--seed", str(failed[0]), *more]
        print(f"== again: python -m tools.random_orders {' '.join(again)}")
        return 1
    print(f"== {asked.runs} runs passed")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
