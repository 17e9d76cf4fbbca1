"""A check from the command line: the layer is imported and run in a process of its own."""

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from layer_checks.diagnosis.report import Report, check

_GRACE = 30.0  # seconds for imports, and for an end by itself
_COLOURS = {"held": "32", "failed": "31", "unasked": "33"}


def names_of(pairs: Iterable[str]) -> dict[str, str]:
    """What `--names` gives, by the book's names.

    Raises:
        ValueError: If one is not of the form `ours=theirs`.
    """
    found = {}
    for pair in pairs:
        ours, equals, theirs = pair.partition("=")
        if not (ours and equals and theirs):
            raise ValueError(f"--names takes ours=theirs, got {pair!r}")
        found[ours] = theirs
    return found


def candidate_at(place: str) -> Any:
    """What stands at `mypackage.norms:MyNorm`; the working directory counts as a place of modules.

    Raises:
        ValueError: If there is no such module, or nothing of that name in it.
    """
    module_name, _, path = place.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
        for name in path.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"cannot find {place}: {error}") from error
    return found


def in_a_process(
    layer_name: str, place: str, seed: int, names: Mapping[str, str], timeout: float
) -> dict[str, Any]:
    """Checks what stands at a place, in a process that ends when the time is over.

    Returns:
        The report as `as_dict` has it, or what went wrong, under the key `error`.
    """
    asked = {"layer": layer_name, "place": place, "seed": seed, "names": dict(names)}
    with TemporaryDirectory() as folder:
        answer = Path(folder, "answer.json")
        command = [sys.executable, "-m", "layer_checks.diagnosis.command", str(answer)]
        try:
            process = subprocess.run(
                command,
                input=json.dumps(asked | {"timeout": timeout}),
                text=True,
                stdout=subprocess.DEVNULL,
                timeout=timeout + _GRACE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {
                "error": f"{place}: no answer within {timeout:g} s, and it could not be stopped"
            }
        if not answer.exists():
            return {"error": f"{place}: its process ended with status {process.returncode}"}
        return json.loads(answer.read_text(encoding="utf-8"))


def as_dict(report: Report) -> dict[str, Any]:
    """A report as JSON has it."""
    return {
        "layer": report.layer_name,
        "holds": bool(report),
        "not_judged": not report.judged
        or (report.not_run > 0 and not any(result.held for result in report.law)),
        "headline": report.headline,
        "results": [
            {
                "name": result.name,
                "kind": result.kind,
                "result": result.word,
                "law": result.law,
                "text": result.text,
                "where": result.where,
                "example": result.example,
            }
            for result in report.results
        ],
        "not_run": report.not_run,
        "weights": report.matching,
        "names": report.names_line,
        "adapter": report.adapter_lines,
        "part": report.part,
        "notes": list(report.notes),
        "behaves_like": None if report.behaves_like is None else report.behaves_like.name,
        "and_like": None if report.and_like is None else report.and_like.name,
        "fails_like": [version.name for version in report.fails_like],
        "text": repr(report).replace("print(report.all) shows", "--all shows"),
        "all": report.all,
    }


def print_in_colours(text: str) -> None:
    """Prints a report, coloured where a person reads it and `NO_COLOR` is not set."""
    plain = "NO_COLOR" in os.environ or not sys.stdout.isatty()
    print(text if plain and "FORCE_COLOR" not in os.environ else coloured(text))


def coloured(text: str) -> str:
    """The words that begin the lines of a report, in colours."""
    first, *rest = text.split("\n")
    lines = [f"\x1b[1m{first}\x1b[0m"]
    for line in rest:
        word = re.match(r"(held|failed|unasked)\b", line)
        if word:
            colour = _COLOURS[word[1]]
            line = f"\x1b[{colour}m{word[1]}\x1b[0m{line[word.end() :]}"
        lines.append(line)
    return "\n".join(lines)


def _answer(path: Path) -> None:
    asked = json.load(sys.stdin)
    try:
        candidate = candidate_at(asked["place"])
        report = check(
            asked["layer"],
            candidate,
            asked["seed"],
            names=asked["names"],
            timeout=asked["timeout"],
        )
        answer = as_dict(report)
    except ValueError as error:
        answer = {"error": str(error)}
    path.write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    _answer(Path(sys.argv[1]))
