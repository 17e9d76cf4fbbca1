"""Prints, for every layer, which check catches which known wrong version.

`python -m layer_checks` runs it, also with the names of layers. The exit status is 1 if the book's
own layer is flagged, a wrong version passes, or a check that is not weak catches none.
"""

import sys
from collections.abc import Sequence

from layer_checks.detection.table import DetectionTable, detection_table
from layer_checks.diagnosis.report import check
from layer_checks.registry import layer_named, layers, right_version


def main(layer_names: Sequence[str]) -> int:
    """Prints a table for each layer, and what is wrong with it.

    Args:
        layer_names: Names of layers; all of them if there are none.

    Returns:
        The exit status.
    """
    try:
        asked = [layer_named(name) for name in layer_names] or list(layers())
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    problems: list[str] = []
    versions = 0
    for layer in asked:
        table = detection_table(layer.name, generic=True)
        versions += len(table.wrong_versions)
        print(f"{layer.name}\n\n{table}\n")
        problems += problems_of(table)
    print(f"{versions} wrong versions of {len(asked)} layers")
    for problem in problems:
        print(f"problem: {problem}")
    return 1 if problems else 0


def problems_of(table: DetectionTable) -> list[str]:
    """What a table shows that it should not.

    Args:
        table: The table of one layer.

    Returns:
        One line for each wrong version that passes, for each check that is not weak and catches
        none, and for each check that flags the book's own layer.
    """
    name = table.layer_name
    problems = [f"{name}: {version.name} is not caught" for version in table.not_caught]
    useful = {each.name for each in table.checks if each.weak or table.totals[each.name]}
    problems += [
        f"{name}: the check {each.name} catches nothing"
        for each in layer_named(name).checks
        if not each.weak and each.name not in useful
    ]
    report = check(name, right_version(name))
    return problems + [f"{name}: the right layer is flagged: {result}" for result in report.failed]
