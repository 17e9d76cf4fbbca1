"""The command line of the checks.

`python -m layer_checks LayerNorm mypackage.norms:MyNorm` checks a layer of yours: the exit status
is 0 if it keeps the law, 1 if not, 2 if nothing could be checked. `python -m layer_checks`, or with
names of layers alone, prints which check catches which known wrong version.
"""

import argparse
import json
import sys
from collections.abc import Sequence

from layer_checks.detection import command as detection_command
from layer_checks.diagnosis import command

_DAY = 86_400


def main(arguments: Sequence[str]) -> int:
    """Runs what the arguments ask for.

    Args:
        arguments: What stands after the command's name.

    Returns:
        The exit status.
    """
    options = _parser().parse_args(arguments)
    if not any(":" in word for word in options.words):
        return detection_command.main(options.words)
    if len(options.words) != 2 or ":" in options.words[0]:
        print("give one layer, and one place such as mypackage.norms:MyNorm", file=sys.stderr)
        return 2
    try:
        names = command.names_of(options.names)
        layer_name, place = options.words
        outcome = command.in_a_process(layer_name, place, options.seed, names, options.timeout)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if "error" in outcome:
        print(outcome["error"], file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(outcome, ensure_ascii=False, indent=2))
    else:
        command.print_in_colours(outcome["all" if options.all else "text"])
    return 0 if outcome["holds"] else 2 if outcome["not_judged"] else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m layer_checks", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="LAYER [PLACE]", help="names of layers, or one")
    parser.add_argument(
        "--names",
        action="append",
        default=[],
        metavar="OURS=THEIRS",
        help="a weight's name in the book, and in your layer; may be repeated",
    )
    parser.add_argument("--all", action="store_true", help="print the checks that hold, too")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--seed", type=_seed, default=0, help="of the random weights and inputs")
    parser.add_argument("--timeout", type=_seconds, default=120.0, help="120 unless given")
    return parser


def _seed(text: str) -> int:
    seed = int(text)
    if not 0 <= seed < 1 << 63:  # torch's end at 64 bits, and what is drawn next has a later one
        raise argparse.ArgumentTypeError(f"must be at least 0 and below 2**63, got {text}")
    return seed


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= _DAY:  # NaN is neither
        raise argparse.ArgumentTypeError(f"must be above 0 and at most {_DAY} seconds, got {text}")
    return seconds


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
