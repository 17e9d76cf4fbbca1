"""A reader's layer in the form that the checks call: what can be adapted is, and it is said."""

import copy
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from layer_checks.diagnosis.objects import as_module
from layer_checks.diagnosis.preparation import in_default_dtype, initialized, is_lazy, unnormed
from layer_checks.diagnosis.sandbox import OutOfTime
from layer_checks.kit.angles import NAMES, TABLES, angles_of, tables_by_name
from layer_checks.kit.arguments import (
    SYNONYMS,
    CannotTakeError,
    arranged,
    configuration_of,
    signature_of,
    vocabulary_of,
)
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.matching import heads_of
from layer_checks.kit.model_configs import READ, known_by_all_names

# Of what the axes of a mask are: the inputs of the queries, and of the keys, the first there is.
MASKED: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "mask": (("query", "x"), ("key", "query", "x")),
    "memory_mask": (("x",), ("memory",)),
}
# How others mean a mask in which True allows: what the mask becomes, and the words for it.
MASKS: Mapping[str, str] = {
    "inverted": "the mask is inverted: True blocks",
    "by head": "the mask is inverted, one for each head: True blocks",
    "head axis": "the mask gets an axis for the heads",
    "batch axis": "the mask gets an axis for the batch",
    "added": "the mask becomes 0 and -inf, to be added",
    "added, head axis": "the mask becomes 0 and -inf, with an axis for the heads",
    "padding": "the mask is one of padding, for each key: True blocks",
    "kept": "the mask is one of padding, for each key: 1 keeps",
    "true keeps": "the mask is one of padding, for each key: True keeps",
}
# What torch calls a mask in which True hides a key: it has no other meaning.
_HIDES = frozenset({"key_padding_mask", "src_key_padding_mask", "memory_key_padding_mask"})
# How others are given a causal mask that the book's layer makes itself: the words for it.
CAUSAL: Mapping[str, str] = {
    "blocked": "in which True blocks",
    "allowed": "in which True allows",
    "added": "of 0 and -inf",
}
# The attribute of a module that tells with which of the book's sizes it was built.
_SIZES = "_sizes_of_the_book"


