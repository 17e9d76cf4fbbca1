"""Low-rank adapters: what learns in a run whose first weights stay as they are."""

import hashlib
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from transformer_layers import Conv1D, MixtureOfExperts
from transformer_training.plans import plan_of
from transformer_training.plans.plan import Plan, Trainable

_BASE = ".base_layer"
_FILE = "adapter_model.safetensors"
_EXPERTS = ".experts."
# What transformers has the matrices of all experts in, and those of ours, one above the other.
_OF_EXPERTS = {"gate_up_proj": ("gate_proj", "up_proj"), "down_proj": ("down_proj",)}
_PREFIX, _A, _B = "base_model.model.", ".lora_A.weight", ".lora_B.weight"  # peft's
# Options of `peft.LoraConfig` with which adapters are read: the others must be as they are there
# without being given, since they are other adapters.
_READ = {
    "r",
    "lora_alpha",
    "lora_dropout",
    "rank_pattern",
    "alpha_pattern",
    "use_rslora",
    "fan_in_fan_out",
    "init_lora_weights",
    "target_modules",
    "target_parameters",
    "exclude_modules",
    "layers_to_transform",
    "layers_pattern",
    "base_model_name_or_path",
    "revision",
    "task_type",
    "auto_mapping",
    "peft_version",
    "inference_mode",
}
_PLAIN_STARTS = (True, False, "gaussian", "orthogonal")  # others change the model's weights, too


def add_adapters(
    model: Trainable,
    rank: int,
    *,
    alpha: float | None = None,
    dropout: float = 0.0,
    target_modules: Sequence[str] | None = None,
) -> Any:
    r"""Freezes a model, and adds adapters to the matrices of its blocks, in place.

    A matrix computes :math:`xW + b + \frac{\alpha}{r}\,(xA)B` then, section 4.1 of
    https://arxiv.org/abs/2106.09685. It changes nothing at first, since :math:`B` starts as zeros.

    It is `peft.get_peft_model`, which is told of :class:`transformer_layers.Conv1D`, the matrices
    of GPT-2.

    Args:
        model: The model, of a class that a plan has.
        rank: The number of columns of A, and of rows of B, :math:`r`.
        alpha: How much the product counts, :math:`\alpha`; twice the rank if not given.
        dropout: Share of what an adapter reads that is dropped in training.
        target_modules: The names of the matrices that get adapters, or how these end; all of the
            blocks' if not given.

    Returns:
        The `peft.PeftModel` around the model. :func:`save_adapters` saves its adapters.

    Raises:
        ImportError: If the package `peft` is not installed.
        TypeError: If no plan has the model's class.
        ValueError: If no matrix has such a name, or `rank` is not positive.

    Examples:
        >>> from transformer_layers import GPT2, GPT2Config
        >>> model = GPT2(GPT2Config(n_embd=6, n_layer=2, n_head=2))
        >>> adapted = add_adapters(model, rank=1, target_modules=["c_attn"])
        >>> sum(each.numel() for each in adapted.parameters() if each.requires_grad)
        48
    """
    if target_modules is None:
        matrices = _matrices(plan_of(model.config), model)
        target_modules = sorted(_ends_of(name for name, _ in matrices))
    return _with_adapters(
        model,
        r=rank,
        lora_alpha=2 * rank if alpha is None else alpha,
        lora_dropout=dropout,
        target_modules=list(target_modules),
    )


