"""The command line: `python -m evaluation.learning_curves`, `make curves`."""

import argparse
from contextlib import suppress

import torch
from tqdm import tqdm

from evaluation.learning_curves.measure import Row, again, measure
from evaluation.learning_curves.plan import PLAN, SEEDS
from evaluation.learning_curves.record import RESULTS, SOURCES, recorded
from evaluation.learning_curves.tables import table
from evaluation.recorded import at_least_one, new_file, write_results
from evaluation.renewed import renew
from evaluation.sources import facts


def main() -> None:
    """Trains the models of the plan that the record lacks, and prints what all have learned."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.learning_curves", description=__doc__
    )
    parser.add_argument("--only", default="", help="the settings whose name has this text")
    parser.add_argument("--seeds", type=at_least_one, default=SEEDS, help="models of each")
    parser.add_argument("--output", type=new_file, default=RESULTS)
    parser.add_argument(
        "--renew",
        action="store_true",
        help="train one model without each part, and renew a record that says the same",
    )
    options = parser.parse_args()
    plan = [cell for cell in PLAN if options.only in cell.setting]
    if not plan:
        names = "; ".join(dict.fromkeys(cell.setting for cell in PLAN))
        parser.error(f"--only: the settings are {names}")
    torch.set_num_threads(1)
    if options.renew:
        renew(options.output, SOURCES, "make curves", again)
        return
    begun = facts(SOURCES)  # before hours in which a source may change
    there: list[Row] = []
    with suppress(SystemExit):  # none yet, or of other sources
        there = recorded(options.output)["rows"]
    total = len(plan) * options.seeds
    rows: list[Row] = []
    for row in tqdm(measure(plan, options.seeds, there), total=total, unit="models", disable=None):
        rows.append(row)
        made = [*rows, *(each for each in there if each not in rows)]
        write_results(options.output, {**begun, "seeds": options.seeds, "rows": made})
    print(table(rows))


if __name__ == "__main__":
    main()
