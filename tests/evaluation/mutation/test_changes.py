"""Every change can be made, and is held against tests that there are."""

import inspect
from itertools import chain
from pathlib import Path

import pytest

from evaluation.mutation import wrongs
from evaluation.mutation.changes import CHANGES
from evaluation.mutation.subjects import all_subjects, subjects_named
from evaluation.mutation.wrongs import ROOT, Change, Function, Replacement, problems_of

MODULE = '''
"""x + y"""
LIMIT = 3


@decorated
def outer(x, y):
    """x + y"""
    return x + y


class Pair:
    """x + y"""
    size: int = 2

    def total(self, x, y):
        z = x + y
        return z
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "pairs.py").write_text(MODULE)
    monkeypatch.setattr(wrongs, "PACKAGE", tmp_path)
    return tmp_path


def test_every_change_can_be_made():
    assert not (found := problems_of(chain(*CHANGES.values()))), "\n".join(found)


def test_every_change_has_tests_and_a_name_of_its_own():
    assert CHANGES.keys() <= all_subjects().keys()
    for changes in CHANGES.values():
        labels = [change.label for change in changes]
        assert len(set(labels)) == len(labels)


def test_a_change_is_made_in_its_function_only(package):
    assert problems_of([Change("pairs:outer", "a sign", "+", "-")]) == []
    altered = Change("pairs:Pair.total", "a sign", "x + y", "x - y").altered()
    assert altered == MODULE.replace("z = x + y", "z = x - y")
    assert "@changed\n" in Change("pairs:outer", "a decorator", "decorated", "changed").altered()
    assert "size: int = 3" in Change("pairs:Pair", "a class", "2", "3").altered()
    assert "LIMIT = 4" in Change("pairs:LIMIT", "a constant", "3", "4").altered()


def test_what_is_renamed_elsewhere_does_not_matter(package):
    change = Change("pairs:outer", "a sign", "x + y", "x - y")
    (package / "pairs.py").write_text(MODULE.replace("z", "w").replace('"""x + y"""', '"""x"""'))
    assert "return x - y" in change.altered()


def test_all_that_cannot_be_made_are_named_with_table_line_and_function(package):
    pair = Function("pairs:Pair.total")
    first = line() + 2
    broken = [
        Change("pairs:outer", "renamed", "a + b", "a - b"),
        pair("twice there", "x", "y"),
        pair("in the docstring of another", "size", "sizes"),
        Change("pairs:Pair.sum", "no function", "x", "y"),
        Change("triples:outer", "no module", "x", "y"),
        pair("made", "x + y", "x"),
        pair("no Python", "x + y", "x +"),
    ]
    assert [
        each.replace(f"{Path(__file__).relative_to(ROOT)}:", "") for each in problems_of(broken)
    ] == [
        f"{first}: pairs:outer: renamed: 'a + b' occurs 0 times there, not once",
        f"{first + 1}: pairs:Pair.total: twice there: 'x' occurs 2 times there, not once",
        f"{first + 2}: pairs:Pair.total: in the docstring of another: 'size' occurs 0 times there, "
        "not once",
        f"{first + 3}: pairs:Pair.sum: no function: there is no 'Pair.sum' in the module",
        f"{first + 4}: triples:outer: no module: there is no triples.py",
        f"{first + 6}: pairs:Pair.total: no Python: is not Python: invalid syntax (pairs, line 17)",
    ]


def test_a_function_s_selection_is_for_each_of_its_changes_that_has_none():
    masks = Function("attention/masks:causal_mask", "causal")
    assert masks("a", "x", "y") == Change("attention/masks:causal_mask", "a", "x", "y", "causal")
    assert masks("a", "x", "y", select="").select == ""


def line():
    """The line of the caller."""
    return inspect.currentframe().f_back.f_lineno


def test_a_layer_stands_for_the_tests_of_its_module():
    (subject,) = subjects_named(["causal_mask", "attention/masks", "padding_mask"])
    assert subject.tests == "attention/masks"
    assert Replacement("causal_mask", "one ahead") in subject.wrongs
    assert Replacement("padding_mask", "one too few") in subject.wrongs
    assert set(CHANGES["attention/masks"]) <= set(subject.wrongs)


def test_modules_in_folders_have_changes_too():
    (subject,) = subjects_named(["models/gpt2/checkpoint"])
    change = subject.wrongs[0]
    assert change.module == "models/gpt2/checkpoint"
    assert change.label.startswith("models/gpt2/checkpoint:")
    assert "def config_of" in change.altered()


def test_the_selections_of_changes_are_joined_unless_one_needs_all_tests():
    assert subjects_named(["attention/masks"])[0].select == ""
    select = subjects_named(["machinery"])[0].select
    assert select.startswith("(LayerNorm and ")
    assert select.count(") or (") == len(CHANGES["machinery"]) - 1
