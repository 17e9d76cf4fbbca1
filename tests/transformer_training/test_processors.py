"""Small models are the same with the kernels of processors with and without vectors."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import torch
from torch import Tensor

pytestmark = pytest.mark.xdist_group("kinds of kernels")  # models are trained once with each

Results: TypeAlias = dict[str, dict[str, Tensor]]

PROGRAM = """
import sys
import torch
from transformer_training import toy_language, toy_translation

torch.set_default_dtype(torch.float64)

kernels = torch.backends.cpu.get_cpu_capability()
torch.save({
    "toy_language": toy_language.trained_model().state_dict(),
    "toy_translation": toy_translation.trained_translator(steps=50).state_dict(),
}, sys.argv[1])
print(kernels)
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Results]:
    """What is trained without vectors, and with those of AVX2."""
    folder: Path = tmp_path_factory.mktemp("kernels")
    kernels = {
        "default": {"MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"},
        "avx2": {"MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    }
    found: list[Any] = []
    used = set()
    for name, others in kernels.items():
        file = folder / f"{name}.pt"
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(file)],
            env={**os.environ, "ATEN_CPU_CAPABILITY": name, **others},
            check=True,
            capture_output=True,
            text=True,
        )
        used.add(run.stdout.strip())
        found.append(torch.load(file))
    if len(used) < 2:
        pytest.skip(f"this processor has kernels of one kind only: {', '.join(used)}")
    return found[0], found[1]


@pytest.mark.nightly  # small models are trained twice, in processes of their own
@pytest.mark.parametrize("language", ["toy_language", "toy_translation"])
def test_trained_models_agree_to_five_decimals(results, language):
    plain, vectors = (each[language] for each in results)
    worst = {name: (plain[name] - vectors[name]).abs().max().item() for name in plain}
    assert max(worst.values()) < 1e-5, worst
