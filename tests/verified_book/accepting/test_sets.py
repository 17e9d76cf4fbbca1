"""Sets that are written in another order by the next run, and those that IPython sorts."""

import enum
import os
import subprocess
import sys
import time

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


class Shade(enum.StrEnum):
    """Sorted by values that are text."""

    DARK = "x"
    LIGHT = "a"


MOVES = [
    '{"b", "a"}',
    "{('b', 2), ('a', 1)}",
    "frozenset({'b', 'a'})",
    "{frozenset({'a'}), frozenset({'b'})}",
    "{1, 'a'}",
    "{'k': {'b', 'a'}}",
    "Own(names={'b', 'a'})",
    "it's {'b', \"it's {\"}",
    "{'a{', 'b'}",
    "{<Color.RED: 1>, <Color.BLUE: 2>}",
    "{datetime.date(2026, 1, 2), datetime.date(2026, 1, 1)}",
]
STAYS = [
    "{1.5, -2, True}",
    "{(1, 2), (3, 4)}",
    "{'a'}",
    "{frozenset({'a'})}",
    "{'a': 1, 'b': 2}",
    "set()",
    r"\frac{a}{b}",
    "{'a', 'b'",
    "",
]


@pytest.mark.parametrize("text", MOVES)
def test_a_set_of_what_is_hashed_anew_moves(text: str):
    assert moves(text)
    assert moves(f"found: {text}, and more")


@pytest.mark.parametrize("text", STAYS)
def test_others_stay_as_they_are(text: str):
    assert not moves(text)


@pytest.mark.parametrize("text", ["{b'a', b'b'}", "{('a', 1), ('b', 2)}", "{1, 2}"])
def test_python_itself_says_which_move(text: str):
    found = set()
    for seed in range(6):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        code = [sys.executable, "-S", "-c", f"print({text})"]
        found.add(subprocess.run(code, capture_output=True, env=environment, check=True).stdout)
    assert (len(found) > 1) is moves(text)


@pytest.mark.parametrize(
    "value",
    [
        {"b", "a"},
        {("b", 1), ("a", 2)},
        {"k": [{"b", "a"}, ({"c", "d"},)]},
        {"b" * 50, "a" * 50},
        {"b", 10, 9, None, b"c"},
        {-1.5, "a", "it's"},
        {("a", 10), ("a", 9)},
        {*Unit},
        {*Size},
        {*Shade},
        {Unit.M, "a", None},
        {(Unit.M, 1), (Unit.KG, 2)},
        {"k": Unit.M, "l": [{"b", "a"}, int]},
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
        "array({'a', 'b'}, dtype=object)",
        "{frozenset({'a', 'b'}), frozenset({'c', 'd'})}",
        "{'zz', 'yy', 'b'}",
        "[1, {('b', 1), ('a', 2)}]",
        "{'b', None}",
        "{<Unit.M: 2>, <Unit.M1: 3>, <Unit.KG: 1>}",
        "{<Own 2>, <Own 1>}",
        "[<Own {'a', 'b'}>]",
        "no value",
    ],
)
def test_what_writes_itself_is_not(text: str):
    assert not is_laid_out(text)


LONG = {
    "many": "{a b} " * 5_000,
    "deep": "{a " * 5_000 + "}" * 5_000,
    "quotes": "{'" * 10_000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_long_lines_take_no_time(text: str):
    start = time.perf_counter()
    assert not moves(text)
    assert not is_laid_out(text)
    assert time.perf_counter() - start < 10
