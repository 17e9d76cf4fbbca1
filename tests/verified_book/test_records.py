"""What is remembered of pages that go, and of pages that another process has read."""

from types import SimpleNamespace

import pytest

from verified_book.records import PageRecord, all_claims, merge, purge, record_of, records


@pytest.fixture
def env() -> SimpleNamespace:
    return SimpleNamespace(docname="here")


def test_a_page_gets_its_record_when_it_is_first_asked_for(env):
    record = record_of(env)
    record.outputs_checked = 3
    assert record_of(env, "here") is record
    assert record_of(env, "there") == PageRecord()
    assert set(records(env)) == {"here", "there"}


def test_a_page_that_goes_is_forgotten(env):
    record_of(env).claims.append("a claim")
    record_of(env, "there").claims.append("another")
    assert all_claims(env) == ["a claim", "another"]
    purge(None, env, "here")
    purge(None, env, "unknown")
    assert all_claims(env) == ["another"]


def test_records_of_another_process_are_taken_over(env):
    other = SimpleNamespace(docname="there")
    record_of(env, "here").outputs_checked = 1
    record_of(env, "there").outputs_checked = 2
    record_of(other, "here").outputs_checked = 10  # it has read "there" only
    record_of(other, "there").outputs_checked = 20
    merge(None, env, {"there", "page without a record"}, other)
    assert {name: record.outputs_checked for name, record in records(env).items()} == {
        "here": 1,
        "there": 20,
    }
