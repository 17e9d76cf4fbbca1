"""The language is what its page says, and the model learns it."""

import pytest
import torch

from transformer_training.agreement import (
    NOUNS,
    WORDS,
    decode,
    encode,
    right_verb,
    sentences,
    trained_model,
)


def test_words_are_22_and_none_is_twice():
    assert len(WORDS) == len(set(WORDS)) == 22


def test_decoding_undoes_encoding():
    assert decode(encode(" ".join(WORDS))) == " ".join(WORDS)


def test_unknown_words_and_tokens_are_named():
    with pytest.raises(ValueError, match=r"^the words are key .*; got \['cats'\]$"):
        encode("the cats")
    with pytest.raises(ValueError, match=r"^tokens must be from 0 to 21, got \[0, 22\]$"):
        decode(torch.tensor([0, 22]))
    with pytest.raises(ValueError, match=r"^tokens must be from 0 to 21, got \[-1\]$"):
        decode(torch.tensor([-1]))


def test_every_plural_follows_its_singular_by_half_the_nouns():
    singular, plural = NOUNS[:6], NOUNS[6:]
    assert [word + ("es" if word == "box" else "s") for word in singular] == list(plural)


def test_sentences_have_eight_words_and_the_first_nouns_verb():
    torch.manual_seed(0)
    drawn = sentences(2000)
    texts = [decode(row).split() for row in drawn]
    for the, first, preposition, again, second, verb, adjective, end in texts:
        assert (the, again, end) == ("the", "the", ".")
        assert {first, second} <= set(NOUNS)
        assert preposition in ("to", "near", "under")
        assert adjective in ("old", "new", "red")
        assert verb == ("is" if first in NOUNS[:6] else "are")
    for column, count in ((1, 12), (2, 3), (4, 12), (5, 2), (6, 3)):
        assert len(drawn[:, column].unique()) == count


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2))]
)
def test_the_model_learns_to_agree_with_the_first_noun(seed):
    torch.manual_seed(seed)
    model = trained_model()
    assert not model.training
    ids = sentences(500)
    with torch.no_grad():
        last = model(ids[:, :5])[:, -1]
    assert torch.equal(last.argmax(dim=-1), right_verb(ids[:, 1]))


def test_no_step_leaves_the_model_as_it_was_drawn():
    torch.manual_seed(0)
    first = trained_model(steps=0)
    torch.manual_seed(0)
    second = trained_model(steps=0)
    assert all(map(torch.equal, first.parameters(), second.parameters()))
    with torch.no_grad():
        assert first.loss(sentences(200)) > 1.5
