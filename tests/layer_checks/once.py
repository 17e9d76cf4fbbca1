"""What is found of right layers and of known wrong versions: once for all tests of a run.

A check that fails for a wrong version does so whoever asks, and most of what `check` computes to
name a mistake is that. The workers of a run share a folder of it.
"""

import hashlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import jaxtyping

from layer_checks.diagnosis import mistake_matching
from layer_checks.diagnosis.mistake_matching import _Fingerprint
from layer_checks.diagnosis.running import Result, run
from layer_checks.evidence.comparison import _in_single
from layer_checks.kit.candidates import _match, _witness
from layer_checks.kit.definitions import Candidate, Check, Layer
from layer_checks.kit.inputs import number_of_inputs, takes_masks
from layer_checks.kit.oracles import _found_eps, absent_now
from layer_checks.registry import LAYERS

Found = TypeVar("Found")
fingerprint = mistake_matching._fingerprint


class Once:
    """Runs checks and takes fingerprints, of what is known only where nobody has done so before.

    Attributes:
        folder: Where it is written down; None keeps it in this process.
    """

    def __init__(self) -> None:
        self.folder: Path | None = None
        self._found: dict[str, Any] = {}
        # By what they are, not by what they are called: a reader's class may be called the same.
        self._names: dict[int, str] = {}
        for layer in LAYERS.values():
            versions = {each.name: each.layer for each in layer.wrong_versions}
            right = {f"right {i}": each for i, each in enumerate((layer.right, *layer.right_ones))}
            checks = {f"check {each.name}": each for each in layer.checks}
            for name, each in {**versions, **right, **checks, "itself": layer}.items():
                self._names[id(each)] = f"{layer.name}: {name}"

    def run(self, one: Check, candidate: Candidate, seed: int = 0) -> Result:
        """What `run` gives."""
        return self._once(lambda: run(one, candidate, seed), one, candidate, seed=seed)

    def fingerprint(self, layer: Layer, candidate: Candidate) -> _Fingerprint:
        """What a candidate computes on the layer's probe, as `check` compares it."""
        return self._once(lambda: fingerprint(layer, candidate), layer, candidate)

    def _once(self, compute: Callable[[], Found], *of: object, seed: int = 0) -> Found:
        names = [self._names.get(id(each)) for each in of]
        otherwise = any(context.get() for context in (_match, _witness, _in_single))
        if None in names or otherwise or _found_eps.get() is not None:
            return compute()
        asked_as = number_of_inputs(), takes_masks(), sorted(absent_now())
        key = repr((names, seed, asked_as, jaxtyping.config.jaxtyping_disable))
        if key not in self._found:
            self._found[key] = self._read(key, compute)
        found: Found = self._found[key]
        return found

    def _read(self, key: str, compute: Callable[[], Found]) -> Found:
        if self.folder is None:
            return compute()
        file = self.folder / hashlib.sha256(key.encode()).hexdigest()
        if file.exists():
            found: Found = pickle.loads(file.read_bytes())
            return found
        found = compute()
        begun = file.with_suffix(f".{os.getpid()}")
        begun.write_bytes(pickle.dumps(found))
        begun.replace(file)  # another worker sees all of it or nothing
        return found


ONCE = Once()
