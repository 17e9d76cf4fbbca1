"""The command line: `python -m evaluation.experiments`, `make experiments`."""

import argparse
from pathlib import Path

import torch
from tqdm import tqdm

from evaluation.experiments.record import RESULTS, measured, names, renewed
from evaluation.recorded import write_results


def main() -> None:
    """Runs experiments, and records what they measure."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.experiments", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"all if none: {', '.join(names())}"
    )
    parser.add_argument(
        "--renew",
        action="store_true",
        help="run the first seed of each, and renew a record that says the same",
    )
    parser.add_argument(
        "--against",
        type=Path,
        help="a checkout of the commit that made the records: each is renewed where its first seed "
        "gives the same there and here",
    )
    options = parser.parse_args()
    if options.against and not options.renew:
        parser.error("--against goes with --renew")
    if unknown := set(options.names) - set(names()):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    RESULTS.mkdir(exist_ok=True)
    torch.set_num_threads(1)  # sums in another order would be other sums
    for name in tqdm(options.names or names(), unit="experiments", disable=None):
        if options.renew:
            renewed(name, RESULTS, options.against)
        else:
            write_results(RESULTS / f"{name}.json", measured(name))


if __name__ == "__main__":
    main()
