"""What the measurements were made on."""

import datetime
import os
import platform
from pathlib import Path

import torch
import transformers


def description() -> dict[str, str | int]:
    """Processor, threads and versions; nothing that names the machine."""
    return {
        "processor": processor(),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def processor() -> str:
    """The processor's name, on Linux with the numbers that tell its generation."""
    facts = Path("/proc/cpuinfo")
    if not facts.exists():
        return platform.processor() or platform.machine()
    lines = [line.partition(":") for line in facts.read_text().splitlines() if ":" in line]
    first = {name.strip(): value.strip() for name, _, value in reversed(lines)}
    name = first.get("model name", platform.machine())
    return f"{name} (family {first.get('cpu family', '?')}, model {first.get('model', '?')})"
