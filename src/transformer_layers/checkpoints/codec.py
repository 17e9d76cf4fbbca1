"""What reading and writing of checkpoints asks of a model: how its sizes and weights are stored."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import nn

Config = TypeVar("Config")
# Keys and shapes.
Weights = Iterator[tuple[str, tuple[int, ...]]]


@dataclass(frozen=True)
class Codec(Generic[Config]):
    """How a model's sizes and weights are stored.

    Attributes:
        model_type: What `config.json` calls the model.
        config_of: Takes the sizes out of what `config.json` holds, and refuses what the model does
            not compute; the path is for the error.
        config_text: What `config.json` is to hold, of the sizes and the dtype of the weights.
        with_generation: Puts what `generation_config.json` holds in the place of such entries of
            `config.json`; None if the model reads no such file. `config_text` has them all, so that
            the file needs not be written.
        weight_shapes: The key and the shape of each weight, in the order of the state dict. Sizes
            may be absurd: what is not asked for is not to be made.
        renamed: Gives the tensors of a file the model's keys, and leaves out what is no weight.
        stored_as: The name that a file that is written has for a key.
        fused_into: The key under which files have a weight with others, one above the other in the
            order of the state dict, by the sizes; its own key where it stands by itself. The rows
            of such weights follow each other in the state dict.
        tied: Names that a file may have for a second weight, which must equal the one named; by the
            sizes.
        changeable: Options that may differ from those that the weights were saved with, since they
            are changed in trained models: for longer sequences, or for further training.
        described: The model with the size that says how many weights it has, for errors.
        layout: How matrices are stored, for the error about one that is transposed.
    """

    model_type: str
    config_of: Callable[[dict[str, Any], Path], Config]
    config_text: Callable[[Config, torch.dtype], str]
    weight_shapes: Callable[[Config], Weights]
    with_generation: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]] | None = None
    renamed: Callable[[Mapping[str, Any]], dict[str, Any]] = dict
    stored_as: Callable[[str], str] = str
    fused_into: Callable[[Config, str], str] = lambda config, key: key
    tied: Callable[[Config], Mapping[str, str]] = lambda config: {}
    changeable: Collection[str] = ()
    described: Callable[[Config], str] = lambda config: f"model of {config}"
    layout: str = "torch.nn.Linear stores (out, in)"


def shapes_of(model_class: Callable[[Config], nn.Module]) -> Callable[[Config], Weights]:
    """The keys and shapes of a model that is made on the meta device, for `weight_shapes`.

    Args:
        model_class: Makes a model of its sizes, which must not be absurd.

    Returns:
        A function of sizes. It raises a ValueError where torch cannot count a weight's bytes.
    """

    def shapes(config: Config) -> Weights:
        try:
            with torch.device("meta"):
                weights = model_class(config).state_dict()
        except (RuntimeError, TypeError) as error:  # also from int64, before there is a weight
            raise ValueError(f"no weights are as large as those of {config}") from error
        yield from ((key, tuple(weight.shape)) for key, weight in weights.items())

    return shapes
