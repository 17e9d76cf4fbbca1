"""Which lines of a module are a definition's own."""

import pytest

from evaluation.mutation.definitions import spans_of

MODULE = '''"""No code."""
import this

LIMIT: int = 3
ONE = TWO = (
    1,
)


@first
@second(
    2
)
def outer(x):
    """No code,

    over some lines."""

    def inner():
        return x

    return inner


class Pair(Base):
    """No code."""

    size: int

    @property
    def total(self):
        return self.size

    class Inner:
        depth = 1

    kind = "pair"

    @total.setter
    def total(self, size):
        self.size = size
'''


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        ("LIMIT", ["LIMIT: int = 3\n"]),
        ("TWO", ["ONE = TWO = (\n    1,\n)\n"]),
        (
            "outer",
            [
                "@first\n@second(\n    2\n)\ndef outer(x):\n",
                "\n    def inner():\n        return x\n\n    return inner\n",
            ],
        ),
        ("Pair", ["class Pair(Base):\n", "\n    size: int\n\n", "\n", '\n    kind = "pair"\n\n']),
        (
            "Pair.total",
            [
                "    @property\n    def total(self):\n        return self.size\n",
                "    @total.setter\n    def total(self, size):\n        self.size = size\n",
            ],
        ),
        ("Pair.Inner", ["    class Inner:\n        depth = 1\n"]),
        ("inner", []),
        ("kind", []),
        ("total", []),
        ("this", []),
    ],
)
def test_a_definition_is_its_lines_without_its_docstring_and_its_methods(name, pieces):
    assert [MODULE[begin:end] for begin, end in spans_of(MODULE, name)] == pieces


def test_positions_are_of_characters_not_of_bytes():
    text = 'sign = "é è ü"\nLIMIT = 3\n'
    assert [text[begin:end] for begin, end in spans_of(text, "LIMIT")] == ["LIMIT = 3\n"]
