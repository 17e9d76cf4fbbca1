"""The command line: `python -m evaluation.ablations`, `make ablations`."""

import argparse

import torch

from evaluation.ablations.measure import measure
from evaluation.ablations.plan import PLAN, SEEDS
from evaluation.ablations.record import RESULTS, SOURCES
from evaluation.ablations.tables import table
from evaluation.recorded import at_least_one, new_file, write_results
from evaluation.renewed import renew
from evaluation.sources import facts


def main() -> None:
    """Trains and asks the models, writes the results and prints them."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.ablations", description=__doc__)
    parser.add_argument("--only", help="the settings whose name has this text, and print alone")
    parser.add_argument("--seeds", type=at_least_one, default=SEEDS, help="models of each")
    parser.add_argument("--output", type=new_file, default=RESULTS)
    parser.add_argument(
        "--renew",
        action="store_true",
        help="train the first setting's first seed, and renew a record that says the same",
    )
    options = parser.parse_args()
    plan = [setting for setting in PLAN if options.only is None or options.only in setting.name]
    if not plan:
        parser.error(f"--only: the settings are {'; '.join(each.name for each in PLAN)}")
    torch.set_num_threads(1)
    if options.renew:
        renew(
            options.output,
            SOURCES,
            "make ablations",
            lambda record: (measure(PLAN[:1], 1), record["rows"]),
        )
        return
    begun = facts(SOURCES)  # before hours in which a source may change
    rows = measure(plan, options.seeds)
    if options.only is None:
        write_results(options.output, {**begun, "seeds": options.seeds, "rows": rows})
    print(table(rows))


if __name__ == "__main__":
    main()
