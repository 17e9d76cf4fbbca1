"""The command line: `python -m benchmarks.output_checkers`."""

import argparse
import json
from pathlib import Path

from benchmarks.output_checkers.report import summary
from benchmarks.output_checkers.results import WRITTEN, collected
from benchmarks.output_checkers.tools import TOOLS


def main() -> None:
    """Runs the tools, writes the results and prints how many mistakes each caught."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.output_checkers", description=__doc__
    )
    names = [tool.name for tool in TOOLS]
    parser.add_argument(
        "--only", action="append", choices=names, help="run this tool; the others' results stay"
    )
    parser.add_argument("--output", type=Path, default=WRITTEN)
    options = parser.parse_args()
    before = json.loads(options.output.read_text()) if options.only else None
    results = collected(TOOLS, options.only, before)
    options.output.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    print(summary(results))


if __name__ == "__main__":
    main()
