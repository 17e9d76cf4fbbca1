"""Wrong versions of all layers, of engineers who port a paper or make code faster.

Their author had seen the layers and their docstrings, and the names of the versions in the first
four collections; no check, no test of a check, no other version, and no result of `check`. Where a
mistake was published, the source is its thread; where reviewers meet it again and again, the source
is review practice. Each differs from the right layer in one thing. Most of them are right in an
ordinary call, and wrong in a situation that the docstring of the right layer speaks of.
"""

from evaluation.held_out.seventh import (  # noqa: F401, they declare them
    attention,
    blocks,
    elementwise,
    feed_forward,
    gpt2,
    losses,
    masks,
    norms,
    positions,
)
