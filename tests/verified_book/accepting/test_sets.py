"""Sets that are written in another order by the next run, and those that IPython sorts."""

import enum

import pytest

from verified_book.accepting.sets import is_laid_out, moves


class Unit(enum.Enum):
    """Sorted by names, since members are not compared."""

    M = 2
    KG = 1
    M1 = 3


class Size(enum.IntEnum):
    """Sorted by values."""

    SMALL = 1
    LARGE = 10
    MEDIUM = 9


@pytest.mark.parametrize(
    "text",
    [
        '{"b", "a"}',
        "frozenset({'b', 'a'})",
        "{1, 'a'}",
        "{'k': {'b', 'a'}}",
        "Own(names={'b', 'a'})",
        "it's {'b', \"it's {\"}",
        "{<Color.RED: 1>, <Color.BLUE: 2>}",
    ],
)
def test_a_set_of_what_is_hashed_anew_moves(text: str):
    assert moves(f"found: {text}, and more")


@pytest.mark.parametrize(
    "text",
    ["{1.5, -2, True}", "{(1, 2), (3, 4)}", "{'a'}", "{'a': 1, 'b': 2}", "set()", "{'a', 'b'"],
)
def test_others_stay_as_they_are(text: str):
    assert not moves(text)


@pytest.mark.parametrize(
    "value",
    [
        {("b", 1), ("a", 2)},
        {"k": [{"b", "a"}, ({"c", "d"},)]},
        {"b", 10, 9, None, b"c"},
        {*Unit},
        {*Size},
        {int, "a", str},
    ],
)
def test_what_ipython_sorts_is_known(value: object):
    pretty = pytest.importorskip("IPython.lib.pretty").pretty
    assert is_laid_out(pretty(value))


@pytest.mark.parametrize(
    "text",
    [
        "Own(names={'a', 'b'})",
        "{'zz', 'yy', 'b'}",
        "[1, {('b', 1), ('a', 2)}]",
        "{<Own 2>, <Own 1>}",
    ],
)
def test_what_writes_itself_is_not(text: str):
    assert not is_laid_out(text)


@pytest.mark.parametrize("text", ["{a b} " * 5_000, "{a " * 5_000 + "}" * 5_000, "{'" * 10_000])
def test_long_lines_end_in_no_recursion(text: str):
    assert not moves(text)
    assert not is_laid_out(text)
