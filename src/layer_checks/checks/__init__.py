"""The checks of each layer, one module for each layer or family of layers."""

# Known before a layer is probed.
from layer_checks.kit import protocol_probes, situation_probes  # noqa: F401
