"""Calls of a reader's layer: the book's arguments, under the names and in the order it takes."""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any, TypeAlias

from layer_checks.kit.definitions import Layer
from layer_checks.kit.matching import HEADS

# What other works call the arguments that layers of several kinds have. Those of one kind alone are
# declared with it.
Vocabulary: TypeAlias = Mapping[str, Collection[str]]
SYNONYMS: Mapping[str, frozenset[str]] = {
    "d_model": frozenset(
        "normalized_shape hidden_size dim d n_embd embed_dim features size width emb_dim n_state "
        "hidden_dim dim_model model_dim d_embed dims embedding_dim embed_size ndim d_in n_units "
        "num_features num_channels channels idim n_feat input_dim hidden nx units heads_dim".split()
    ),
    "num_heads": frozenset(HEADS),
    "d_ff": frozenset(
        "dim_feedforward hidden_dim ffn_dim intermediate_size d_hidden d_inner hidden_units ff_dim "
        "dim_ff n_inner ffn_hidden hidden_size inner_dim mlp_dim ffn_num_hiddens hidden d_expert "
        "expert_dim moe_intermediate_size".split()
    ),
    "dropout": frozenset(
        "p rate drop dropout_p dropout_rate dropout_prob drop_rate attn_pdrop resid_pdrop "
        "embd_pdrop attn_dropout attention_dropout hidden_dropout_prob "
        "attention_probs_dropout_prob hidden_dropout resid_dropout attention_dropout_rate "
        "drop_prob".split()
    ),
    "eps": frozenset(
        "epsilon variance_epsilon layer_norm_eps layer_norm_epsilon rms_norm_eps norm_eps".split()
    ),
    "bias": frozenset("use_bias qkv_bias attention_bias add_bias".split()),
    "query": frozenset("q queries queries_ xq".split()),
    "key": frozenset("k keys xk".split()),
    "value": frozenset("v values xv".split()),
    "mask": frozenset(
        "attn_mask src_mask attention_mask attn_bias padding_mask mask_ src_key_mask".split()
    ),
    "seq": frozenset("seq_len length max_len n max_length".split()),
    "x": frozenset("input inputs hidden_states h src".split()),
}
# Values that ask for nothing, so that they may be left out.
_NEUTRAL = {
    "dropout": 0.0,
    "dropout_p": 0.0,
    "bias": True,
    "mask": None,
    "memory_mask": None,
    "cache": None,
    "past": 0,
}
# What others are told twice: the width of the result is that of the input.
_OUT = frozenset("d_out dim_out out_dim output_dim d_output out_features embed_dim_out".split())
# What others want to be told, and what the book's layers always do.
_OPTIONS: Mapping[str, object] = {"batch_first": True}
# Positions for layers that must be told how many they will see: a little more than any check has.
_LENGTH = 1100
# What others must be told, and what does not matter here.
_WANTED: Mapping[str, object] = {
    "block_size": _LENGTH,
    "max_len": _LENGTH,
    "max_seq_len": _LENGTH,
    "context_length": _LENGTH,
    "n_positions": _LENGTH,
    "n_ctx": _LENGTH,
    "max_position_embeddings": _LENGTH,
    "layer_idx": 0,
    "layer_id": 0,
    "bias": True,
    "qkv_bias": True,
    "use_bias": True,
    "batch_first": True,
    "is_causal": False,
}
# The width of a head, which others may be told by itself.
_HEAD_WIDTHS = frozenset("dim_head head_dim d_head d_k d_v d_kv head_size dim_per_head".split())
_NUMBERS = frozenset({"layer_idx", "layer_id"})  # of a layer among its like
# Never meant by place.
_BY_NAME_ALONE = frozenset().union(
    *({name} | SYNONYMS[name] for name in ("num_heads", "dropout", "eps", "bias", "mask")),
    {"device", "dtype", "position_ids", "use_cache"},
    {"past_key_values", "past_key_value", "layer_past"},  # caches of another kind
)
_CONFIGS = {"config", "cfg", "conf", "args", "hparams", "params", "configuration"}


def vocabulary_of(layer: Layer) -> Vocabulary:
    """What other works call a layer's arguments, by the names that it has for them."""
    return {**SYNONYMS, **layer.synonyms}


class CannotTakeError(AssertionError):
    """A check cannot ask what it asks: the layer has no such argument.

    Attributes:
        argument: Its name; empty where that does not matter.
    """

    def __init__(self, text: str, argument: str = "") -> None:
        super().__init__(text)
        self.argument = argument


