"""Every known wrong version is held against the tests of what it changes."""

from evaluation.mutation.subjects import all_subjects, replacements
from evaluation.mutation.wrongs import Replacement
from layer_checks.registry import LAYERS


def test_every_wrong_version_is_held_against_tests():
    held = [each for subject in all_subjects().values() for each in subject.wrongs]
    known = {
        (layer.name, version.name)
        for layer in LAYERS.values()
        for version in layer.wrong_versions
        if not version.generic
    }
    assert {(w.layer, w.version) for w in held if isinstance(w, Replacement)} == known


def test_a_wrong_way_to_write_is_held_against_the_tests_of_writing():
    assert {wrong.version for wrong in replacements("generation/loop")} >= {"nucleus too small"}
    assert "no positions" in {wrong.version for wrong in replacements("models/gpt2/model")}
