"""The weights of a GPT-2: which there are, of what shapes, and under which keys."""

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from transformer_layers.checkpoints.json_file import shown
from transformer_layers.checkpoints.safetensors_file import StoredTensor
from transformer_layers.models.gpt2.config import GPT2Config

PREFIX = "transformer."
HEAD = "lm_head.weight"

_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
_MASK = re.compile(r"h\.[0-9]+\.attn\.(masked_)?bias")

_T = TypeVar("_T")


def weight_shapes(config: GPT2Config) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The key and the shape of each weight, in the order of :class:`GPT2`'s state dict.

    Args:
        config: The sizes.

    Yields:
        Key and shape.
    """
    d = config.n_embd
    block = {
        "ln_1.weight": (d,),
        "ln_1.bias": (d,),
        "attn.c_attn.weight": (d, 3 * d),
        "attn.c_attn.bias": (3 * d,),
        "attn.c_proj.weight": (d, d),
        "attn.c_proj.bias": (d,),
        "ln_2.weight": (d,),
        "ln_2.bias": (d,),
        "mlp.c_fc.weight": (d, 4 * d),
        "mlp.c_fc.bias": (4 * d,),
        "mlp.c_proj.weight": (4 * d, d),
        "mlp.c_proj.bias": (d,),
    }
    yield "wte.weight", (config.vocab_size, d)
    yield "wpe.weight", (config.n_positions, d)
    for i in range(config.n_layer):
        for name, shape in block.items():
            yield f"h.{i}.{name}", shape
    yield "ln_f.weight", (d,)
    yield "ln_f.bias", (d,)


def without_prefix_and_masks(stored: Mapping[str, _T]) -> dict[str, _T]:
    """Renames what a file holds to :class:`GPT2`'s keys.

    A file of `transformers.GPT2LMHeadModel` has `transformer.` before every key but the head's, a
    file of `GPT2Model` has not. Older ones have each block's causal mask among the weights, as
    `attn.bias` and `attn.masked_bias`; it is left out.

    Args:
        stored: What the file holds, by its keys.

    Returns:
        The same, by ours.
    """
    if all(key.startswith(PREFIX) or key == HEAD for key in stored):
        # A head with the prefix stays as it is: there would be two of one name.
        stored = {
            key if key == PREFIX + HEAD else key.removeprefix(PREFIX): value
            for key, value in stored.items()
        }
    return {key: value for key, value in stored.items() if not _MASK.fullmatch(key)}


def require_weights(
    found: Mapping[str, Tensor | StoredTensor], config: GPT2Config, source: Path | str
) -> None:
    """Refuses anything but the weights of a GPT-2 of these sizes, all of one floating dtype.

    Args:
        found: What there is, by key.
        config: The sizes.
        source: Where it was found, for the error.

    Raises:
        ValueError: If a key is missing or not known, or a shape or a dtype is wrong.
    """
    # One more than were found is enough to find one that is missing, however large n_layer is.
    expected = dict(itertools.islice(weight_shapes(config), len(found) + 1))
    missing = [key for key in expected if key not in found]
    if missing:
        raise ValueError(
            f"{source}: {missing[0]} is missing, which a GPT-2 of n_layer = {config.n_layer} has"
        )
    unknown = sorted(found.keys() - expected.keys())
    if unknown:
        raise ValueError(
            f"{source}: {shown(unknown)} is not part of a GPT-2 of n_layer = {config.n_layer}"
        )
    for key, shape in expected.items():
        _require_shape(key, tuple(found[key].shape), shape, source)
    _require_one_dtype({key: found[key].dtype for key in expected}, source)


def _require_shape(
    key: str, found: tuple[int, ...], expected: tuple[int, ...], source: Path | str
) -> None:
    if found == expected:
        return
    remedy = ""
    if found == expected[::-1]:
        remedy = "; it is transposed: GPT-2 stores (in, out), torch.nn.Linear (out, in)"
    raise ValueError(
        f"{source}: {key} has the shape {shown(found)}, and the sizes of the config need "
        f"{expected}{remedy}"
    )


def _require_one_dtype(dtypes: dict[str, torch.dtype | str], source: Path | str) -> None:
    first_key, first = next(iter(dtypes.items()))
    for key, dtype in dtypes.items():
        if dtype not in _DTYPES:
            raise ValueError(
                f"{source}: {key} is {dtype}, and weights must be float64, float32, float16 or "
                "bfloat16; a quantized checkpoint must be converted first"
            )
        if dtype != first:
            raise ValueError(
                f"{source}: {first_key} is {first} and {key} is {dtype}; convert all weights to "
                "one dtype"
            )
