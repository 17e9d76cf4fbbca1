"""The sixth collection: by an author who had read the layers and their docstrings, and no check.

The author had not read what `check` measures, nor its tests, nor any other collection, only the
names and sources of their versions, and ran `check` on none of these. A quarter are plain mistakes
of a formula; the others compute what the layer computes until a situation comes: a size, a mask, a
mode, a call before, a copy, a derivative, a number of few digits. The sources are public threads,
and what reviewers ask for.
"""

from evaluation.held_out.sixth import (
    attention,
    blocks,
    elementwise,
    feed_forward,
    losses,
    masks,
    norms,
    positions,
)

__all__ = [
    "attention",
    "blocks",
    "elementwise",
    "feed_forward",
    "losses",
    "masks",
    "norms",
    "positions",
]
