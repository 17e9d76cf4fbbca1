"""What the tests of the extension share."""

import logging

import pytest


@pytest.fixture(autouse=True)
def told_is_heard(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a test hear what is logged, also where another has made a Sphinx of this process.

    Sphinx takes its messages for itself from then on, and `caplog` would hear none.
    """
    if "caplog" in request.fixturenames:
        monkeypatch.setattr(logging.getLogger("sphinx"), "propagate", True)