def save_adapters(
    adapted: Any, folder: str | os.PathLike[str], base: str | os.PathLike[str] = ""
) -> None:
    r"""Writes adapters alone, for `peft` and the class of `transformers` that reads the model.

    Where files have several of our matrices as one, as Phi-3's have queries, keys and values, their
    adapters are one of it: the columns of each :math:`A` side by side, and a :math:`B` with theirs
    along the diagonal. Those of experts, which files have one by one, `peft` puts together so.

    Args:
        adapted: What :func:`add_adapters` or :func:`load_adapters` returned.
        folder: Where `adapter_config.json` and `adapter_model.safetensors` are written; made if
            needed.
        base: The folder of the model without adapters, or its name on the hub, which the first of
            these files is to name.

    Raises:
        OSError: If a file cannot be written.
        ValueError: If some blocks have experts and others none, some matrices of experts adapters
            and others none, or something else than a matrix has one.

    Examples:
        >>> import tempfile
        >>> from transformer_layers import Llama, LlamaConfig, load_model
        >>> model = Llama(LlamaConfig(50, 12, 20, 2, 3, 1, model_type="phi3"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save_pretrained(f"{folder}/published")
        ...     save_adapters(add_adapters(model, rank=4), f"{folder}/adapter")
        ...     adapted = load_adapters(load_model(f"{folder}/published"), f"{folder}/adapter")
        >>> adapted.base_model.model.model.layers[0].self_attn.q_proj.r
        {'default': 12}
    """
    import peft
    from safetensors.torch import save_file

    model = adapted.get_base_model()
    if why := why_not_alone(model):
        raise ValueError(why)
    config = adapted.peft_config["default"]
    found = {stored: _as_one(model, parts) for stored, parts in _by_stored_name(model)}
    written = {stored: each for stored, each in found.items() if each is not None}
    if sum(each.number for each in written.values()) != len(
        peft.get_peft_model_state_dict(adapted)
    ):
        raise ValueError("adapters are saved of matrices alone, and something else has one")
    ranks = {stored: len(each.a) for stored, each in written.items()}
    alphas = {stored: each.scale * len(each.a) for stored, each in written.items()}
    of_experts = {
        (ranks.get(stored), alphas.get(stored)) for stored in found if _EXPERTS in f".{stored}."
    }
    if len(of_experts) > 1 or of_experts - {(None, None), (config.r, config.lora_alpha)}:
        raise ValueError(
            "adapters of experts are saved of all their matrices, with one rank and one alpha, "
            "since transformers has the matrices of all experts as one"
        )
    tensors = {_PREFIX + stored + _A: each.a for stored, each in written.items()}
    tensors |= {_PREFIX + stored + _B: each.b for stored, each in written.items()}
    ends = _ends_of(ranks)
    saved = peft.LoraConfig(
        r=config.r,
        lora_alpha=config.lora_alpha,
        lora_dropout=config.lora_dropout,
        fan_in_fan_out=config.fan_in_fan_out,
        target_modules=sorted(ranks if ends & _ends_of(found.keys() - ranks) else ends),
        rank_pattern={name: rank for name, rank in ranks.items() if rank != config.r},
        alpha_pattern={each: a for each, a in alphas.items() if a != config.lora_alpha},
        base_model_name_or_path=str(base) or None,
        inference_mode=True,
    )
    saved.save_pretrained(str(folder))
    save_file(tensors, Path(folder) / _FILE, {"format": "pt"})


