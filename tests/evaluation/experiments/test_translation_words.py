"""What is hidden and changed is what the experiment says."""

import pytest
from torch import nn

from evaluation.experiments.translation_words import (
    CHANGED,
    other_number,
    share_exact_without,
    share_of_changed_verbs,
)
from transformer_training.toy_translation import (
    END,
    batch,
    held_out,
    source_mask,
    trained_translator,
)


@pytest.mark.parametrize(
    ("word", "other"), [("cat", "cats"), ("hens", "hen"), ("is", "are"), ("are", "is")]
)
def test_the_other_number_of_a_word(word, other):
    assert other_number(word) == other


def test_a_hidden_token_is_hidden_from_the_decoder_alone(monkeypatch):
    seen = []
    model = trained_translator(steps=0)
    encode, decode = model.encode, model.decode
    monkeypatch.setattr(model, "encode", lambda ids, mask: seen.append(mask) or encode(ids, mask))
    monkeypatch.setattr(
        model, "decode", lambda ids, memory, mask: seen.append(mask) or decode(ids, memory, mask)
    )
    assert share_exact_without(model, END) == 0
    ids = batch(pair.source for pair in held_out())
    assert seen[0].equal(source_mask(ids))
    assert (seen[0] ^ seen[1])[:, 0].equal(ids == END)


def test_a_translator_that_does_not_read_changes_no_verb():
    model = trained_translator("cross-attention", steps=0)
    assert isinstance(model, nn.Module)
    assert {share_of_changed_verbs(model, place) for place in CHANGED.values()} == {0}
