"""`python -m evaluation.right_layers`: what `check` says of layers that are right.

A line says the verdict of each; the totals count the laws that are called failing and hold, which
must be none. `--only NAME` takes the layers whose name, work or layer has it in it. `--output FILE`
writes everything as JSON. Those of public packages that are not installed are not here; the
environment of `make survey` has them. Each package runs in a process of its own.
"""

import argparse
import datetime
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import torch

from evaluation.recorded import new_file
from evaluation.right_layers import own, public  # noqa: F401, they declare them
from evaluation.right_layers.definitions import RIGHT, RightLayer

LIMIT = 400  # seconds for one layer
KINDS = ("contract", "names", "start")  # of lines beside the law


def examined(entry: RightLayer) -> dict[str, Any]:
    """One row: what `check` says of a layer."""
    row = described(entry)
    try:
        candidate = entry.build()
    except (ImportError, OSError) as error:
        return {**row, "verdict": "not here", "text": f"{type(error).__name__}: {error}"}
    except Exception as error:
        return {**row, "verdict": "crashed", "text": f"{type(error).__name__}: {error}"}
    from layer_checks import check

    begun = time.perf_counter()
    try:
        report = check(entry.layer, candidate)
    except Exception as error:
        row |= {"verdict": "crashed", "text": f"{type(error).__name__}: {error}"}
    else:
        row |= judged(report)
    return {**row, "seconds": round(time.perf_counter() - begun, 1)}


def described(entry: RightLayer) -> dict[str, Any]:
    """What is known of a layer before it is run."""
    return {
        "name": entry.name,
        "layer": entry.layer,
        "work": entry.work,
        "style": entry.style,
        "laws": [],
        "lines": [],
    }


def judged(report: Any) -> dict[str, Any]:
    """The verdict of a report, and its lines that failed."""
    failed = [
        {"name": each.name, "kind": each.kind, "text": each.text}
        for each in report.failed
        if each.word == "failed"  # a check of what the layer does not have is not asked
    ]
    laws = [each for each in failed if each["kind"] == "law"]
    lines = [each for each in failed if each["kind"] != "law"]
    found = {
        "laws": laws,
        "lines": lines,
        "headline": report.headline,
        "named": None if report.behaves_like is None else report.behaves_like.name,
        "notes": list(report.notes),
        "matching": str(report.matching),
    }
    if report.not_run or "could not be judged" in report.headline:
        said = "; ".join(f"{each['name']}: {each['text']}" for each in failed)
        return {**found, "laws": [], "lines": [], "verdict": "could not be judged", "text": said}
    verdict = "false law" if laws else "contract" if lines else "clean"
    return {**found, "verdict": verdict, "text": ""}


def totals(rows: list[dict[str, Any]]) -> dict[str, int]:
    """How many have each verdict, and how many lines beside the laws fail in all."""
    lines = [each for row in rows for each in row["lines"]]
    return {
        "layers": len(rows),
        "false laws": _count(rows, "false law"),
        "could not be judged": _count(rows, "could not be judged"),
        "crashed": _count(rows, "crashed"),
        **{f"{kind} lines": sum(each["kind"] == kind for each in lines) for kind in KINDS},
        "names or contract only": _count(rows, "contract"),
        "clean": _count(rows, "clean"),
        "not here": _count(rows, "not here"),
    }


def _count(rows: list[dict[str, Any]], verdict: str) -> int:
    return sum(row["verdict"] == verdict for row in rows)


def line(row: dict[str, Any]) -> str:
    """A row in words."""
    title = f"{row['layer']}, {row['name']}"
    verdict = row["verdict"]
    if verdict == "false law":
        return f"{title}: LAW FAILING: {_said(row['laws'])}"
    if verdict == "contract":
        return f"{title}: law holds; {_said(row['lines'])}"
    return f"{title}: {verdict}" + (f": {row['text']}" if row["text"] else "")


def _said(results: list[dict[str, str]]) -> str:
    return "; ".join(f"{each['kind']} {each['name']}: {each['text']}" for each in results)


def _run(entries: list[RightLayer], pipe: Any) -> None:
    sys.stdout = sys.stderr = open(os.devnull, "w")  # what packages print
    torch.set_num_threads(1)
    for entry in entries:
        pipe.send(examined(entry))


def in_a_process(entries: list[RightLayer]) -> Iterator[dict[str, Any]]:
    """The rows of one package, whatever it does to its process."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_run, args=(entries, theirs))
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
        yield {**described(entry), "verdict": "crashed", "text": error}
        yield from in_a_process(entries[i + 1 :])
        break
    process.kill()
    process.join()


def chosen(only: str) -> list[RightLayer]:
    """Those whose name, work or layer is meant, a package after the other."""
    found = [
        entry
        for entry in RIGHT.values()
        if only.lower() in entry.name.lower() or only in (entry.layer, entry.work)
    ]
    return sorted(found, key=lambda entry: entry.work)


def main() -> None:
    """Runs them, prints a line for each, and the totals."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.right_layers", description=__doc__)
    parser.add_argument("--only", default="", metavar="NAME", help="a name, a package or a layer")
    parser.add_argument("--output", type=new_file, metavar="FILE")
    options = parser.parse_args()
    rows = []
    for _, entries in groupby(chosen(options.only), key=lambda entry: entry.work):
        for row in in_a_process(list(entries)):
            print(line(row), flush=True)
            rows.append(row)
    found = totals(rows)
    print(", ".join(f"{name}: {count}" for name, count in found.items()))
    if options.output is not None:
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        written = {"date": date, "torch": torch.__version__, "totals": found, "rows": rows}
        options.output.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
