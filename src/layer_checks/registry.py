"""The layers that have checks and known wrong versions."""

import transformer_layers
from layer_checks.checks.activations import GELU, GELU_TANH
from layer_checks.checks.attention import ATTENTION_WEIGHTS, SCALED_DOT_PRODUCT_ATTENTION
from layer_checks.checks.batch_norm import BATCH_NORM_1D
from layer_checks.checks.causal_self_attention import CAUSAL_SELF_ATTENTION
from layer_checks.checks.conv1d import CONV1D
from layer_checks.checks.dropout import DROPOUT, DROPOUT_LAYER
from layer_checks.checks.encoder import (
    PRE_NORM_TRANSFORMER_ENCODER_LAYER,
    TRANSFORMER_ENCODER_LAYER,
)
from layer_checks.checks.feed_forward import FEED_FORWARD, POSITIONWISE_FEED_FORWARD
from layer_checks.checks.gpt2 import GPT2_MODEL
from layer_checks.checks.gpt2_block import GPT2_BLOCK
from layer_checks.checks.layer_norm import LAYER_NORM
from layer_checks.checks.masks import CAUSAL_MASK, PADDING_MASK
from layer_checks.checks.multi_head_attention import MULTI_HEAD_ATTENTION
from layer_checks.checks.penalties import L1_PENALTY, L2_PENALTY, SOFT_THRESHOLD
from layer_checks.checks.positions import SINUSOIDAL_POSITIONS
from layer_checks.checks.rms_norm import RMS_NORM
from layer_checks.definitions import Candidate, Layer, WrongVersion

LAYERS = {
    layer.name: layer
    for layer in (
        LAYER_NORM,
        RMS_NORM,
        BATCH_NORM_1D,
        DROPOUT,
        DROPOUT_LAYER,
        L1_PENALTY,
        L2_PENALTY,
        SOFT_THRESHOLD,
        CONV1D,
        GELU,
        GELU_TANH,
        CAUSAL_MASK,
        PADDING_MASK,
        ATTENTION_WEIGHTS,
        SCALED_DOT_PRODUCT_ATTENTION,
        MULTI_HEAD_ATTENTION,
        CAUSAL_SELF_ATTENTION,
        POSITIONWISE_FEED_FORWARD,
        FEED_FORWARD,
        SINUSOIDAL_POSITIONS,
        TRANSFORMER_ENCODER_LAYER,
        PRE_NORM_TRANSFORMER_ENCODER_LAYER,
        GPT2_BLOCK,
        GPT2_MODEL,
    )
}


def layer_named(layer_name: str) -> Layer:
    """What is known about a layer.

    Raises:
        ValueError: If there is no layer of this name.
    """
    if layer_name not in LAYERS:
        raise ValueError(f"no layer {layer_name!r}; there are checks for {', '.join(LAYERS)}")
    return LAYERS[layer_name]


def right_version(layer_name: str) -> Candidate:
    """The book's own layer."""
    return getattr(transformer_layers, layer_named(layer_name).name)


def wrong_versions(layer_name: str) -> tuple[WrongVersion, ...]:
    """The known wrong versions of a layer.

    Args:
        layer_name: Its name in `transformer_layers`.

    Returns:
        The wrong versions, each with a name, one sentence of advice, the class or function, and
        where it was published, if it was.

    Raises:
        ValueError: If there is no layer of this name.

    Examples:
        >>> wrong_versions("LayerNorm")[0]
        variance not biased - divide the sum of squares by n, not by n - 1 (in torch: correction=0).
    """
    return layer_named(layer_name).wrong_versions


def wrong_version(layer_name: str, name: str) -> WrongVersion:
    """One wrong version of a layer.

    Args:
        layer_name: The layer's name in `transformer_layers`.
        name: The wrong version's name.

    Returns:
        The wrong version.

    Raises:
        ValueError: If there is no layer, or no wrong version of it, of this name.

    Examples:
        >>> import torch
        >>> wrong_version("LayerNorm", "no gain").layer(3)(torch.tensor([1.0, 2.0, 3.0])).detach()
        tensor([-1.2247,  0.0000,  1.2247])
    """
    by_name = {version.name: version for version in wrong_versions(layer_name)}
    if name not in by_name:
        raise ValueError(
            f"no wrong version {name!r} of {layer_name}; there are: {', '.join(by_name)}"
        )
    return by_name[name]
