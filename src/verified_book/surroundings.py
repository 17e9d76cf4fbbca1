"""What the outputs of cells depend on beside sources and versions: the processor, and variables.

Numerical libraries add up in another order where vectors are wider, so that last digits differ.
"""

import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path

_FLAGS = Path("/proc/cpuinfo")  # of Linux
_VECTORS = re.compile(r"(sse|ssse|avx|fma|amx|asimd|sve|bf16|fphp)\w*")


def processor() -> str:
    """The kind of this machine's processor; on Linux with the vectors that it computes with."""
    try:
        text = _FLAGS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    found = re.search(r"^(?:flags|Features)\s*:(.*)", text, re.MULTILINE)
    flags = found[1].split() if found else []
    return " ".join([platform.machine(), *sorted(filter(_VECTORS.fullmatch, flags))])


def variables(names: Iterable[str]) -> list[str]:
    """The environment variables that are named and set, each as `NAME=VALUE`.

    Args:
        names: A name each, or `NAME=VALUE`, which says what an unset one counts as.
    """
    found = []
    for item in sorted(names):
        name, _, usual = item.partition("=")
        if (value := os.environ.get(name) or usual) != usual:
            found.append(f"{name}={value}")
    return found
