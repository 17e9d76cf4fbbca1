"""The command line: `python -m evaluation.benchmarks.output_checkers`."""

import argparse

from evaluation.benchmarks.output_checkers.report import summary
from evaluation.benchmarks.output_checkers.results import WRITTEN, collected
from evaluation.benchmarks.output_checkers.tools import TOOLS
from evaluation.recorded import new_file, read_results, write_results


def main() -> None:
    """Runs the tools, writes the results and prints how many mistakes each caught."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.benchmarks.output_checkers", description=__doc__
    )
    names = [tool.name for tool in TOOLS]
    parser.add_argument(
        "--only", action="append", choices=names, help="run this tool; the others' results stay"
    )
    parser.add_argument("--output", type=new_file, default=WRITTEN)
    options = parser.parse_args()
    keys = ("mistakes", "noises", "tools")
    made_by = "run it without --only"
    before = read_results(options.output, keys, made_by) if options.only else None
    results = collected(TOOLS, options.only, before)
    write_results(options.output, results, ensure_ascii=False)
    print(summary(results))


if __name__ == "__main__":
    main()
