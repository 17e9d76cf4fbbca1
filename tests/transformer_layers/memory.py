"""The memory of a test's process."""

import sys

import pytest


def peak() -> int:
    """The most that it has had at once, in bytes. A test that asks is skipped on Windows."""
    resource = pytest.importorskip("resource", reason="Windows does not tell it so")
    most: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
