"""Three lines to paste for a check that fails, which show the value that is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.diagnosis.recording import Call, Record
from layer_checks.diagnosis.running import Result, apart
from layer_checks.evidence.randomness import repeatable
from layer_checks.kit.candidates import built, counterparts, weights_of
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.matching import Match

_LEAST = 1e-7  # of the largest value: a smaller difference is rounding
_PLAIN = (bool, int, float, str, type(None))


def name_of(candidate: Candidate) -> str:
    """What a candidate is called in lines to paste."""
    name = getattr(candidate, "__name__", "") or type(candidate).__name__
    return name if name.isidentifier() else "candidate"


def of_report(
    layer: Layer,
    candidate: Candidate,
    results: Sequence[Result],
    seed: int,
    names: Mapping[str, str],
) -> tuple[Result, ...]:
    """Results of which those that fail have lines that run the check again, and what it found."""
    given = f", names={dict(names)!r}" if names else ""
    given += ", adapter=adapter" if getattr(candidate, "is_given", False) else ""
    called = f'check("{layer.name}", {name_of(candidate)}, seed={seed}{given})'
    found = []
    for result in results:
        if result.word == "failed":
            told = ("where", result.where) if result.where else ("text", result.text)
            last = f'report["{result.name}"].{told[0]}  # {told[1]}'
            lines = f"from layer_checks import check\nreport = {called}\n{last}"
            result = replace(result, example=lines)
        found.append(result)
    return tuple(found)


def of_values(layer: Layer, record: Record, match: Match | None, seed: int) -> str:
    """Lines that build the layer, and call it with inputs of the shapes with which a check fails.

    Args:
        layer: What the candidate is to be.
        record: How the check built and called it.
        match: How its weights are matched.
        seed: Of the lines' own draws.

    Returns:
        Three lines, whose last ends with the value that comes out, and the one that should. Empty
        where such inputs do not show what is wrong, or where chance decides.
    """
    if record.built is None or record.called is None:
        return ""
    arguments = _written(record.built)
    inputs = _inputs(record.called)
    if arguments is None or inputs is None:
        return ""
    name = name_of(record.candidate)
    mode = "" if record.training else ".eval()"
    lines = [
        f"layer = {name}({arguments}).double(){mode}; torch.manual_seed({seed})",
        "for p in layer.parameters(): torch.nn.init.normal_(p, std=0.5)",
        f"layer({inputs})",
    ]
    found = _run(layer, record, match, lines, name)
    if found is None:
        return ""
    index, value, expected = found
    written, other = apart(value, expected)
    place = ", ".join(map(str, index))
    lines[-1] += f"[{place}]  # {written}, not {other}"
    return "\n".join(lines)


def _run(
    layer: Layer, record: Record, match: Match | None, lines: Sequence[str], name: str
) -> tuple[tuple[int, ...], float, float] | None:
    """The worst place, what the lines give there, and what the book's layer gives."""
    if record.built is None:
        return None
    names: dict[str, Any] = {"torch": torch, name: record.candidate}
    with repeatable(0):
        exec("\n".join(lines[:2]), names)
        state = torch.get_rng_state()
        with torch.no_grad():
            value, again = (_evaluated(lines[2], names, state) for _ in range(2))
            right = with_weights_of(layer, names["layer"], match, record.ours or record.built)
            if right is None:
                return None
            right.train(record.training)
            expected = _evaluated(lines[2], {**names, "layer": right}, state)
    if not isinstance(value, Tensor) or not isinstance(expected, Tensor):
        return None
    if value.shape != expected.shape or not torch.equal(value, again) or not value.numel():
        return None
    difference = (value.double() - expected.double()).abs().nan_to_num(nan=torch.inf)
    worst = int(difference.argmax())
    if not float(difference.flatten()[worst]) > _LEAST * (1 + float(expected.abs().max())):
        return None
    index = tuple(int(each) for each in torch.unravel_index(torch.tensor(worst), value.shape))
    return index, float(value[index]), float(expected[index])


def _evaluated(line: str, names: dict[str, Any], state: Tensor) -> Any:
    torch.set_rng_state(state)
    result = eval(line, names)
    return result[0] if isinstance(result, tuple) else result


def with_weights_of(
    layer: Layer, theirs: nn.Module, match: Match | None, call: Call
) -> nn.Module | None:
    """The book's layer with the weights of another one; None where these are not all known."""
    right = built(layer.right, *call.args, **call.kwargs).double().eval()
    own = weights_of(theirs)
    wanted = weights_of(right)
    if match is not None:
        found = match.as_ours(theirs, wanted, own, summed=False)
    else:
        found = {known: own[name] for name, known in counterparts(theirs, wanted).items()}
    parameters = dict(right.named_parameters())
    with torch.no_grad():
        for name, parameter in parameters.items():
            value = found.get(name)
            if value is None and not name.endswith("bias"):
                return None
            if value is not None and value.shape != parameter.shape:
                return None
            parameter.copy_(torch.zeros_like(parameter) if value is None else value)
    return right


def _written(call: Call) -> str | None:
    """The arguments of a constructor as code, None where one is no number, word or flag."""
    if not all(isinstance(each, _PLAIN) for each in (*call.args, *call.kwargs.values())):
        return None
    args = [repr(each) for each in call.args]
    return ", ".join([*args, *(f"{name}={each!r}" for name, each in call.kwargs.items())])


def _inputs(call: Call) -> str | None:
    """Inputs of the same shapes as code; None where they are no plain numbers."""
    written = [(f"{name}=", each) for name, each in call.kwargs.items()]
    found = []
    for name, each in [*(("", each) for each in call.args), *written]:
        code = _input(each)
        if code is None:
            return None
        found.append(name + code)
    return ", ".join(found)


def _input(value: Any) -> str | None:
    if isinstance(value, _PLAIN):
        return repr(value)
    if not isinstance(value, Tensor) or value.numel() == 0 or value.numel() > 100_000:
        return None
    axes = ", ".join(map(str, value.shape))
    if value.dtype == torch.bool:
        if value.ndim > 1 and torch.equal(value, torch.ones_like(value).tril()):
            return f"torch.ones({axes}).tril().bool()"
        return f"torch.ones({axes}).bernoulli(0.7).bool()"
    if value.is_floating_point():
        return f"torch.randn({axes}).double()"
    return f"torch.randint({int(value.max()) + 1}, ({axes},))"
