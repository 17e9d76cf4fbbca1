"""The works, and how each of their layers is called as ours is, by kind of layer."""

from evaluation.survey.works import (  # noqa: F401, which declare them
    activations,
    attention,
    blocks,
    feed_forward,
    norms,
    positions,
)