def load_adapters(model: Trainable, folder: str | os.PathLike[str]) -> Any:
    """Adds the adapters of a folder to a model, in place, whoever trained them.

    They are for the class of `transformers` that reads the model; where that has several of our
    matrices as one, as those of all experts (`target_parameters` of `peft`), each of ours gets its
    part of the adapter.

    Args:
        model: The model that they were trained for, as `load_model` reads it.
        folder: As :func:`save_adapters` and `peft` write it.

    Returns:
        The `peft.PeftModel` around the model, in evaluation mode.

    Raises:
        ImportError: If the package `peft` is not installed.
        TypeError: If no plan has the model's class.
        ValueError: If they are of another kind or of another model.
    """
    import peft
    from peft.utils.other import get_pattern_key

    config: Any = peft.PeftConfig.from_pretrained(str(folder))
    if not isinstance(config, peft.LoraConfig):
        raise ValueError(f"{folder}: must have LoRA adapters, got {config.peft_type}")
    plain = peft.LoraConfig()
    others = [each.name for each in fields(plain) if each.name not in _READ]
    found = {name: getattr(config, name) for name in others}
    if odd := [name for name in others if found[name] != getattr(plain, name)]:
        raise ValueError(f"{folder}: adapters with {odd[0]} = {found[odd[0]]!r} are not read")
    if config.init_lora_weights not in _PLAIN_STARTS:
        raise ValueError(
            f"{folder}: adapters with init_lora_weights = {config.init_lora_weights!r} are not read"
        )
    others = config.target_parameters or []
    if odd := sorted(each for each in others if each.rpartition(".")[2] not in _OF_EXPERTS):
        raise ValueError(
            f"{folder}: adapters with target_parameters = {odd} are not read, only those of "
            f"experts' {' and '.join(_OF_EXPERTS)}; let peft merge them into the model, by "
            "merge_and_unload, and read that"
        )
    if why := why_not_alone(model):
        raise ValueError(why)
    weights = peft.load_peft_weights(str(folder), device="cpu")
    tensors: dict[str, Tensor] = {}
    ranks: dict[str, int] = {}
    alphas: dict[str, float] = {}
    patterns = config.alpha_pattern or {}
    for stored, parts, a, b in [*_of_matrices(model, weights), *_of_experts(model, weights)]:
        of_parts = b.split([part.outputs for part in parts]) if len(parts) > 1 else [b]
        key = get_pattern_key(list(patterns), stored)
        for part, rows in zip(parts, of_parts, strict=True):
            tensors[_PREFIX + part.name + _A] = a.contiguous()
            tensors[_PREFIX + part.name + _B] = rows.contiguous()
            ranks[part.name] = len(a)
            alphas[part.name] = patterns.get(key, config.lora_alpha)
    if weights or not tensors:
        said = f"{min(weights)} is no part of one of" if weights else "there is none for"
        raise ValueError(
            f"{folder}: {said} a {plan_of(model.config).codec.described(model.config)}"
        )
    adapted = _with_adapters(
        model,
        r=config.r,
        lora_alpha=config.lora_alpha,
        lora_dropout=config.lora_dropout,
        use_rslora=config.use_rslora,
        target_modules=list(ranks),
        rank_pattern=ranks,
        alpha_pattern=alphas,
    )
    peft.set_peft_model_state_dict(adapted, tensors)
    return adapted.eval()


def why_not_alone(model: Any) -> str | None:
    """Why adapters of a model cannot stand in a folder of their own; None if they can.

    Args:
        model: The model, with adapters or without.
    """
    kinds = {_has_experts(block) for block in plan_of(model.config).blocks(model)}
    if kinds == {True, False}:
        return (
            "adapters of a model that has experts in some blocks alone cannot stand in a folder of "
            "their own: peft would leave out those of the other blocks"
        )
    return None


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


def _with_adapters(model: Trainable, **options: Any) -> Any:
    import peft  # a second to import, and few runs need it

    stored_in_out = any(isinstance(part, Conv1D) for part in model.modules())
    config = peft.LoraConfig(fan_in_fan_out=stored_in_out, **options)
    if stored_in_out:
        config._register_custom_module({Conv1D: peft.tuners.lora.Linear})
    sizes = model.config
    # By a config's model_type peft takes the matrices of experts for those of transformers.
    del model.config
    try:
        with warnings.catch_warnings():
            # It has been told of Conv1D.
            warnings.filterwarnings("ignore", "Unsupported layer type")
            return peft.get_peft_model(model, config)
    finally:
        model.config = sizes


class _Part(NamedTuple):
    """A matrix of ours, and the number of its outputs where others are stored with it."""

    name: str
    outputs: int


def _by_stored_name(model: Any) -> Iterator[tuple[str, list[_Part]]]:
    """The names of modules of `transformers`, with our matrices that each of them is."""
    config = model.config
    codec = plan_of(config).codec
    shapes = [each for each in codec.weight_shapes(config) if each[0].endswith(".weight")]
    for key, parts in groupby(shapes, lambda each: codec.fused_into(config, each[0])):
        name = codec.stored_as(key).removesuffix(".weight")
        yield name, [_Part(each.removesuffix(".weight"), shape[0]) for each, shape in parts]


