"""What a layer computes on its probe, by which mistakes that show in values are told apart."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from layer_checks.diagnosis.sandbox import OutOfTime
from layer_checks.evidence.evidence import error_line
from layer_checks.evidence.randomness import repeatable
from layer_checks.kit.definitions import Candidate, Layer


@dataclass(frozen=True)
class Fingerprint:
    """What a layer computes on the probe, and the message of the error that ends it, if one does.

    A message that says nothing is none: the type of an error tells no mistake from another.
    """

    values: Sequence[Tensor] = ()
    message: str = ""
    ended: bool = False


def fingerprint(layer: Layer, candidate: Candidate) -> Fingerprint:
    """What a candidate computes on the layer's probe."""
    values: list[Tensor] = []
    try:
        with repeatable(0):
            for value in layer.probe(candidate):
                values.append(value)  # those before an error are kept
    except (OutOfTime, KeyboardInterrupt):
        raise
    except BaseException as error:  # a reader's layer can raise anything
        return Fingerprint(values, error_line(error) if str(error).strip() else "", True)
    return Fingerprint(values)
