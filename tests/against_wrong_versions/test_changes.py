"""Every change can be made, and is held against tests that there are."""

import pytest

from tests.against_wrong_versions.changes import CHANGES
from tests.against_wrong_versions.subjects import all_subjects, subjects_named
from tests.against_wrong_versions.wrongs import Change, Replacement


def test_every_change_can_be_made_and_leaves_python():
    for changes in CHANGES.values():
        for change in changes:
            compile(change.altered(), change.label, "exec")


def test_every_change_has_tests_and_a_name_of_its_own():
    assert CHANGES.keys() <= all_subjects().keys()
    for changes in CHANGES.values():
        labels = [change.label for change in changes]
        assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(("old", "count"), [("no such text", 0), ("x.transpose(-3, -2)", 1)])
def test_a_change_is_of_text_that_occurs_once(old, count):
    change = Change("attention/heads", "a name", old, "new")
    if count == 1:
        assert change.altered().count("new.flatten(-2)") == 1
        return
    with pytest.raises(
        ValueError, match=r"attention/heads\.py: a name: 'no such text' occurs 0 times there"
    ):
        change.altered()
    with pytest.raises(ValueError, match=r"'x' occurs [0-9]+ times there, not once"):
        Change("attention/heads", "a name", "x", "new").altered()


def test_a_layer_stands_for_the_tests_of_its_module():
    (subject,) = subjects_named(["causal_mask", "attention/masks", "padding_mask"])
    assert subject.tests == "attention/masks"
    assert Replacement("causal_mask", "one ahead") in subject.wrongs
    assert Replacement("padding_mask", "one too few") in subject.wrongs
    assert set(CHANGES["attention/masks"]) <= set(subject.wrongs)


def test_modules_in_folders_have_changes_too():
    (subject,) = subjects_named(["gpt2/files/weights"])
    change = subject.wrongs[0]
    assert change.module == "gpt2/files/weights"
    assert change.label.startswith("gpt2/files/weights.py: ")
    assert "def weight_shapes" in change.altered()


def test_the_selections_of_changes_are_joined_unless_one_needs_all_tests():
    assert subjects_named(["attention/masks"])[0].select == ""
    select = subjects_named(["machinery"])[0].select
    assert select.startswith("(LayerNorm and ")
    assert select.count(") or (") == len(CHANGES["machinery"]) - 1
