"""The kinds of processor that this machine can be, by the libraries' own switches.

torch, MKL and oneDNN each choose their routines by what the processor can do, and each has a
variable that makes it do with less: `ATEN_CPU_CAPABILITY`, `MKL_CBWR` and
`MKL_ENABLE_INSTRUCTIONS`, and `ONEDNN_MAX_CPU_ISA`.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Kind:
    """A kind of processor.

    Attributes:
        name: How it is asked for.
        switches: The variables that make libraries use no more than it has.
        capability: What torch calls it; empty for the machine as it is.
    """

    name: str
    switches: Mapping[str, str] = field(default_factory=dict)
    capability: str = ""


KINDS = (
    Kind("own"),
    Kind(
        "none",
        {
            "ATEN_CPU_CAPABILITY": "default",
            "MKL_CBWR": "COMPATIBLE",
            "ONEDNN_MAX_CPU_ISA": "SSE41",
        },
        "DEFAULT",
    ),
    Kind(
        "avx2",
        {
            "ATEN_CPU_CAPABILITY": "avx2",
            "MKL_ENABLE_INSTRUCTIONS": "AVX2",
            "ONEDNN_MAX_CPU_ISA": "AVX2",
        },
        "AVX2",
    ),
    Kind(
        "avx512",
        {"ATEN_CPU_CAPABILITY": "avx512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE"},
        "AVX512",
    ),
)
SWITCHES = frozenset(name for kind in KINDS for name in kind.switches)
# The widest first: a processor with one has those after it.
ORDER = ("AVX512", "AVX2", "DEFAULT")


def environment(kind: Kind, threads: int) -> dict[str, str]:
    """The variables of a process that shall run on a kind, with a number of threads.

    Threads that wait do not compute: what runs beside them needs the core.
    """
    plain = {name: value for name, value in os.environ.items() if name not in SWITCHES}
    count = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}
    return {**plain, **count, **kind.switches}


def capability(variables: Mapping[str, str]) -> str:
    """What torch calls the processor that it finds in a process with these variables."""
    code = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def why_not(kind: Kind, others: bool = False) -> str:
    """Why this machine is not to be of a kind; empty if it is.

    torch does what it is told, also where the processor lacks the vectors; so its own are asked for
    first, and then whether it has heeded its switch.

    Args:
        kind: The kind.
        others: Whether the kind is left out that this processor is without any switch.
    """
    if not kind.capability:
        return "without a switch this processor is of this kind" if others else ""
    own = capability(environment(KINDS[0], 1))
    if others and own == kind.capability:
        return "without a switch this processor is of this kind"
    if own not in ORDER:
        return f"torch calls this processor {own}, and chooses by none of {', '.join(ORDER)}"
    if ORDER.index(own) > ORDER.index(kind.capability):
        return f"this processor has {own} and no {kind.capability}"
    heeded = capability(environment(kind, 1))
    if heeded != kind.capability:
        return f"told to be {kind.capability}, torch says that it is {heeded}"
    return ""
