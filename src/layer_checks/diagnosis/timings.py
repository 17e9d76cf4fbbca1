"""Prints how long `check` takes for each layer.

Run as `python -m layer_checks.diagnosis.timings`, or with the names of layers. First the book's own
layer is checked, then a wrong version, for which the known ones are run as well: once in a process.
"""

import sys
import time
from collections.abc import Sequence

from layer_checks.diagnosis.report import check
from layer_checks.registry import layer_named, layers, right_version


def main(layer_names: Sequence[str]) -> int:
    """Prints a line for each layer.

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
    print(f"{'':<32}{'checks':>7}{'wrong':>7}{'right':>8}{'wrong':>8}")
    for layer in asked:
        checks = sum(not each.weak for each in layer.checks)
        times = []
        for candidate in (right_version(layer.name), layer.wrong_versions[0].layer):
            start = time.perf_counter()
            check(layer.name, candidate)
            times.append(time.perf_counter() - start)
        right, wrong = (f"{seconds:.2f} s" for seconds in times)
        print(f"{layer.name:<32}{checks:>7}{len(layer.wrong_versions):>7}{right:>8}{wrong:>8}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
