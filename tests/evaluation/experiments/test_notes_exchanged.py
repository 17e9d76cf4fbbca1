"""Notes exchanged in the keys: where they stand, and that nothing else is changed."""

import torch

from evaluation.experiments import notes_exchanged
from evaluation.experiments.induction import alone
from evaluation.experiments.notes_exchanged import facts, returns, said_with_exchanged
from transformer_training.lists import list_model


def test_the_last_word_stood_right_before_the_match():
    with alone(0):
        for ids, match, others in (returns(50), facts()):
            rows = torch.arange(len(ids))
            assert (ids[rows, match - 1] == ids[:, -1]).all()
            assert (others != match[:, None]).all()
            assert (others[:, 0] != others[:, 1]).all()
            assert ids[rows, others[:, 0]].ne(ids[rows, match]).all()


def test_a_place_exchanged_with_itself_changes_nothing_and_a_model_is_left_as_it_was():
    model = list_model(2, steps=5)
    with alone(0):
        ids, match, others = returns(50)
    whole = model(ids)[:, -1].argmax(-1)
    assert (said_with_exchanged(model, ids, match, match) == whole).all()
    said_with_exchanged(model, ids, match, others[:, 0])
    assert (model(ids)[:, -1].argmax(-1) == whole).all()


def test_shares_of_each_seed(monkeypatch):
    monkeypatch.setattr(notes_exchanged, "SEEDS", 1)
    monkeypatch.setattr(notes_exchanged, "MANY", 20)
    monkeypatch.setattr(notes_exchanged, "list_model", lambda blocks, seed: list_model(2, steps=0))
    found = notes_exchanged.measure()
    assert {len(each) for each in found.values()} == {1}
    assert all(0 <= share <= 1 for each in found.values() for share in each[0].values())
