"""The entries of a `config.json` that say how rotary positions turn."""

import dataclasses
from typing import Any

from transformer_layers.checkpoints.config_entries import (
    flag_entry,
    number_entry,
    size_entry,
)
from transformer_layers.checkpoints.json_file import shown
from transformer_layers.positions.scaling import (
    DynamicNTKScaling,
    LinearScaling,
    Llama3Scaling,
    LongRoPEScaling,
    YaRNScaling,
)

RopeScaling = LinearScaling | DynamicNTKScaling | Llama3Scaling | LongRoPEScaling | YaRNScaling

_SCALINGS: dict[str, type[RopeScaling]] = {
    "linear": LinearScaling,
    "dynamic": DynamicNTKScaling,
    "llama3": Llama3Scaling,
    "longrope": LongRoPEScaling,
    "yarn": YaRNScaling,
}
_FORMS = ("rope_parameters", "rope_scaling")
_LENGTH = "original_max_position_embeddings"
_SHARE = "partial_rotary_factor"
_WITH_LENGTH = ("llama3", "longrope", "yarn")
_FORMER = {"su": "longrope"}  # the name in Phi-3's first files
_LISTS = ("short_factor", "long_factor")
# What changes nothing, and what there is for any kind of scaling: one of another kind changes
# nothing, as in transformers.
_INERT = ("type", "finetuned")
_KNOWN = {"rope_theta", "rope_type", _SHARE, *_INERT}
_KNOWN |= {field.name for scaling in _SCALINGS.values() for field in dataclasses.fields(scaling)}
_KNOWN |= {"mrope_section"}


def rotary_settings(
    entries: dict[str, Any], model: str, default: float = 10_000.0
) -> tuple[float, RopeScaling | None, float]:
    """Reads base, scaling and share, from either of the two forms that configs have.

    A setting can stand in several places, and versions of `transformers` differ in which of them
    counts. So all must say the same.

    Args:
        entries: What `config.json` holds.
        model: What computes them, for the errors.
        default: The base where none is given.

    Returns:
        The base; what changes the frequencies, if there is anything; and which share of a head's
        features turns.

    Raises:
        ValueError: If an entry is damaged, asks for what is not computed, or contradicts another.
    """
    forms = {name: _form(name, entries, model) for name in _FORMS if entries.get(name)}
    if len(forms) == 2:
        _require_same(*forms.values())
    where, given = forms.popitem() if forms else (_FORMS[0], {})
    theta = number_entry("rope_theta", given.pop("rope_theta", entries.get("rope_theta", default)))
    share = given.pop(_SHARE, entries.get(_SHARE))
    share = 1.0 if share is None else number_entry(_SHARE, share)
    kind = given.pop("rope_type", None)
    if kind is None and given:
        raise ValueError(f"{where} has {shown(sorted(given))}, and no rope_type that says for what")
    if kind in (None, "default"):
        return theta, None, share
    scaling = _SCALINGS[kind]
    fields = {field.name: field for field in dataclasses.fields(scaling)}
    length = entries.get("max_position_embeddings")
    if kind == "dynamic":
        given[_LENGTH] = length  # as in transformers, whatever else is said
    elif _LENGTH in fields and kind != "longrope":
        given.setdefault(_LENGTH, length)
    original = given.get(_LENGTH)
    if kind == "longrope" and given.get("factor") is None and None not in (length, original):
        longest = size_entry("max_position_embeddings", length)
        given["factor"] = longest / size_entry(_LENGTH, original)
    missing = [
        name
        for name, field in fields.items()
        if field.default is dataclasses.MISSING and given.get(name) is None
    ]
    if missing:
        raise ValueError(f"{where} must have {missing[0]} for a {kind} scaling")
    values = {
        name: _value(name, value)
        for name, value in given.items()
        if name in fields and value is not None
    }
    return theta, scaling(**values), share


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
    if kind == "dynamic":
        del given[_LENGTH]  # which is max_position_embeddings
    return {"rope_type": kind, **given}


def _form(name: str, entries: dict[str, Any], model: str) -> dict[str, Any]:
    """The settings of one form and those that stand beside it, each under its present name."""
    found = entries[name]
    if not isinstance(found, dict):
        raise ValueError(f"the settings of rotary positions must be an object, got {shown(found)}")
    nested = sorted(key for key, value in found.items() if isinstance(value, dict))
    if nested:
        raise ValueError(
            f"{name} has settings of their own for {shown(nested)}, and {model} has the same for "
            "all layers"
        )
    kind = _agreed({f"rope_type in {name}": found.get("rope_type"), "type": found.get("type")})
    kind = _FORMER.get(kind, kind) if isinstance(kind, str) else kind
    if kind not in (None, "default") and (not isinstance(kind, str) or kind not in _SCALINGS):
        raise ValueError(
            f"rope_type is {shown(kind)}, and {model} computes it for default, "
            f"{', '.join(_SCALINGS)} only"
        )
    unknown = sorted(found.keys() - _KNOWN)
    if unknown:
        raise ValueError(
            f"{name} has {shown(unknown)}, which a {kind or 'default'} scaling does not have"
        )
    settled = {**found, "rope_type": kind}
    for key in ("rope_theta", _SHARE, _LENGTH):
        if entries.get(key) is not None and (key != _LENGTH or kind in _WITH_LENGTH):
            places = {f"{key} in {name}": found.get(key), f"{key} beside it": entries[key]}
            settled[key] = _agreed(places)
    return {
        key: value
        for key, value in settled.items()
        if key not in _INERT and (value is not None or key == "rope_theta")
    }


def _agreed(places: dict[str, object]) -> object:
    """The value of a setting that stands in two places, of which one may be empty."""
    given = {place: value for place, value in places.items() if value is not None}
    first, *others = given.values() or (None,)
    if others and others != [first]:
        one, other = given
        raise ValueError(
            f"{one} is {shown(first)}, and {other} is {shown(others[0])}: one of the two must go"
        )
    return first


def _require_same(parameters: dict[str, Any], scaling: dict[str, Any]) -> None:
    """Refuses two forms that do not say the same, with what they differ in."""
    names = parameters.keys() | scaling.keys()
    differing = {name for name in names if parameters.get(name) != scaling.get(name)}
    if differing:
        one, other = (
            shown({name: form[name] for name in sorted(differing & form.keys())})
            for form in (scaling, parameters)
        )
        raise ValueError(
            f"rope_scaling is {one}, and rope_parameters beside it {other}: one of the two must "
            "go, and the other one must have all that is to count, such as rope_theta"
        )


def _value(name: str, value: object) -> Any:
    if name == "truncate":
        return flag_entry(name, value)
    if name == "original_max_position_embeddings":
        return size_entry(name, value)
    if name in _LISTS:
        if not isinstance(value, list):
            raise ValueError(f"{name} must be a list of numbers, got {shown(value)}")
        return tuple(number_entry(name, each) for each in value)
    return number_entry(name, value)
