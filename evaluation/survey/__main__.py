"""`python -m evaluation.survey`: runs `check` on the layers of public works; writes `results.json`.

It runs in an environment that has the works, which `make survey` sets up. Each layer runs in a
process of its own; one that does not import, or takes too long, is a row that says so.
"""

import argparse
import dataclasses
import datetime
import importlib.metadata
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from evaluation.recorded import new_file, read_results, write_results
from evaluation.survey import works  # noqa: F401, which declares them
from evaluation.survey.definitions import PLACES, SURVEYED, Surveyed
from evaluation.survey.second import derived

RESULTS = Path(__file__).with_name("results.json")
LIMIT = 200  # seconds


def recorded(file: Path = RESULTS) -> dict[str, Any]:
    """What a survey has written."""
    return read_results(file, ("date", "torch", "rows", "second"), "run `make survey`")


def version_of(entry: Surveyed) -> str:
    """The version that is installed, or the commit of a file."""
    if entry.place:
        return entry.place.rpartition("-")[2]
    return importlib.metadata.version(entry.work)


def described(entry: Surveyed) -> dict[str, Any]:
    """What is known of a layer before it is run."""
    row = dataclasses.asdict(entry)
    del row["build"], row["place"]
    for mistakes in ("cited_for", "known_as"):
        row[mistakes] = list(row[mistakes])
    return row


def examined(entry: Surveyed) -> dict[str, Any]:
    """One row: what `check` says of a layer."""
    row = described(entry)
    if entry.place:
        sys.path.insert(0, str(PLACES / entry.place))
    try:
        row["version"] = version_of(entry)
        candidate = entry.build()
    except Exception as error:  # a work can fail in any way
        return {
            **row,
            "version": row.get("version", "?"),
            "error": f"{type(error).__name__}: {error}",
        }
    from layer_checks import check

    begun = time.perf_counter()
    report = check(entry.layer, candidate)
    row["seconds"] = round(time.perf_counter() - begun, 1)
    row["results"] = [
        {
            "name": each.name,
            "kind": each.kind,
            "held": each.held,
            "asked": each.asked,
            "text": each.text,
        }
        for each in report.results
    ]
    row["not_run"] = report.not_run
    row["named"] = None if report.behaves_like is None else report.behaves_like.name
    row["and_named"] = None if report.and_like is None else report.and_like.name
    row["fails_like"] = [version.name for version in report.fails_like]
    return row


def _run(entries: list[Surveyed], pipe: Any) -> None:
    sys.stdout = open(os.devnull, "w")  # what works print
    torch.set_num_threads(1)
    os.environ["TORCHDYNAMO_DISABLE"] = "1"  # nothing is to be compiled
    for entry in entries:
        pipe.send(examined(entry))


def in_a_process(entries: list[Surveyed]) -> Iterator[dict[str, Any]]:
    """The rows of one version of a work, whatever it does to its process."""
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_run, args=(entries, theirs))
    process.start()
    theirs.close()
    for i, entry in enumerate(entries):
        try:
            if ours.poll(LIMIT):
                yield ours.recv()
                continue
            error = f"no result within {LIMIT} s"
        except EOFError:
            error = "the process ended"
        yield {**described(entry), "version": "?", "error": error}
        yield from in_a_process(entries[i + 1 :])
        break
    process.kill()
    process.join()


def line(row: dict[str, Any]) -> str:
    """A row as text."""
    title = f"{row['work']} {row['version']}, {row['path']} as {row['layer']}"
    if "error" in row:
        return f"{title}: {row['error']}"
    failed = [each for each in row["results"] if not each["held"]]
    held = len(row["results"]) - len(failed)
    said = "; ".join(f"{each['kind']}: {each['name']}: {each['text']}" for each in failed)
    total = len(row["results"]) + row["not_run"]
    return f"{title} [{row['reading']}]: {held} of {total} hold. {said}"


def merged(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of layers that are declared today, newer ones first choice."""
    newest = {_key(row): row for row in [*before, *after]}
    declared = [described(entry) for entry in in_order(SURVEYED)]
    return [{**newest[_key(entry)], **entry} for entry in declared if _key(entry) in newest]


def reread(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows as their layers are read today; what was measured stays."""
    entries = {
        (entry.work, entry.layer, entry.path, entry.place.rpartition("-")[2]): described(entry)
        for entry in SURVEYED
    }

    def read(row: dict[str, Any]) -> dict[str, Any]:
        layer = row["work"], row["layer"], row["path"]
        installed = entries.get((*layer, ""), {})
        return {**row, **entries.get((*layer, row["version"]), installed)}

    return [read(row) for row in rows]


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return row["work"], row["layer"], row["path"], row["second"]


def in_order(entries: list[Surveyed]) -> list[Surveyed]:
    """Entries by work, and by version of it."""
    return sorted(entries, key=lambda entry: (entry.work.lower(), entry.place))


def main() -> None:
    """Runs the survey, writes it and prints it."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.survey", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="works by name; not written")
    parser.add_argument("--layer", default="", help="only this layer; not written")
    parser.add_argument("--update", action="store_true", help="write what --only chose, too")
    parser.add_argument(
        "--readings",
        action="store_true",
        help="check nothing: write how layers are read today, and derive the defects of --only",
    )
    parser.add_argument("--output", type=new_file, default=RESULTS)
    options = parser.parse_args()
    if options.readings:
        written = recorded(options.output)
        written["rows"] = reread(written["rows"])
        written["second"] |= derived(options.only) if options.only else {}
        write_results(options.output, written, ensure_ascii=False)
        return
    whole = not (options.only or options.layer)
    before = {} if whole or not options.update else recorded(options.output)
    rows = []
    chosen = [
        entry
        for entry in SURVEYED
        if (not options.only or entry.work in options.only) and options.layer in ("", entry.layer)
    ]
    for _, entries in groupby(in_order(chosen), key=lambda entry: (entry.work, entry.place)):
        for row in in_a_process(list(entries)):
            print(line(row), flush=True)
            rows.append(row)
    if not whole and not options.update:
        return
    second = derived({entry.work for entry in chosen})
    if not whole:
        rows = merged(reread(before["rows"]), rows)
        second = {**before["second"], **second}
    written = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "rows": rows,
        "second": second,
    }
    write_results(options.output, written, ensure_ascii=False)


if __name__ == "__main__":
    main()
