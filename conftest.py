"""What the tests draw, and their order: the same in every run, and others where a seed is given.

Before each fixture and each test, `random`, numpy and torch are seeded from one number and its own
name: what it draws depends on nothing that ran before it. `pytest --randomly-seed 5` has other
draws and an order by chance, which pytest-randomly makes; without it, tests run in the order of
the files.
"""

import random
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Keeps the order of the files where no seed is asked for."""
    option = config.option
    if getattr(option, "randomly_seed", "default") == "default":  # or the plugin is not loaded
        option.randomly_seed, option.randomly_reorganize = 0, False
    # The plugin seeds neither torch nor what several tests share, whichever of them comes first.
    option.randomly_reset_seed = False


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Iterator[None]:
    """Seeds what a fixture draws, by its name and by what it is made for."""
    _seed(request.config, f"{request.node.nodeid}::{fixturedef.argname}")
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Seeds what a test draws, by its name."""
    _seed(item.config, item.nodeid)


def _seed(config: pytest.Config, name: str) -> None:
    seed = zlib.crc32(f"{config.option.randomly_seed} {name}".encode(errors="surrogatepass"))
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
