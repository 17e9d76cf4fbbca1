"""Checks of transformer layers: evidence, the laws of each layer, and its known wrong versions."""

from layer_checks.evidence import Evidence, different, equivalent, holds, raises
from layer_checks.gradients import same_gradients

__all__ = [
    "Evidence",
    "different",
    "equivalent",
    "holds",
    "raises",
    "same_gradients",
]
