"""Checks of transformer layers: evidence, the laws of each layer, and its known wrong versions."""

from layer_checks.detection.table import DetectionTable, detection_table
from layer_checks.diagnosis.report import Report, check
from layer_checks.evidence.evidence import Evidence, different, equivalent, holds, raises
from layer_checks.evidence.gradients import same_gradients
from layer_checks.evidence.quantifiers import (
    counted,
    every_half,
    over_all,
    over_draws,
    over_search,
    over_seeds,
)
from layer_checks.kit.definitions import WrongVersion
from layer_checks.kit.weight_maps import to_ours, to_theirs
from layer_checks.registry import wrong_version, wrong_versions
from layer_checks.testing import assert_layer
from transformer_layers import __version__ as __version__

__all__ = [
    "DetectionTable",
    "Evidence",
    "Report",
    "WrongVersion",
    "assert_layer",
    "check",
    "counted",
    "detection_table",
    "different",
    "equivalent",
    "every_half",
    "holds",
    "over_all",
    "over_draws",
    "over_search",
    "over_seeds",
    "raises",
    "same_gradients",
    "to_ours",
    "to_theirs",
    "wrong_version",
    "wrong_versions",
]