# The name by which an adapter has its options, our matrices that it is of, A and B.
_Read = tuple[str, list[_Part], Tensor, Tensor]


def _of_matrices(model: Any, weights: dict[str, Tensor]) -> Iterator[_Read]:
    """The adapters of modules of `transformers`, which are taken out of what a file holds."""
    for stored, parts in _by_stored_name(model):
        a, b = (weights.pop(_PREFIX + stored + end, None) for end in (_A, _B))
        if a is not None and b is not None:
            yield stored, parts, a, b


def _of_experts(model: nn.Module, weights: dict[str, Tensor]) -> Iterator[_Read]:
    """Those of parameters in which `transformers` has the matrices of all experts.

    Of such a parameter :math:`A` has the rows of an expert after those of another, and :math:`B`
    the columns of all experts side by side, the first one of each, then the second. The adapter of
    a second parameter of the module is around that of the first, so their shapes tell which is
    which.
    """
    for name, layer in model.named_modules():
        if not isinstance(layer, MixtureOfExperts):
            continue
        one, count = layer.experts[0], len(layer.experts)
        for module in (f"{name}.experts{_BASE}", f"{name}.experts"):
            keys = _PREFIX + module + _A, _PREFIX + module + _B
            for parameter, matrices in _OF_EXPERTS.items():
                shapes = [tuple(one.get_parameter(f"{each}.weight").shape) for each in matrices]
                if not _is_of(weights, keys, shapes, count):
                    continue
                a, b = (weights.pop(key) for key in keys)
                for i, of_one in enumerate(a.chunk(count)):
                    parts = [
                        _Part(f"{name}.experts.{i}.{each}", outputs)
                        for each, (outputs, _) in zip(matrices, shapes, strict=True)
                    ]
                    yield f"{name}.experts.{parameter}", parts, of_one, b[:, i::count]


def _is_of(
    weights: Mapping[str, Tensor],
    keys: tuple[str, str],
    shapes: Sequence[tuple[int, ...]],
    count: int,
) -> bool:
    """Whether A and B are there and of such matrices, one above the other, of so many experts."""
    if not all(key in weights for key in keys):
        return False
    a, b = (weights[key] for key in keys)
    outputs, inputs = sum(shape[0] for shape in shapes), shapes[0][1]
    rows = len(a)
    return rows % count == 0 and a.shape == (rows, inputs) and b.shape == (outputs, rows)


class _Adapter(NamedTuple):
    """The adapter of a module of `transformers`: A, B, how much their product counts.

    The last is the number of tensors that ours have.
    """

    a: Tensor
    b: Tensor
    scale: float
    number: int


def _as_one(model: nn.Module, parts: Sequence[_Part]) -> _Adapter | None:
    """The adapters of matrices that are stored as one; None if none of them has one."""
    layers: list[Any] = [model.get_submodule(part.name) for part in parts]
    scales = [each.scaling["default"] for each in layers if _has_adapter(each)]
    if not scales:
        return None
    rows, columns = [], []
    for part, layer in zip(parts, layers, strict=True):
        if _has_adapter(layer):
            rows.append(layer.lora_A["default"].weight.detach().cpu())
            product = layer.lora_B["default"].weight.detach().cpu()
            columns.append(product * (layer.scaling["default"] / scales[0]))
        else:
            columns.append(torch.zeros(part.outputs, 0))
    return _Adapter(torch.cat(rows), torch.block_diag(*columns), scales[0], 2 * len(scales))


def _ends_of(names: Iterable[str]) -> set[str]:
    return {name.rpartition(".")[2] for name in names}


def _has_experts(block: nn.Module) -> bool:
    return any(isinstance(part, MixtureOfExperts) for part in block.modules())


def _has_adapter(layer: nn.Module) -> bool:
    return "default" in getattr(layer, "lora_A", {})


def _matrices(plan: Plan, model: nn.Module) -> Iterator[tuple[str, Any]]:
    for block in plan.blocks(model):
        for name, part in block.named_modules():
            if isinstance(part, (nn.Linear, Conv1D)):
                yield name, part
