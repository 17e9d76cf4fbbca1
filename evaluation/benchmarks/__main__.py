"""The command line: `python -m evaluation.benchmarks`."""

import argparse
import dataclasses
import json
from pathlib import Path

import torch

from evaluation.benchmarks.measure import FULL, QUICK, measure, measure_profile
from evaluation.benchmarks.report import profile_lines, table
from evaluation.recorded import at_least_one, new_file, write_results


def main() -> None:
    """Measures, writes the results and prints them."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tiny model, to try the code")
    parser.add_argument(
        "--profile",
        action="store_true",
        help="measure where the time goes, and nothing else; it takes the place of what the output "
        "has of it",
    )
    parser.add_argument("--rounds", type=at_least_one, help="how often each is timed")
    parser.add_argument("--threads", type=at_least_one, default=2)
    parser.add_argument("--output", type=new_file, default=Path(__file__).with_name("results.json"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    plan = QUICK if options.quick else FULL
    if options.rounds is not None:
        plan = dataclasses.replace(plan, rounds=options.rounds)
    if options.profile:
        results = {**json.loads(options.output.read_text()), "profile": measure_profile(plan)}
        write_results(options.output, results)
        print("\n".join(profile_lines(results["profile"])))
        return
    results = measure(plan)
    write_results(options.output, results)
    print(table(results))


if __name__ == "__main__":
    main()
