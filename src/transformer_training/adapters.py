"""Low-rank adapters: what learns in a run whose first weights stay as they are."""

import hashlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from transformer_layers import Conv1D
from transformer_training.plans.plan import Plan, Trainable

_BASE = ".base_layer"


def add_adapters(plan: Plan, model: Trainable, rank: int) -> Any:
    r"""Freezes a model, and adds adapters to the matrices of its blocks, in place.

    A matrix computes :math:`xW + b + 2\,(xA)B` then, section 4.1 of
    https://arxiv.org/abs/2106.09685 with :math:`\alpha = 2r`. It changes nothing at first, since
    :math:`B` starts as zeros.

    Args:
        plan: The model's.
        model: The model.
        rank: The number of columns of A, and of rows of B.

    Returns:
        The `peft.PeftModel` around the model, which saves the adapters.

    Raises:
        ImportError: If the package `peft` is not installed.
    """
    import peft  # a second to import, and few runs need it

    targets = {name.rpartition(".")[2] for name, _ in _matrices(plan, model)}
    stored_in_out = any(isinstance(part, Conv1D) for part in model.modules())
    config = peft.LoraConfig(
        r=rank, lora_alpha=2 * rank, target_modules=sorted(targets), fan_in_fan_out=stored_in_out
    )
    if stored_in_out:
        config._register_custom_module({Conv1D: peft.tuners.lora.Linear})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Unsupported layer type")  # it has been told of Conv1D
        return peft.get_peft_model(model, config)


def adapter_weights(plan: Plan, sizes: Any, rank: int) -> int:
    """How many weights the adapters of a model have.

    Args:
        plan: The model's.
        sizes: The model's.
        rank: Of the adapters.

    Examples:
        >>> from transformer_layers import GPT2Config
        >>> from transformer_training.plans import PLANS
        >>> adapter_weights(PLANS["gpt2"], GPT2Config(n_embd=6, n_layer=2, n_head=2), rank=1)
        192
    """
    with torch.device("meta"):
        model = plan.model(sizes)
    return rank * sum(sum(part.weight.shape) for _, part in _matrices(plan, model))


def merged_weights(model: Trainable) -> dict[str, Tensor]:
    """The weights of the plain model: to each matrix the product of its adapter is added.

    Args:
        model: One to which :func:`add_adapters` has added some.

    Returns:
        The weights by their names in the plain model, on the CPU.
    """
    weights = {
        name.replace(_BASE, ""): parameter.detach().cpu()
        for name, parameter in model.named_parameters()
        if "lora_" not in name
    }
    for name, part in model.named_modules():
        if hasattr(part, "get_delta_weight"):
            product: Tensor = part.get_delta_weight("default")
            weights[f"{name}.weight"] = weights[f"{name}.weight"] + product.detach().cpu()
    return weights


def digest(weights: Mapping[str, Tensor]) -> str:
    """A digest of weights on the CPU, which the adapters of another model do not share."""
    found = hashlib.sha256()
    for name in sorted(weights):
        found.update(name.encode())
        found.update(weights[name].contiguous().view(torch.uint8).numpy().data)
    return found.hexdigest()


def _matrices(plan: Plan, model: nn.Module) -> Iterator[tuple[str, Any]]:
    for block in plan.blocks(model):
        for name, part in block.named_modules():
            if isinstance(part, (nn.Linear, Conv1D)):
                yield name, part
