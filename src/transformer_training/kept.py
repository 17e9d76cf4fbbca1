"""Models that many pages train alike are trained once, where a folder is named to keep them in.

The environment variable `TRAINED_MODELS` names it; a build of the book names one.
What is kept is known by a digest of all that made it: the sources of the layers and of the
training, torch, the processor, and the arguments. So nothing is found that would not be trained.
"""

import functools
import hashlib
import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch
from filelock import FileLock
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import nn

import transformer_layers
import transformer_training

FOLDER = "TRAINED_MODELS"
# What tells torch's libraries to compute as another processor would.
_KINDS = ("ATEN_CPU_CAPABILITY", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")

Arguments = ParamSpec("Arguments")
Model = TypeVar("Model", bound=nn.Module)


def kept(**untrained: Any) -> Callable[[Callable[Arguments, Model]], Callable[Arguments, Model]]:
    """Makes a function that trains a model keep what it returns.

    Args:
        **untrained: Arguments with which it returns the model at once, as it is before training.

    Returns:
        A decorator. The function that it makes returns a model of its own each time.
    """

    def decorate(train: Callable[Arguments, Model]) -> Callable[Arguments, Model]:
        signature = inspect.signature(train)

        @functools.wraps(train)
        def trained(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Model:
            folder = os.environ.get(FOLDER)
            if not folder:
                return train(*args, **kwargs)
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            if untrained.items() <= given.arguments.items():
                return train(*args, **kwargs)
            name = f"{train.__module__}.{train.__qualname__}"
            file = Path(folder).absolute() / f"{_digest(name, given.arguments)}.safetensors"
            file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(file.with_suffix(".lock")):  # who comes second waits, and finds it
                if file.exists():
                    model = train(**{**given.arguments, **untrained})  # type: ignore[call-arg]
                    if _load(model, file):
                        return model
                model = train(*args, **kwargs)
                _save(model, file)
            return model

        return trained

    return decorate


def _load(model: nn.Module, file: Path) -> bool:
    try:
        load_model(model, file)
    except (SafetensorError, RuntimeError, OSError):  # damaged, or of another model
        return False
    return True


def _save(model: nn.Module, file: Path) -> None:
    scratch = file.with_suffix(f".{os.getpid()}")
    save_model(model, str(scratch))
    scratch.replace(file)


def _digest(name: str, arguments: Mapping[str, Any]) -> str:
    facts = {
        "train": name,
        "arguments": dict(arguments),
        "dtype": str(torch.get_default_dtype()),
        "torch": torch.__version__,
        "processor": torch.backends.cpu.get_cpu_capability(),
        "kind": [os.environ.get(each) for each in _KINDS],
        "sources": _sources(),
    }
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


@functools.cache
def _sources() -> str:
    """A digest of the layers and of the training, as they are when they are first asked for."""
    found = hashlib.sha256()
    for package in (transformer_layers, transformer_training):
        folder = Path(str(package.__file__)).parent
        for file in sorted(folder.rglob("*.py")):
            found.update(f"{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return found.hexdigest()
