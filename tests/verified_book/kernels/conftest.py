"""Fixtures of the kernels' tests."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """All that is logged, as it was logged: no Sphinx of an earlier test in this process reads it.

    Sphinx's handlers stay behind when its application is gone, and they rewrite each record.
    """
    logger = logging.getLogger("sphinx")
    before = logger.handlers[:], logger.propagate, logger.level
    logger.handlers[:], logger.propagate = [], True
    logger.setLevel(logging.INFO)
    yield caplog
    logger.handlers[:], logger.propagate = before[:2]
    logger.setLevel(before[2])
