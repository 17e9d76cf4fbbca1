"""Proofs that can fail."""

import pytest

from verified_book.claims.proofs import asserts


@pytest.mark.parametrize(
    "code",
    [
        "assert x",
        "assert x == 1, 'message'",
        "y = 1\nassert f(y) < 2",
        "for i in range(3):\n    assert values[i]",
        "with context():\n    assert 1 == x",
        "def check():\n    assert x\ncheck()",
        "assert True and x",
        "assert (x, 1)[0]",
    ],
)
def test_an_assertion_about_a_value_can_fail(code):
    assert asserts(code)


@pytest.mark.parametrize(
    "code",
    [
        "",
        "x = 1",
        "assert True",
        "assert 1 == 1",
        "assert 'text'",
        "assert not None",
        "assert (x == 1, 'message')",
        "print('assert x')",
        "# assert x",
        "%time assert x",
        "if",
    ],
)
def test_what_asserts_nothing_cannot_fail(code):
    assert not asserts(code)
