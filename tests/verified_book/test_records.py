"""What is remembered of pages that go, and of pages that another process has read."""

from types import SimpleNamespace

import pytest

from verified_book.records import Failure, PageRecord, merge, purge, record_of, records

FIRST = Failure("a.md", 1, "wrong", "Mend it.")
SECOND = Failure("b.md", 2, "wrong too", "Mend it.")


@pytest.fixture
def env() -> SimpleNamespace:
    return SimpleNamespace(docname="here")


def test_a_page_gets_its_record_when_it_is_first_asked_for(env):
    record = record_of(env)
    record.failures.append(FIRST)
    assert record_of(env, "here") is record
    assert record_of(env, "there") == PageRecord()
    assert set(records(env)) == {"here", "there"}


def test_a_page_that_goes_is_forgotten(env):
    record_of(env).failures.append(FIRST)
    record_of(env, "there").failures.append(SECOND)
    purge(None, env, "here")
    purge(None, env, "unknown")
    assert records(env) == {"there": PageRecord(failures=[SECOND])}


def test_records_of_another_process_are_taken_over(env):
    other = SimpleNamespace(docname="there")
    for found, place, names in ((env, "mine", ["here", "there"]), (other, "theirs", ["there"])):
        for name in names:
            record_of(found, name).failures.append(Failure(place, 1, "", ""))
    record_of(other, "here").failures.append(FIRST)  # it has read "there" only
    merge(None, env, {"there", "page without a record"}, other)
    assert {name: found.failures[0].source for name, found in records(env).items()} == {
        "here": "mine",
        "there": "theirs",
    }
