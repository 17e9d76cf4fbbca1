"""A record after a change of code that changes no number: a part is run again, and held against it.

A record names the digests of its sources, and is refused once one of them differs. Hours of runs
need not be repeated for a new argument that nobody gives: the first seed is run again, or the first
steps, and where each number is what the record says, the record gets the new digests.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from evaluation.recorded import read_results, write_results
from evaluation.sources import changed, facts

CLOSE = 2e-3
"""By how much a number may differ from the recorded one, absolutely or as a share of it.

The last digits of a trained model are the processor's.
"""


def differences(found: Any, recorded: Any, at: str = "") -> list[str]:
    """Where a part that was run again is not what was recorded.

    A list that is shorter than the recorded one is held against its beginning: it is the first of
    the seeds, or of the steps. The number of seeds itself is passed over.

    Args:
        found: What was run again.
        recorded: What the record says.
        at: Where both stand in the record.

    Returns:
        A sentence for each difference.

    Examples:
        >>> differences({"seeds": 1, "loss": [0.5]}, {"seeds": 2, "loss": [0.5001, 0.7]})
        []
        >>> differences({"loss": [0.7]}, {"loss": [0.5, 0.7]})
        ['loss[0] is 0.7, recorded is 0.5']
    """
    if isinstance(found, Mapping) and isinstance(recorded, Mapping):
        if new := sorted(map(str, found.keys() - recorded.keys())):
            return [f"{at or 'the record'} lacks {', '.join(new)}"]
        return [
            sentence
            for name, each in found.items()
            if name != "seeds"
            for sentence in differences(each, recorded[name], f"{at}.{name}".lstrip("."))
        ]
    if isinstance(found, list | tuple) and isinstance(recorded, list | tuple):
        if len(found) > len(recorded):
            return [f"{at} has {len(found)} entries, recorded are {len(recorded)}"]
        pairs = enumerate(zip(found, recorded, strict=False))
        return [sentence for i, pair in pairs for sentence in differences(*pair, f"{at}[{i}]")]
    numbers = isinstance(found, int | float) and isinstance(recorded, int | float)
    if numbers and isinstance(recorded, float):
        same = math.isclose(found, recorded, rel_tol=CLOSE, abs_tol=CLOSE)
    else:
        same = found == recorded
    return [] if same else [f"{at} is {found}, recorded is {recorded}"]


def renew(
    file: Path,
    patterns: Iterable[str],
    made_by: str,
    part_of: Callable[[dict[str, Any]], tuple[Any, Any]],
) -> None:
    """Gives a stale record the digests of its sources, if a part of it comes out as it says.

    Args:
        file: Where the record is.
        patterns: Of its sources, as `Path.glob` takes them.
        made_by: The command that makes the whole record.
        part_of: Runs a part of the record again: returns it, and what the record says of it.

    Raises:
        SystemExit: If the record cannot be read, or a number is another; with the remedy.
    """
    now = facts(patterns)  # before minutes in which a source may change
    record = read_results(file, ("date", "sources"), f"run {made_by}")
    if not changed(record["sources"], now["sources"]):
        return
    found = differences(*part_of(record))
    if found:
        more = f", and {len(found) - 3} more" if len(found) > 3 else ""
        raise SystemExit(f"{file}: {'; '.join(found[:3])}{more}. Remedy: run {made_by}")
    record["sources"] = now["sources"]
    record["renewed"] = now["date"]
    write_results(file, record)
