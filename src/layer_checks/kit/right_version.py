"""Layers whose right version is all that their checks need to know."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.evidence.evidence import Evidence, equivalent
from layer_checks.kit.candidates import built, outputs_and_gradients, randomized, weights_of
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.oracles import agreeing_gradients, with_weights_of
from layer_checks.kit.probes import Inputs, Probing, probe


def layer_of(
    right: type[nn.Module], *sizes: int, inputs: Callable[[int, int], Inputs], **known: Any
) -> Layer:
    """Makes a layer with the checks that its right version decides, and with all probes.

    Args:
        right: The right version. The layer has its name, and is called as it is.
        *sizes: What it is built with for the checks.
        inputs: What it is called with in float64, for a number of sequences and of positions.
        **known: Other fields of the layer, as `Layer` has them.

    Returns:
        The layer, at which wrong versions and further checks are declared.
    """

    def example(candidate: Candidate) -> object:
        given = [
            x.to(torch.get_default_dtype())
            if isinstance(x, Tensor) and x.is_floating_point()
            else x
            for x in inputs(2, 3)
        ]
        return built(candidate, *sizes)(*given)

    def pair(candidate: Candidate) -> tuple[nn.Module, nn.Module]:
        theirs = randomized(right(*sizes)).double()
        return with_weights_of(theirs, candidate, *sizes), theirs

    def values_and_gradients(candidate: Candidate) -> list[Tensor]:
        ours, theirs = pair(candidate)
        return outputs_and_gradients(ours, weights_of(theirs), *inputs(2, 3))

    arguments = [
        each.name if each.default is each.empty else f"{each.name}={each.default!r}"
        for each in inspect.signature(right).parameters.values()
    ]
    layer = Layer(
        right.__name__,
        f"{right.__name__}({', '.join(arguments)})",
        example=example,
        probe=values_and_gradients,
        right=right,
        **known,
    )

    @layer.check("The values in float64 are those of the right version.")
    def values(candidate: Candidate) -> Evidence:
        ours, theirs = pair(candidate)
        given = inputs(2, 3)
        return equivalent(ours(*given), theirs(*given), atol=1e-12)

    @layer.check("So are the gradients.")
    def gradients(candidate: Candidate) -> Evidence:
        return agreeing_gradients(*pair(candidate), *inputs(2, 3))

    probe(layer, Probing(pair=pair, inputs=inputs, sizes=sizes))
    return layer
