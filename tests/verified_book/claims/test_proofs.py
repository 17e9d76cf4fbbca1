"""Proofs that can fail."""

import pytest

from verified_book.claims.proofs import asserts


@pytest.mark.parametrize(
    "code", ["assert x == 1, 'message'", "def check():\n    assert x\ncheck()"]
)
def test_an_assertion_about_a_value_can_fail(code):
    assert asserts(code)


@pytest.mark.parametrize(
    "code",
    [
        "",
        "assert 1 == 1",
        "assert (x == 1, 'message')",
        "print('assert x')",
        "%time assert x",
    ],
)
def test_what_asserts_nothing_cannot_fail(code):
    assert not asserts(code)