class Config:
    """A configuration that has each size under every name that it is known by."""

    def __init__(
        self,
        ours: Mapping[str, Any],
        vocabulary: "Vocabulary",
        used: dict[str, Any],
        usual: Any = None,
    ) -> None:
        self._ours, self._vocabulary, self._used = ours, vocabulary, used
        self._usual = usual
        self._asked: dict[str, str] = {}

    def _is(self, name: str, known: str) -> bool:
        return name == known or name in self._vocabulary.get(known, ())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        named = [each for each in (*self._ours, *_WANTED) if self._is(name, each)]
        # `hidden_dim` is one size or another: the one that has not been asked for by another name.
        free = [each for each in named if self._asked.get(each, name) == name]
        own = isinstance(getattr(self._usual, name, None), bool)  # as its model usually has it
        for known in (free or named)[:1]:
            if own and known not in self._ours:
                break
            value = self._ours[known] if known in self._ours else _WANTED[known]
            self._used[known], self._asked[known] = value, name
            return value
        if name == "multiple_of" and "d_ff" in self._ours:  # as Meta's files say the width
            self._used["d_ff"] = self._ours["d_ff"]
            return self._ours["d_ff"]
        if name == "ffn_dim_multiplier":
            return None
        if name in SYNONYMS["dropout"]:  # of a layer of the book's that drops nothing
            return 0.0
        usual = getattr(self._usual, name, _LENGTH)
        if usual is None or isinstance(usual, bool | str):
            return usual
        raise AttributeError(
            f"the configuration has no {name!r}: pass a function that takes our arguments, and "
            "builds it"
        )

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self, name)
        except AttributeError as error:
            raise KeyError(name) from error

    def get(self, name: str, default: Any = None) -> Any:
        """As a dictionary's."""
        return getattr(self, name, default)


