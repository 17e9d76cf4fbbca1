"""Settings for the tests of the layers: every test draws its numbers from the same seed."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
