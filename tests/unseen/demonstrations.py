"""That a version is wrong, held apart from `check`."""

from collections.abc import Callable
from typing import Any

import torch

import transformer_layers
from tests.unseen.definitions import VERSIONS


def assert_shown(does_right: Callable[[Any], bool]) -> None:
    """Asserts that the right layer does what the version of the function's name does not."""
    version = VERSIONS[does_right.__name__.replace("_", " ")]
    torch.manual_seed(0)
    assert does_right(getattr(transformer_layers, version.layer))
    torch.manual_seed(0)
    assert not does_right(version.candidate)
