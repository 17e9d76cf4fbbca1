"""What the table of a module's tests says, and what it finds fault with."""

import pytest

from evaluation.mutation import __main__ as command
from evaluation.mutation.processes import Result
from evaluation.mutation.subjects import Subject
from evaluation.mutation.tables import Table
from evaluation.mutation.wrongs import Change, Replacement

FIRST, SECOND = Replacement("gelu", "first"), Replacement("gelu", "second")
CHANGE = Change("gelus:gelu", "a sign", "+", "-")
RIGHT = {"test_a[1]": "passed", "test_a[2]": "passed", "test_b": "passed"}


def table(wrongs=(FIRST, SECOND, CHANGE), **results):
    """The table of two tests, one of two cases; by default the wrong versions fail as they ought.

    Each argument has the outcomes of the three cases, in the order of the cases.
    """
    outcomes = {
        "right": ("passed", "passed", "passed"),
        "first": ("failed", "passed", "passed"),
        "second": ("passed", "passed", "failed"),
        "change": ("passed", "failed", "passed"),
    } | results
    right, *rest = [
        each if isinstance(each, Result) else Result(dict(zip(RIGHT, each, strict=True)))
        for each in outcomes.values()
    ]
    return Table(Subject("gelus", wrongs), right, rest[: len(wrongs)])


def test_nothing_is_wrong_where_each_test_fails_and_each_version_is_noticed():
    assert table().problems() == []


def test_the_table_shows_which_test_fails_on_which_version():
    shown = str(
        table(second=("unfit", "passed", "failed"), change=("skipped", "not run", "failed"))
    )
    assert shown.splitlines() == [
        "test_gelus.py, 2 tests",
        "",
        "        123",
        "test_a  x-     1",
        "test_b  .xx    2",
        "",
        "  1  gelu: first",
        "  2  gelu: second",
        "  3  gelus:gelu: a sign",
    ]


def test_the_numbers_of_ten_versions_stand_upright():
    wrongs = tuple(Replacement("gelu", f"{number}") for number in range(10))
    outcomes = Result(RIGHT)
    lines = str(Table(Subject("gelus", wrongs), outcomes, [outcomes] * 10)).splitlines()
    assert lines[2:5] == ["                 1", "        1234567890", "test_a  ..........    0"]


@pytest.mark.parametrize("outcome", ["passed", "unfit", "skipped", "not run"])
def test_a_test_that_fails_on_no_wrong_version_is_named(outcome):
    assert table(second=("passed", "failed", outcome)).problems() == [
        "test_gelus.py: test_b has been seen to fail on no wrong version"
    ]


def test_a_wrong_version_that_every_test_passes_is_named():
    assert table(change=("passed", "unfit", "passed")).problems() == [
        "test_gelus.py: no test notices gelus:gelu: a sign"
    ]


def test_a_wrong_version_that_fails_what_all_of_its_layer_fail_is_named():
    found = table(first=("failed", "passed", "failed"), second=("passed", "passed", "failed"))
    assert found.problems() == ["test_gelus.py: no test notices gelu: second"]
    for_another = Replacement("relu", "second")
    other_layer = table((FIRST, for_another), first=("failed", "passed", "failed"))
    assert other_layer.problems() == []


def test_that_an_error_is_missing_is_another_failure_than_that_its_text_is():
    found = table(first=("failed", "passed", "failed"), second=("passed", "passed", "not raised"))
    assert found.problems() == []


@pytest.mark.parametrize("outcome", ["failed", "not raised", "unfit"])
def test_a_test_that_the_right_package_does_not_pass_is_named(outcome):
    assert table(right=("passed", outcome, "passed")).problems() == [
        "test_gelus.py: test_a does not pass on the package as it is"
    ]


def test_tests_that_cannot_be_run_are_named():
    assert table(change=Result({}, "SyntaxError")).problems() == [
        "test_gelus.py cannot be run on gelus:gelu: a sign: SyntaxError"
    ]


def test_the_module_is_named_with_its_folder():
    result = Result({"test_a": "passed"})
    found = Table(Subject("shapes/gelus", (CHANGE,)), result, [result])
    assert str(found).startswith("shapes/test_gelus.py, 1 tests\n")
    assert found.problems() == [
        "shapes/test_gelus.py: test_a has been seen to fail on no wrong version",
        "shapes/test_gelus.py: no test notices gelus:gelu: a sign",
    ]


@pytest.mark.parametrize(("outcome", "status"), [("failed", 0), ("passed", 1)])
def test_the_exit_status_tells_whether_something_is_wrong(monkeypatch, capsys, outcome, status):
    monkeypatch.setattr(command, "prepare", lambda: None)
    monkeypatch.setattr(command, "subjects_named", lambda names: [Subject("gelus", (CHANGE,))])
    results = [Result({"test_a": "passed"}), Result({"test_a": outcome})]
    monkeypatch.setattr(command, "results_of", lambda trials: results)
    monkeypatch.setattr(command, "problems_of", lambda changes: [])
    assert command.main(["gelus"]) == status
    shown = capsys.readouterr().out
    assert "1 tests, 0 wrong versions of 0 layers, 1 changed lines, 0 s" in shown
    assert ("problem: test_gelus.py: no test notices gelus:gelu: a sign\n" in shown) == (
        status == 1
    )


def test_an_unknown_name_is_refused_with_those_there_are(capsys):
    assert command.main(["Gelu"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("no wrong versions for tests of 'Gelu'; there are some for annotations")
    assert all(name in error for name in ("GPT2Block", "LayerNorm", "RotaryPositions"))


def test_changes_that_cannot_be_made_are_named_before_anything_is_run(monkeypatch, capsys):
    monkeypatch.setattr(
        command, "subjects_named", lambda names: [Subject("gelus", (CHANGE, CHANGE))]
    )
    assert command.main([]) == 2
    error = capsys.readouterr().err
    assert error == 2 * f"{CHANGE.where}: gelus:gelu: a sign: there is no gelus.py\n"
