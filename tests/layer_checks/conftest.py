"""Settings for the tests of the checks."""

import pytest


@pytest.fixture(autouse=True)
def _no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives a layer an hour where a test names no time: what a machine is busy with is no fault."""
    from layer_checks import check  # not before a wrong version is in its place

    monkeypatch.setitem(check.__kwdefaults__, "timeout", 3600.0)