@dataclass
class Arranged:
    """A call in the form that a reader's layer takes.

    Attributes:
        args: Positional arguments.
        kwargs: The others.
        notes: What was done, in words.
        missing: Arguments that it does not take, by the book's names.
        read: Those that a configuration was asked for; None where there is none.
        to_read: Those that it was given.
    """

    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    missing: dict[str, Any] = field(default_factory=dict)
    read: dict[str, Any] | None = None
    to_read: dict[str, Any] = field(default_factory=dict)

    def unread(self) -> dict[str, Any]:
        """What was not taken, once the layer is built."""
        if self.read is None:
            return self.missing
        found = {name: each for name, each in self.to_read.items() if name not in self.read}
        return self.missing | {
            name: each for name, each in found.items() if not _asks_for_nothing(name, each)
        }


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """A signature, None where Python cannot tell."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def taken_by(candidate: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """What a function takes, or the layers of a class; nothing where Python cannot tell."""
    forward = getattr(candidate, "forward", None) if inspect.isclass(candidate) else None
    signature = signature_of(forward or candidate)
    parameters = signature.parameters if signature else {}
    return {name: each for name, each in parameters.items() if name != "self"}


def configuration_of(parameter: inspect.Parameter) -> type | None:
    """The class of configurations, a dataclass, that an argument is or has for its default."""
    for each in (parameter.annotation, type(parameter.default)):
        if inspect.isclass(each) and is_dataclass(each):
            return each
    return None


def arranged(
    ours: Mapping[str, Any],
    theirs: inspect.Signature,
    vocabulary: Vocabulary = SYNONYMS,
    *,
    by_name_alone: Collection[str] = (),
    defaults: Mapping[str, Any] | None = None,
    calls: bool = False,
    usual: Any = None,
) -> Arranged:
    """Gives each argument of ours to the one of theirs that has its name, or a synonym, or place.

    Args:
        ours: The book's arguments that are given, by name, in order.
        theirs: What the reader's layer takes.
        vocabulary: What others call ours.
        by_name_alone: Those of ours that are never given by place.
        defaults: The book's values of the others, for a configuration.
        calls: Whether optional ones may be taken by place too, as in a call of `forward`.
        usual: A configuration whose flags and words are taken where it is asked for such.
    """
    kinds = inspect.Parameter
    named = [
        each
        for each in theirs.parameters.values()
        if each.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
    ]
    by_name = _by_name(ours, [each.name for each in named], vocabulary)
    result = Arranged()
    required = [each.name for each in named if each.default is kinds.empty]
    configs = [
        name for name in required if name in _CONFIGS or configuration_of(theirs.parameters[name])
    ]
    told = [name for name in required if name in _NUMBERS]  # beside it, such as a layer's number
    if len(configs) == 1 and len(required) == 1 + len(told) and not _CONFIGS & ours.keys():
        result.to_read = dict(ours)
        result.kwargs = {name: _WANTED[name] for name in told}
        return _with_config({**(defaults or {}), **ours}, vocabulary, configs[0], result, usual)
    if "config" in ours and "config" not in by_name.values() and not calls:
        by_name |= dict.fromkeys(
            [each.name for each in named if configuration_of(each)][:1], "config"
        )
    widths = [each for each, known in by_name.items() if known == "d_model"]
    if widths and not calls:
        by_name |= {each: "d_model" for each in required if each in _OUT and each not in by_name}
    rest = [name for name in ours if name not in by_name.values()]
    by_place = [name for name in rest if name not in by_name_alone]
    for each in named:
        if each.name in by_name or not by_place or (each.default is not kinds.empty and not calls):
            continue
        if each.name not in _WANTED and each.name not in _BY_NAME_ALONE:
            by_name[each.name] = by_place.pop(0)
            rest.remove(by_name[each.name])
    has_kwargs = any(each.kind is kinds.VAR_KEYWORD for each in theirs.parameters.values())
    masks = {
        name
        for known, others in vocabulary.items()
        for name in (known, *others)
        if known.endswith("mask")
    }
    positional = True
    for each in named:
        if each.name in by_name:
            value = ours[by_name[each.name]]
            if calls and each.default is None and _asks_for_nothing(by_name[each.name], value):
                value = None  # a dropout may be a module there
        elif each.name in _OPTIONS and each.name not in ours:
            value = _OPTIONS[each.name]
            result.notes.append(f"{each.name}={value}")
        elif (width := _head_width(each, ours)) and not calls:
            value = width
            result.notes.append(f"{each.name} of d_model / num_heads")
        elif each.default is kinds.empty and each.name in _WANTED:
            value = _WANTED[each.name]
            result.notes.append(f"{each.name}={value}")
        elif _is_short(each) and not calls:
            value = _WANTED[each.name]
            result.notes.append(f"{each.name}={value}")
        elif each.default is kinds.empty and (known := _known(each.name, vocabulary, defaults)):
            value = (defaults or {})[known]
        elif each.default is kinds.empty and each.name in masks:
            value = None
        else:
            positional = False  # its default stands, or Python names what is missing
            continue
        if positional and each.kind is not kinds.KEYWORD_ONLY:
            result.args.append(value)
        else:
            result.kwargs[each.name] = value
    for name in rest:
        nothing = _asks_for_nothing(name, ours[name])
        if has_kwargs and (name not in _NEUTRAL or not (calls or nothing)):
            result.kwargs[name] = ours[name]
        elif not nothing:
            result.missing[name] = ours[name]
    result.notes[:0] = [
        f"{given} for {known}"
        for given, known in by_name.items()
        if given != known and known != "x"
    ]
    return result


def _head_width(parameter: inspect.Parameter, ours: Mapping[str, Any]) -> int | None:
    """The width of a head that somebody's layer is told, None where it is told none."""
    d_model, heads = ours.get("d_model"), ours.get("num_heads")
    if parameter.name not in _HEAD_WIDTHS or parameter.default is None or not (d_model and heads):
        return None
    return int(d_model // heads)


def _known(name: str, vocabulary: Vocabulary, defaults: Mapping[str, Any] | None) -> str:
    """The argument of the book's with a default that others call so, empty if there is none."""
    found = (each for each in defaults or () if name == each or name in vocabulary.get(each, ()))
    return next(found, "")


def _is_short(parameter: inspect.Parameter) -> bool:
    """Whether it is a number of positions that a layer sees, by default fewer than a check has."""
    default = parameter.default
    fixed = isinstance(default, int) and not isinstance(default, bool)
    return _WANTED.get(parameter.name) == _LENGTH and fixed and default < _LENGTH


def _asks_for_nothing(name: str, value: Any) -> bool:
    """Whether an argument may as well be left out."""
    return value is None or (name in _NEUTRAL and value == _NEUTRAL[name])


def _by_name(ours: Mapping[str, Any], theirs: list[str], vocabulary: Vocabulary) -> dict[str, str]:
    found = {name: name for name in theirs if name in ours}
    for name in theirs:
        for known in ours:
            free = name not in found and known not in found.values()
            if free and name in vocabulary.get(known, ()):
                found[name] = known
    return found


def _with_config(
    ours: Mapping[str, Any], vocabulary: Vocabulary, name: str, result: Arranged, usual: Any
) -> Arranged:
    result.read = {}
    config = Config(ours, vocabulary, result.read, usual)
    if result.kwargs:
        result.kwargs[name] = config
    else:
        result.args.append(config)
    result.notes.append(f"a {name} that has the sizes under each name")
    return result