class Adapted:
    """A candidate that is built and called as the book's layer is.

    Args:
        layer: What it is to be.
        candidate: The reader's class or function.
        extras: Further arguments of its constructor.

    Attributes:
        how: With what it is built, and called, where the book's layer is not.
        others: What else was done, in words.
        remarks: What is worth saying, and breaks no contract.
        clones: Whether it is given copies of its inputs.
        lenient: Whether it is built without the arguments that it does not take.
        mask: How masks are handed over, a key of `MASKS`; None for as they are.
        tables: How angles are handed over where a call takes them, a key of `TABLES`.
        causal: How a causal mask is where a call must be given one, a key of `CAUSAL`.
        edits: Whether it changed an input.
        inside: Whether a call of it goes on.
        singles: Whether it computed a float32 where no input was one, or keeps tables of them;
            None where that is not watched.
    """

    def __init__(
        self, layer: Layer, candidate: Candidate, extras: Mapping[str, Any] | None = None
    ) -> None:
        self.is_class = layer.is_class
        self.vocabulary = vocabulary_of(layer)
        self.candidate, self.extras = candidate, dict(extras or {})
        self.__signature__ = signature_of(candidate)  # what `inspect.signature` then tells of this
        self.ours = signature_of(layer.right)
        self.ours_called = signature_of(layer.right.forward) if self.is_class else self.ours
        self.options, self.attributes = dict(layer.options), layer.attributes
        self.implied = layer.implied
        self.by_name_alone = layer.by_name
        self.leading = layer.leading
        self.how: dict[str, dict[str, None]] = {"built": {}, "called": {}}
        self.others: dict[str, None] = {}
        self.remarks: dict[str, None] = {}
        self.clones = self.edits = self.lenient = self.inside = False
        self.mask: str | None = None
        self.tables: str | None = None
        self.causal: str | None = None
        self.singles: bool | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Builds the layer, or calls the function."""
        if not self.is_class:
            function = _function_of(self.candidate)
            signature = signature_of(getattr(function, "forward", function))
            args, kwargs = self._call_arguments(signature, args, kwargs)
            return self._result(function, args, kwargs)
        built = self._built(args, kwargs)
        original = getattr(built, "_orig_mod", None)
        if isinstance(built, nn.Module) and isinstance(original, nn.Module):
            self.remarks["compiled: what is checked is the module that was compiled"] = None
            built = original
        if isinstance(built, torch.jit.ScriptModule) and not inspect.isclass(self.candidate):
            built = _OfScript(built)
        built = self._as_module(built)
        if isinstance(built, nn.Module):
            built = self._prepared(built, args, kwargs)
            if self.singles is not None and _keeps_singles(built):
                self.singles = True
            self._hook(built)
        return built

    def _as_module(self, built: Any) -> Any:
        made = as_module(built)
        if made is not built:
            self.remarks["a plain object: its tensors are what a module would hold"] = None
        return made

    def _prepared(
        self, built: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> nn.Module:
        """The layer with weights of its own, in torch's default dtype."""
        if is_lazy(built):
            self._initialize(built, args, kwargs)
        for remark in (*unnormed(built), *in_default_dtype(built)):
            self.remarks[remark] = None
        return built

    def _initialize(self, built: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Calls a lazy layer once, with zeros of the width that the book's layer would have."""
        given = _given(self.ours, args, kwargs) or {}
        width = next(iter(given.values()), None)
        if self.leading is not None and isinstance(width, int):
            inputs = [torch.zeros(*self.leading, width)] * _required(self.ours_called)
            called = signature_of(built.forward)
            initialized(built, *self._call_arguments(called, tuple(inputs), {}, built))
        if is_lazy(built):
            raise AssertionError(
                "its lazy parameters have no shape yet: call it once on an input, then check it"
            )
        self.remarks["lazy: called once, so that its parameters have shapes"] = None

    def note(self, text: str) -> None:
        """Says something once."""
        self.others[text] = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done, in words, without repetition."""
        return (*self.names, *self.others)

    @property
    def names(self) -> tuple[str, ...]:
        """What is only called otherwise."""
        return tuple(f"{verb} with {', '.join(items)}" for verb, items in self.how.items() if items)

    def forget(self) -> None:
        """Takes back what was said."""
        for said in (*self.how.values(), self.others, self.remarks):
            said.clear()

    def _built(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        theirs = signature_of(self.candidate)
        given = _given(self.ours, args, kwargs)
        if theirs is None or given is None or _takes_anything(theirs):
            return self.candidate(*args, **kwargs)
        usual = _usual_config(self.candidate, theirs)
        sizes, config = given, given.get("config")
        given, read = _with_all_names(given, theirs)
        call = arranged(given, theirs, self.vocabulary, defaults=_defaults(self.ours), usual=usual)
        options = self.options | self.extras
        call.kwargs |= {
            name: value
            for name, value in options.items()
            if name in theirs.parameters and name not in given and name not in call.kwargs
        }
        try:
            built = self.candidate(*call.args, **call.kwargs)
        except (OutOfTime, KeyboardInterrupt):
            raise
        except BaseException as error:  # a reader's layer can raise anything
            for name, value in call.missing.items():
                if not self.lenient and name not in {*self.implied, *self.attributes}:
                    raise _not_taken(name, value) from error  # with which it might be built
            raise
        self.how["built"] |= dict.fromkeys(call.notes)
        for name, value in call.unread().items():
            if not self.lenient and name not in self.implied:
                self._set(built, name, value)
        if isinstance(built, nn.Module) and takes_tables(built):
            vars(built)[_SIZES] = sizes
        if read is not None and isinstance(built, nn.Module):
            if not all(hasattr(config, name) for name in read):
                self.how["built"]["a config that has the sizes under each name"] = None
            vars(built)[READ] = frozenset(read)
        return built

    def _set(self, built: Any, name: str, value: Any) -> None:
        """What the constructor does not take may be an attribute, as an eps often is."""
        attributes = [name, *self.vocabulary.get(name, ())] if name in self.attributes else []
        for attribute in attributes:
            if isinstance(getattr(built, attribute, None), float):
                setattr(built, attribute, value)
                self.note(f"its {attribute} is set: the constructor takes no {name}")
                return
        if name == "eps":
            self.note("it takes no eps: where values are compared, its own is taken")
        raise _not_taken(name, value)

    def _hook(self, built: nn.Module) -> None:
        called = getattr(built, "call_signature", None) or signature_of(built.forward)
        state: dict[str, Any] = {}

        def before(module: nn.Module, args: Any, kwargs: Any) -> Any:
            if _calls_itself(module):
                state["own"] = True
                return None
            args, kwargs = self._call_arguments(called, args, kwargs, module)
            args, kwargs = self._copied(args, kwargs)
            state["versions"] = _versions(args, kwargs)
            state["in double"] = _in_double(args, kwargs) or _of_double_weights(module, args)
            self.inside = True
            return args, kwargs

        def after(module: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
            if state.pop("own", False):
                return None
            self.inside = False
            if "versions" in state:  # not where the hook before it refused the call
                self._notice_edits(state.pop("versions"), args, kwargs)
            return self._in_double(self._tensor(output), state.pop("in double", False))

        built.register_forward_pre_hook(before, with_kwargs=True)
        built.register_forward_hook(after, with_kwargs=True, always_call=True)

    def _call_arguments(
        self,
        theirs: inspect.Signature | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        module: nn.Module | None = None,
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given = _given(self.ours_called, args, kwargs)
        if given is None or theirs is None or _takes_anything(theirs):
            return args, kwargs
        as_given = dict(given)
        for name, (queries, keys) in MASKED.items():
            if isinstance(given.get(name), Tensor) and self.mask is not None:
                query, key = _first_of(queries, as_given), _first_of(keys, as_given)
                given[name] = _as_meant(given[name], self.mask, query, key, module)
                self.note(MASKS[self.mask])
            elif name in given and given[name] is None:
                del given[name]
        self._give_causal_mask(given, theirs, module)
        self._give_tables(given, theirs, module)
        call = arranged(
            given, theirs, self.vocabulary, by_name_alone=self.by_name_alone, calls=True
        )
        for name, value in call.missing.items():
            if value is not None:
                of_book = " of the book" if name in ("cache", "caches") else ""
                raise CannotTakeError(f"its call takes no {name}{of_book}")
        unknown = not theirs.parameters.keys() >= kwargs.keys()
        if module is not None or call.kwargs or unknown:
            self.how["called"] |= dict.fromkeys(call.notes)
        return tuple(call.args), call.kwargs

    def _give_causal_mask(
        self, given: dict[str, Any], theirs: inspect.Signature, module: nn.Module | None
    ) -> None:
        """Gives a part of a model the causal mask that its model makes for it."""
        ours = self.ours_called.parameters if self.ours_called else {}
        taken = theirs.parameters.keys() & {"mask", *SYNONYMS["mask"]}
        x = next(iter(given.values()), None)
        if "mask" in ours or not taken or not isinstance(x, Tensor) or x.ndim != 3:
            return
        length = x.shape[-2]
        blocked = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        if module is not None and type(module).__module__.startswith("transformers."):
            kind, mask = "added", _added(blocked, x.dtype)[None, None]
        elif self.causal is not None:
            kind = self.causal
            masks = {"blocked": blocked, "allowed": ~blocked, "added": _added(blocked, x.dtype)}
            mask = masks[kind]
        else:
            return
        given["mask"] = mask
        text = f"it is given a causal mask {CAUSAL[kind]}, as its model gives one"
        self.remarks[text] = None

    def _give_tables(
        self, given: dict[str, Any], theirs: inspect.Signature, module: nn.Module | None
    ) -> None:
        """Gives a part of a model the angles of rotary positions, as its model computes them."""
        x = next(iter(given.values()), None)
        sizes = vars(module).get(_SIZES) if module is not None else None
        if self.tables is None or sizes is None or not isinstance(x, Tensor) or x.ndim < 2:
            return
        d_k = sizes.get("d_k") or sizes["d_model"] // sizes["num_heads"]
        angles = angles_of(torch.arange(x.shape[-2], device=x.device), d_k)
        tables = tables_by_name(angles, self.tables, x.dtype)
        given.update({name: tables[name] for name in NAMES & theirs.parameters.keys()})
        self.remarks[f"it is given {TABLES[self.tables]}, as its model gives them"] = None

    def _copied(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if not self.clones:
            return args, kwargs
        copied = [each.clone() if isinstance(each, Tensor) else each for each in args]
        return tuple(copied), {
            name: each.clone() if isinstance(each, Tensor) else each
            for name, each in kwargs.items()
        }

    def _result(self, function: Candidate, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args, kwargs = self._copied(args, kwargs)
        versions = _versions(args, kwargs)
        self.inside = True
        try:
            output = function(*args, **kwargs)
        finally:
            self.inside = False
        self._notice_edits(versions, args, kwargs)
        return self._in_double(self._tensor(output), _in_double(args, kwargs))

    def _notice_edits(self, versions: list[int], args: Any, kwargs: Any) -> None:
        self.edits |= versions != _versions(args, kwargs)

    def _in_double(self, output: Any, wanted: bool) -> Any:
        """A float32 in the dtype of its inputs, whose values can be compared then."""
        if wanted and isinstance(output, Tensor) and output.dtype == torch.float32:
            self.note("it returns float32 where its input is float64")
            return output.double()
        return output

    def _tensor(self, output: Any) -> Any:
        """The tensor in what a layer returns."""
        if isinstance(output, Tensor) or output is None:
            return output
        if hasattr(output, "__array__"):
            self.note("it returns an array of numpy, which has no gradient")
            return torch.as_tensor(output)
        parts = output.values() if isinstance(output, Mapping) else output
        if isinstance(output, tuple | list | Mapping):
            tensors = [each for each in parts if isinstance(each, Tensor)]
            if tensors:
                kind = type(output).__name__
                self.note(f"it returns a {kind}, of which the first tensor is taken")
                return tensors[0]
        return output


class WatchForSingles(TorchDispatchMode):
    """Notices a float32 that a candidate computes of inputs in float64.

    It stands around whole calls, and not in hooks, which torch skips where a layer ends the program
    or is out of time.
    """

    def __init__(self, adapted: Adapted) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self.adapted = adapted
        adapted.inside = False

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        if self.adapted.inside and isinstance(result, Tensor) and result.dtype == torch.float32:
            self.adapted.singles = True
        return result


def _calls_itself(module: nn.Module) -> bool:
    """Whether a module's own method calls it in its own form, as `generate` calls `self(ids)`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") in _BETWEEN:
        frame = frame.f_back
    code = frame.f_code
    if not code.co_argcount or frame.f_locals.get(code.co_varnames[0]) is not module:
        return False
    method = inspect.unwrap(getattr(type(module), code.co_name, _calls_itself))
    return getattr(method, "__code__", None) is code


# What stands between a call of a module and its hooks.
_BETWEEN = (__name__, nn.Module.__module__)


def _keeps_singles(module: nn.Module) -> bool:
    """Whether a layer without weights keeps tables in float32, which doubles do not make exact."""
    kept = [*module.buffers(), *(each for part in module.modules() for each in vars(part).values())]
    singles = [isinstance(each, Tensor) and each.dtype == torch.float32 for each in kept]
    return any(singles) and not list(module.parameters())


def _not_taken(name: str, value: Any) -> CannotTakeError:
    """The error for an argument that a constructor does not take."""
    text = f"it takes no {name}, so that {name}={value!r} cannot be asked for"
    return CannotTakeError(text, name)


class _OfScript(nn.Module):
    """A module that calls a scripted one, which takes no hooks itself."""

    def __init__(self, scripted: nn.Module) -> None:
        super().__init__()
        self.scripted = scripted

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.scripted(*args, **kwargs)


def _function_of(candidate: Candidate) -> Candidate:
    """A function as it is; of a class of modules without sizes, such as nn.GELU, one of them."""
    if inspect.isclass(candidate) and issubclass(candidate, nn.Module):
        return candidate()
    return copy.deepcopy(candidate) if isinstance(candidate, nn.Module) else candidate


def _given(
    signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The arguments by the book's names."""
    if signature is None:
        return None
    parameters = signature.parameters
    if "self" in parameters:
        signature = signature.replace(
            parameters=[each for name, each in parameters.items() if name != "self"]
        )
    try:
        return dict(signature.bind(*args, **kwargs).arguments)
    except TypeError:
        return None


def _defaults(signature: inspect.Signature | None) -> dict[str, Any]:
    parameters = signature.parameters.items() if signature else ()
    return {
        name: each.default
        for name, each in parameters
        if each.default is not inspect.Parameter.empty
    }


def _required(signature: inspect.Signature | None) -> int:
    """How many arguments must be given."""
    parameters = signature.parameters.items() if signature else ()
    return sum(
        name != "self" and each.default is inspect.Parameter.empty for name, each in parameters
    )


def _usual_config(candidate: Candidate, theirs: inspect.Signature) -> Any:
    """The configuration that the module of a layer of transformers is for, None if there is none.

    Of its values those are of use that say no size.
    """
    module = sys.modules.get(getattr(candidate, "__module__", None) or "")
    if module is None or not module.__name__.startswith("transformers."):
        return None
    named = [each.annotation for each in theirs.parameters.values()]
    known = [each for name, each in vars(module).items() if name.endswith("Config")]
    classes = [each for each in (*named, *known) if inspect.isclass(each)]
    classes = [each for each in classes if each.__name__.endswith("Config")]
    return classes[0]() if classes else None


def _with_all_names(
    given: dict[str, Any], theirs: inspect.Signature
) -> tuple[dict[str, Any], set[str] | None]:
    """The arguments, with the configuration of a model under every name that its sizes have.

    Returns:
        The arguments, and which of its options are read; None where there is none.
    """
    config = given.get("config")
    if not is_dataclass(config):
        return given, None
    classes = map(configuration_of, theirs.parameters.values())
    known = next((each for each in classes if each is not None), None)
    config, read = known_by_all_names(config, known)
    return given | {"config": config}, read


def _takes_anything(signature: inspect.Signature) -> bool:
    """Whether it hands on what it is given by place, beside options of its own."""
    kinds = {each.kind for each in signature.parameters.values()}
    handed_on = {
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    }
    return inspect.Parameter.VAR_POSITIONAL in kinds and kinds <= handed_on


def _versions(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[int]:
    return [each._version for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]


def _in_double(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether an input is a float64."""
    return any(
        isinstance(each, Tensor) and each.dtype == torch.float64
        for each in (*args, *kwargs.values())
    )


def _of_double_weights(module: nn.Module, args: tuple[Any, ...]) -> bool:
    """Whether tokens are given to a model with weights in float64."""
    tensors = [each for each in args if isinstance(each, Tensor)]
    first = next(module.parameters(), None)
    return (
        first is not None
        and first.dtype == torch.float64
        and bool(tensors)
        and not any(each.is_floating_point() for each in tensors)
    )


def _added(blocked: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask of 0 and -inf, to be added."""
    return torch.zeros(blocked.shape, dtype=dtype).masked_fill(blocked, -torch.inf)


def _first_of(names: Sequence[str], given: Mapping[str, Any]) -> Any:
    """The first of these arguments that is given."""
    return next((given[name] for name in names if name in given), None)


def _as_meant(mask: Tensor, meaning: str, query: Any, key: Any, module: nn.Module | None) -> Tensor:
    """A mask of ours in another meaning, for these inputs of queries and keys."""
    if mask.dtype != torch.bool:
        return mask
    if meaning in ("padding", "kept", "true keeps"):
        if mask.ndim != 3 or mask.shape[-2] != 1:
            raise CannotTakeError("its mask is one of padding alone")
        keys = mask[:, 0]
        if meaning == "kept":
            return keys.long()
        return ~keys if meaning == "padding" else keys
    if meaning == "inverted":
        return ~mask
    if meaning == "by head":
        if mask.ndim < 3 or not isinstance(query, Tensor) or not isinstance(key, Tensor):
            return ~mask
        shape = (query.shape[0], query.shape[-2], key.shape[-2])
        heads = heads_of(module) if module is not None else 1
        return (~mask).expand(shape).repeat_interleave(heads, dim=0)
    if meaning == "batch axis":
        return mask[None] if mask.ndim == 2 else mask
    if meaning.endswith("head axis") and mask.ndim == 3:
        mask = mask.unsqueeze(-3)
    if meaning.startswith("added"):
        dtype = query.dtype if isinstance(query, Tensor) else torch.float32
        return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, -torch.inf)
    return mask


def is_compiled(candidate: object) -> bool:
    """Whether it is what `torch.compile` returns for a module."""
    return isinstance(getattr(candidate, "_orig_mod", None), nn.Module)


def meanings_of_masks(candidate: object) -> tuple[str, ...]:
    """What a mask of a class's layers may mean, keys of `MASKS`: torch's name for it says one."""
    candidate = getattr(candidate, "candidate", candidate)  # where it is called in another form
    called = signature_of(getattr(candidate, "forward", None) or (lambda: None))
    hides = called is not None and bool(_HIDES & called.parameters.keys())
    return tuple(each for each in MASKS if not (hides and each in ("kept", "true keeps")))


def wants_a_mask(candidate: object) -> bool:
    """Whether a call of a class's layers must be given a mask."""
    called = signature_of(getattr(candidate, "forward", None) or (lambda: None))
    parameters = called.parameters if called is not None else {}
    masks = [each for name, each in parameters.items() if name in {"mask", *SYNONYMS["mask"]}]
    return any(each.default is inspect.Parameter.empty for each in masks)


def takes_tables(module: object) -> bool:
    """Whether a call of a module takes the angles of rotary positions."""
    called = signature_of(getattr(module, "forward", None) or (lambda: None))
    return called is not None and bool(NAMES & called.parameters.keys())
