"""`python -m evaluation.held_out`: which held-out versions `check` catches, and how it names them.

`--output FILE` writes it as JSON. Of the first collection, `before.json` was written so with the
checks as they stood when the versions were collected, `after.json` with those that were completed
without a look at them, `widened.json` with probes that were widened when the names of those missed
were known. `second.json` is of the second collection, `third.json` of the third, `fourth.json` of
the fourth, which nobody who wrote checks had read. Of the sixth and the seventh, `sixth.json` and
`seventh.json` are what checks caught at first sight that had been completed without a look at them,
and `sixth_before.json` and `seventh_before.json` what those before had caught.
"""

import argparse
import datetime
import json
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from evaluation.held_out import (  # noqa: F401, they declare them
    first,
    fourth,
    second,
    seventh,
    sixth,
    third,
)
from evaluation.held_out.definitions import COLLECTIONS, VERSIONS, HeldOut
from layer_checks import check


def examined(version: HeldOut) -> dict[str, Any]:
    """What `check` says about a version."""
    report = check(version.layer, version.candidate)
    alike = report.behaves_like
    name = None if alike is None else alike.name
    return {
        "layer": version.layer,
        "version": version.name,
        "what": version.what,
        "source": version.source,
        "caught": not report.results or bool(report.failed),
        "failed": [result.name for result in report.failed],
        "measured": [result.text for result in report.failed],
        "named": name,
        "fits": alike is not None and version.fits(f"{alike.name} {alike.advice}"),
        "likened": [each.name for each in report.fails_like],
        "likened fittingly": any(
            version.fits(f"{each.name} {each.advice}") for each in report.fails_like
        ),
    }


def totals(rows: list[dict[str, Any]]) -> dict[str, int]:
    """How many there are, and how many of them were caught, named, and named fittingly.

    Where rows tell it, also how many were not named, but said to fail the same checks as a known
    version, and as a fitting one.
    """
    found = {
        "versions": len(rows),
        "caught": sum(row["caught"] for row in rows),
        "named": sum(row["named"] is not None for row in rows),
        "named fittingly": sum(row["fits"] for row in rows),
    }
    if all("likened" in row for row in rows):
        others = [row for row in rows if row["named"] is None and row["likened"]]
        found["likened"] = len(others)
        found["likened fittingly"] = sum(row["likened fittingly"] for row in others)
    return found


def line(row: dict[str, Any]) -> str:
    """A row in words."""
    verdict = ", ".join(row["failed"]) if row["caught"] else "NOT CAUGHT"
    named = f"; named {row['named']!r}" if row["named"] else ""
    fits = " (does not fit)" if row["named"] and not row["fits"] else ""
    return f"{row['layer']}, {row['version']}: {verdict}{named}{fits}"


def main() -> None:
    """Runs them, prints a line for each, and the totals of each collection."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.held_out", description=__doc__)
    parser.add_argument("--layer", help="only the versions of this layer")
    parser.add_argument("--collection", choices=COLLECTIONS, help="only this one; else each apart")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--checks", default="", help="which checks these are, for the file")
    options = parser.parse_args()
    wanted = COLLECTIONS if options.collection is None else [options.collection]
    if options.output is not None and len(wanted) > 1:
        parser.error("--output writes one collection: say which, with --collection")
    for collection in wanted:
        chosen = [
            each
            for each in VERSIONS.values()
            if each.collection == collection and options.layer in (None, each.layer)
        ]
        rows = [examined(each) for each in tqdm(chosen, leave=False)]
        for row in rows:
            print(line(row))
        found = totals(rows)
        counts = ", ".join(f"{name}: {count}" for name, count in found.items())
        print(f"{collection} collection: {counts}")
        if options.output is not None:
            date = datetime.datetime.now(datetime.UTC).date().isoformat()
            about = {"date": date, "checks": options.checks, "torch": torch.__version__}
            written = {**about, "totals": found, "versions": rows}
            options.output.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
