"""The entries of a `config.json` that say how rotary positions turn."""

import dataclasses
from typing import Any

from transformer_layers.checkpoints.config_entries import (
    flag_entry,
    number_entry,
    require_computed,
    size_entry,
)
from transformer_layers.checkpoints.json_file import shown
from transformer_layers.positions.scaling import LinearScaling, Llama3Scaling, YaRNScaling

RopeScaling = LinearScaling | Llama3Scaling | YaRNScaling

_SCALINGS: dict[str, type[RopeScaling]] = {
    "linear": LinearScaling,
    "llama3": Llama3Scaling,
    "yarn": YaRNScaling,
}


def rotary_settings(entries: dict[str, Any], model: str) -> tuple[float, RopeScaling | None]:
    """Reads the base and the scaling, from either of the two forms that configs have.

    Args:
        entries: What `config.json` holds.
        model: What computes them, for the errors.

    Returns:
        The base, and what changes the frequencies, if there is anything.

    Raises:
        ValueError: If an entry is damaged, or asks for what is not computed.
    """
    forms = [entries[name] for name in ("rope_parameters", "rope_scaling") if entries.get(name)]
    for found in forms:
        if not isinstance(found, dict):
            raise ValueError(
                f"the settings of rotary positions must be an object, got {shown(found)}"
            )
    if len(forms) == 2 and forms[0] != forms[1]:
        raise ValueError(
            f"rope_scaling is {shown(forms[1])}, and rope_parameters beside it {shown(forms[0])}: "
            "one of the two must go"
        )
    given = dict(forms[0]) if forms else {}
    theta = given.pop("rope_theta", entries.get("rope_theta", 10_000.0))
    kind = given.pop("rope_type", given.pop("type", "default"))
    given.pop("type", None)
    require_computed(
        "partial_rotary_factor", given.pop("partial_rotary_factor", 1.0), (1.0, 1), model
    )
    if kind == "default":
        return number_entry("rope_theta", theta), None
    if kind not in _SCALINGS:
        raise ValueError(
            f"rope_type is {shown(kind)}, and {model} computes it for default, "
            f"{', '.join(_SCALINGS)} only"
        )
    scaling = _SCALINGS[kind]
    fields = {field.name: field for field in dataclasses.fields(scaling)}
    if "original_max_position_embeddings" in fields:
        name = "original_max_position_embeddings"
        given.setdefault(name, entries.get("max_position_embeddings"))
        if entries.get(name) is not None:  # before what the settings say, as in transformers
            given[name] = entries[name]
    unknown = sorted(given.keys() - fields.keys())
    if unknown:
        raise ValueError(f"rope_scaling has {shown(unknown)}, which a {kind} scaling does not have")
    missing = [
        name
        for name, field in fields.items()
        if field.default is dataclasses.MISSING and given.get(name) is None
    ]
    if missing:
        raise ValueError(f"rope_scaling must have {missing[0]} for a {kind} scaling")
    values = {name: _value(name, value) for name, value in given.items() if value is not None}
    return number_entry("rope_theta", theta), scaling(**values)


def scaling_entries(scaling: RopeScaling | None) -> dict[str, Any] | None:
    """What `rope_scaling` of a published `config.json` holds.

    Args:
        scaling: What changes the frequencies, if anything does.
    """
    if scaling is None:
        return None
    kind = next(name for name, each in _SCALINGS.items() if isinstance(scaling, each))
    given = {
        name: value for name, value in dataclasses.asdict(scaling).items() if value is not None
    }
    return {"rope_type": kind, **given}


def _value(name: str, value: object) -> Any:
    if name == "truncate":
        return flag_entry(name, value)
    if name == "original_max_position_embeddings":
        return size_entry(name, value)
    return number_entry(name, value)
