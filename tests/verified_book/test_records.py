"""What is remembered of pages that go, and of pages that another process has read."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from verified_book.records import Failure, PageRecord, record_of, records, setup

FIRST = Failure("a.md", 1, "wrong", "Mend it.")
SECOND = Failure("b.md", 2, "wrong too", "Mend it.")


@pytest.fixture
def on() -> dict[str, Callable[..., None]]:
    """What the extension does, by the event."""
    connected: dict[str, Callable[..., None]] = {}
    setup(SimpleNamespace(connect=connected.__setitem__))
    return connected


@pytest.fixture
def env() -> SimpleNamespace:
    return SimpleNamespace(docname="here")


def test_a_page_gets_its_record_when_it_is_first_asked_for(env):
    record = record_of(env)
    record.failures.append(FIRST)
    assert record_of(env, "here") is record
    assert record_of(env, "there") == PageRecord()
    assert set(records(env)) == {"here", "there"}


def test_a_page_that_goes_is_forgotten(env, on):
    record_of(env).failures.append(FIRST)
    record_of(env, "there").failures.append(SECOND)
    for name in ("here", "unknown"):
        on["env-purge-doc"](None, env, name)
    assert records(env) == {"there": PageRecord(failures=[SECOND])}


def test_records_of_another_process_are_taken_over(env, on):
    other = SimpleNamespace(docname="there")
    for found, place, names in ((env, "mine", ["here", "there"]), (other, "theirs", ["there"])):
        for name in names:
            record_of(found, name).failures.append(Failure(place, 1, "", ""))
    record_of(other, "here").failures.append(FIRST)  # it has read "there" only
    on["env-merge-info"](None, env, {"there", "page without a record"}, other)
    assert {name: found.failures[0].source for name, found in records(env).items()} == {
        "here": "mine",
        "there": "theirs",
    }
