"""What differs from run to run is named, and masked after two runs."""

import random
import sys
from datetime import date
from difflib import SequenceMatcher

import pytest

from verified_book.accepting import nondeterminism
from verified_book.accepting.nondeterminism import (
    folders,
    kinds_in,
    mask,
    mask_lines,
    without_places,
)
from verified_book.matching import agree

NAMED = [
    ("<object object at 0x7f3a5c0d1b20>", "a memory address"),
    ("Wall time: 3 ms", "a timing"),
    ("started at 12:31:09", "a time of day"),
    ("/tmp/tmpab12cd34/x", "a temporary path"),
    ("9f1b3c5e-7a21-4c3d-9e8f-0123456789ab", "a random UUID"),
    ("{'b', 'a'}", "the order of a set"),
    ("2026-11-03 and so on", "the date"),
]


class Day(date):
    """What `date` is to the module: this day is always the same."""

    @classmethod
    def today(cls) -> date:
        return date(2026, 11, 3)


@pytest.fixture(autouse=True)
def _this_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nondeterminism, "date", Day)


def test_a_set_that_ipython_has_laid_out_is_not_named():
    line, other = "{'a', 'b'}", "{'k': {'a', 'b'}}"
    assert list(kinds_in(line, displayed=["1", line])) == []
    assert list(kinds_in(" 'k': {'a', 'b'}}", displayed=["{'j': 1,\n 'k': {'a', 'b'}}"])) == []
    assert list(kinds_in(line, displayed=[other])) == ["the order of a set"]
    assert list(kinds_in(line, displayed=[f"Mine(\n{line}\n)"])) == ["the order of a set"]


@pytest.mark.parametrize(("line", "kind"), NAMED)
def test_what_will_differ_is_named(line: str, kind: str):
    assert kind in list(kinds_in(line))


def test_folders_of_this_machine_are_named_and_masked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr(sys, "prefix", "/opt/python")
    names = folders("/srv/book")
    assert {"/srv/book", "/home/me", "/opt/python"} <= set(names)
    line = "'/srv/book/data', /opt/python, /srv/book-b /x/srv/book, /home/me/a /home/mean"
    assert list(kinds_in("/srv/book/a", names)) == ["a folder of this machine"]
    masked = "'.../data', ..., /srv/book-b /x/srv/book, .../a /home/mean"
    assert without_places(line, names) == masked


@pytest.mark.parametrize(
    "form",
    [
        "%Y-%m-%d",
        "%A, %B %d, %Y",
    ],
)
def test_this_day_is_named_and_masked(form: str):
    line = f"on {Day.today().strftime(form)} it rained"
    assert list(kinds_in(line)) == ["the date"]
    assert without_places(line, ()) == "on ... it rained"
    other = f"on {date(1999, 3, 4).strftime(form)} it rained"
    assert without_places(other, ()) == other


@pytest.mark.parametrize(
    ("first", "second", "masked"),
    [
        ("step 1 took 0.31 s", "step 1 took 0.29 s", "step 1 took ... s"),
        (
            "3 μs ± 1 ns per loop (of 7 runs, 1,000 loops each)",
            "4 μs ± 2 ns per loop (of 7 runs, 1,000 loops each)",
            "... per loop (of 7 runs, ...)",
        ),
        ("loss=0.31, acc=0.5", "loss=0.22, acc=0.6", "loss=..., acc=..."),
        ("a", "b", None),
        ("x -1", "x 1", "x ..."),
    ],
)
def test_what_moves_is_masked(first: str, second: str, masked: str | None):
    assert mask(first, second) == masked


@pytest.mark.parametrize(
    ("words", "between"),
    [
        (400, " "),
    ],
)
def test_long_outputs_are_not_matched_in_cubic_time(monkeypatch, words: int, between: str):
    matched = []

    class Counted(SequenceMatcher):
        def __init__(self, junk: None, first: list[str], second: list[str], popular: bool) -> None:
            matched.append((len(first) * len(second), popular))
            super().__init__(junk, first, second, popular)

    monkeypatch.setattr(nondeterminism, "SequenceMatcher", Counted)
    rng = random.Random(words)
    first, second = (between.join(str(rng.random()) for _ in range(words)) for _ in range(2))
    if text := mask_lines(f"{first}\nend", f"{first}\nend", f"{second}\nend"):
        assert agree(text, f"{first}\nend")
        assert agree(text, f"{second}\nend")
    assert all(pairs <= (1_000_000 if popular else 100_000) for pairs, popular in matched)
