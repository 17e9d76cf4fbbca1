"""What is known of the layers' own right and wrong versions is found once.

A check that fails for a wrong version fails whoever asks: tables of what is caught ask, and so does
every report that names a mistake. The answers are kept in the process. Where the environment
variable `CHECK_RESULTS` names a folder, other processes find them, too: a build of the book names
one. An answer is known by a digest of all that made it: the sources of the layers
and of their checks, torch, the processor, and how it was asked. So nothing is found that a check
would not find.
"""

import functools
import hashlib
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch

import transformer_layers
from layer_checks.diagnosis import fingerprints, running
from layer_checks.diagnosis.fingerprints import Fingerprint
from layer_checks.diagnosis.running import Result
from layer_checks.evidence.comparison import is_compared_in_single
from layer_checks.kit.candidates import current_match, is_witnessed
from layer_checks.kit.definitions import Candidate, Check, Layer
from layer_checks.kit.inputs import number_of_inputs, takes_masks
from layer_checks.kit.oracles import absent_now, are_eps_noticed
from layer_checks.registry import OWN

FOLDER = "CHECK_RESULTS"
# What tells torch's libraries to compute as another processor would.
_KINDS = ("ATEN_CPU_CAPABILITY", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")

Found = TypeVar("Found")
_found: dict[str, Any] = {}


def run(one: Check, candidate: Candidate, seed: int = 0) -> Result:
    """What `running.run` gives, computed only where it is not known."""
    return _once(lambda: running.run(one, candidate, seed), one, candidate, seed)


def fingerprint(layer: Layer, candidate: Candidate) -> Fingerprint:
    """What `fingerprints.fingerprint` gives, computed only where it is not known."""
    return _once(lambda: fingerprints.fingerprint(layer, candidate), layer, candidate)


def _once(
    compute: Callable[[], Found], asks: Check | Layer, candidate: Candidate, seed: int = 0
) -> Found:
    names = _names()
    of = names.get(id(asks)), names.get(id(candidate))
    otherwise = current_match() is not None or is_witnessed() or are_eps_noticed()
    if None in of or otherwise or is_compared_in_single():
        return compute()
    key = repr((of, seed, number_of_inputs(), takes_masks(), sorted(absent_now())))
    if key not in _found:
        _found[key] = _read(key, compute)
    found: Found = _found[key]
    return found


def _read(key: str, compute: Callable[[], Found]) -> Found:
    folder = os.environ.get(FOLDER)
    if not folder:
        return compute()
    name = hashlib.sha256(f"{key} {_circumstances()}".encode()).hexdigest()[:32]
    file = Path(folder).absolute() / name
    try:
        found: Found = pickle.loads(file.read_bytes())
    except (OSError, EOFError, pickle.UnpicklingError):  # not there, or damaged
        found = compute()
        file.parent.mkdir(parents=True, exist_ok=True)
        begun = file.with_suffix(f".{os.getpid()}")
        begun.write_bytes(pickle.dumps(found))
        begun.replace(file)  # another process sees all of it or nothing
    return found


@functools.cache
def _names() -> dict[int, str]:
    """The book's own layers, versions and checks, by what they are: a reader's may be called so."""
    found: dict[int, str] = {}
    for layer in OWN:
        versions = {each.name: each.layer for each in layer.wrong_versions}
        right = {f"right {i}": each for i, each in enumerate((layer.right, *layer.right_ones))}
        checks = {f"check {each.name}": each for each in layer.checks}
        for name, each in {**versions, **right, **checks, "itself": layer}.items():
            found[id(each)] = f"{layer.name}: {name}"
    return found


@functools.cache
def _circumstances() -> str:
    """A digest of what an answer depends on, the sources as they are when it is first asked for."""
    kinds = [os.environ.get(each) for each in _KINDS]
    facts = (sys.version, torch.__version__, torch.backends.cpu.get_cpu_capability(), kinds)
    found = hashlib.sha256(repr(facts).encode())
    for folder in (Path(__file__).parents[1], Path(str(transformer_layers.__file__)).parent):
        for file in sorted(folder.rglob("*.py")):
            found.update(f"{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return found.hexdigest()
