"""How many threads a kernel's libraries start, where pages run beside each other."""

import os

from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

# As many kernels as cores: with one thread each, none waits for another's. Whoever asks for more
# gets threads that sleep while they wait; those that spin take the core from those that compute.
BESIDE_EACH_OTHER = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


def environment(app: Sphinx) -> dict[str, str]:
    """The variables of a kernel by which threads do not fight; what the user has set stays."""
    beside = BESIDE_EACH_OTHER if app.parallel > 1 else {}
    return {name: value for name, value in beside.items() if not os.environ.get(name)}


def tell(app: Sphinx) -> None:
    """Says which variables kernels get."""
    if found := environment(app):
        logger.info(
            "verified_book: up to %d kernels run beside each other, each with %s; "
            "a value of yours is kept",
            app.parallel,
            " ".join(f"{name}={value}" for name, value in found.items()),
        )
