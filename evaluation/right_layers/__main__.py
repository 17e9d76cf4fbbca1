"""`python -m evaluation.right_layers`: what `check` says of right layers of torch and transformers.

A line says it of each. The exit status is 1 if a law is called failing: that is a defect of a
check, which is to be mended from the definition of the law, and not for the one layer.
"""

import argparse
import sys

from evaluation.right_layers.layers import RIGHT
from layer_checks import Report, check


def said(report: Report) -> tuple[bool, str]:
    """Whether a report calls a law failing, and what it says in a line."""
    failed = [each for each in report.failed if each.word == "failed"]
    lines = "; ".join(f"{each.kind} {each.name}: {each.text}" for each in failed)
    if report.not_run or not report.judged:
        return False, f"could not be judged: {lines}"
    if any(each.kind == "law" for each in failed):
        return True, f"LAW FAILING: {lines}"
    return False, f"law holds; {lines}".removesuffix("; ")


def main() -> int:
    """Checks them, and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.right_layers", description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="those with this in their name")
    options = parser.parse_args()
    wrong = 0
    for name, (layer, build) in RIGHT.items():
        if options.only in f"{layer}, {name}":
            is_wrong, text = said(check(layer, build()))
            print(f"{layer}, {name}: {text}", flush=True)
            wrong += is_wrong
    print(f"{wrong or 'no'} right layers are called wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
