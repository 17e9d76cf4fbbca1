"""The German of each sentence, by rules written here again, and what is held out."""

import pytest
import torch

from transformer_training import toy_language
from transformer_training.toy_translation import (
    END,
    WORDS,
    batch,
    decode,
    draw,
    encode,
    held_out,
    pairs,
    training,
    translation,
)

GERMAN = {  # the nominative and the dative of each noun with its article
    "cat": ("die Katze", "der Katze"),
    "cats": ("die Katzen", "den Katzen"),
    "dog": ("der Hund", "dem Hund"),
    "dogs": ("die Hunde", "den Hunden"),
    "bird": ("der Vogel", "dem Vogel"),
    "birds": ("die Vögel", "den Vögeln"),
    "fox": ("der Fuchs", "dem Fuchs"),
    "foxes": ("die Füchse", "den Füchsen"),
    "goat": ("die Ziege", "der Ziege"),
    "goats": ("die Ziegen", "den Ziegen"),
    "hen": ("das Huhn", "dem Huhn"),
    "hens": ("die Hühner", "den Hühnern"),
}
PLURAL = {"cats", "dogs", "birds", "foxes", "goats", "hens"}
OTHERS = {
    "near": "bei",
    "behind": "hinter",
    "or": "oder",
    "and": "und",
    "here": "hier",
    "today": "heute",
    "old": "alt",
    "new": "neu",
    "big": "groß",
}


def is_or_are(*, plural: bool) -> str:
    return "sind" if plural else "ist"


def test_unknown_words_and_tokens_are_named():
    with pytest.raises(ValueError, match=r"^the words are \. cat .* groß; got \['keys'\]$"):
        encode("the keys")
    with pytest.raises(ValueError, match=rf"^tokens must be from 0 to {len(WORDS) - 1}, got \[-1"):
        decode(torch.tensor([-1, 0]))
    with pytest.raises(ValueError, match=r"^'the cat' is no sentence of the kinds near, "):
        translation("the cat")
    with pytest.raises(ValueError, match=r"^a batch must hold a sentence"):
        batch([])


def test_the_sources_are_all_sentences_of_the_toy_language_with_a_verb():
    expected = {
        (kind, toy_language.decode(row))
        for kind in toy_language.VERBS
        for row in toy_language.kind(kind).texts
    }
    assert {(pair.kind, pair.source) for pair in pairs()} == expected
    assert len(pairs()) == len(expected)


@pytest.mark.parametrize("kind", [kind for kind in toy_language.VERBS if "here" not in kind])
def test_the_verb_stands_behind_the_subject_as_in_english(kind):
    for pair in pairs():
        if pair.kind == kind:
            _, first, joint, _, second, verb, adjective, _ = pair.source.split()
            case = 1 if kind == "near" else 0
            subject = f"{GERMAN[first][0]} {OTHERS[joint]} {GERMAN[second][case]}"
            german = is_or_are(plural=verb == "are")
            assert pair.target == f"{subject} {german} {OTHERS[adjective]} ."


@pytest.mark.parametrize("kind", [kind for kind in toy_language.VERBS if "here" in kind])
def test_behind_an_adverb_the_verb_comes_first_and_agrees_with_what_is_nearer(kind):
    for pair in pairs():
        if pair.kind == kind:
            _, first, joint, _, second, adverb, verb, adjective, _ = pair.source.split()
            case = 1 if kind == "near here" else 0
            subject = f"{GERMAN[first][0]} {OTHERS[joint]} {GERMAN[second][case]}"
            plural = first in PLURAL if joint == "or" else verb == "are"
            german = f"{OTHERS[adverb]} {is_or_are(plural=plural)} {subject} {OTHERS[adjective]} ."
            assert pair.target == german


def test_a_sixth_is_held_out_and_its_animals_are_never_joined_in_training():
    def joined(pair):
        words = pair.source.split()
        return tuple(toy_language.NOUNS.index(words[i]) % 6 for i in (1, 4))

    assert len(held_out()) * 6 == len(pairs())
    assert set(held_out()) | set(training()) == set(pairs())
    assert {joined(pair) for pair in held_out()}.isdisjoint(map(joined, training()))
    for place in (1, 4):  # yet each noun is learned in each place
        assert {pair.source.split()[place] for pair in training()} == set(GERMAN)
    assert {pair.kind for pair in held_out()} == set(toy_language.VERBS)


def test_draws_are_training_pairs_and_those_of_the_generator():
    def drawn(seed):
        return draw(200, torch.Generator().manual_seed(seed))

    allowed = {(pair.source, pair.target) for pair in training()}
    sources, targets = drawn(0)
    found = [(decode(s), decode(t)) for s, t in zip(sources, targets, strict=True)]
    assert set(found) <= allowed
    assert len(set(found)) > 150
    assert sources.shape == targets.shape == (200, 10)
    assert ((sources == END).sum(dim=1) == 1).all()
    assert torch.equal(sources, drawn(0)[0])
    assert not torch.equal(sources, drawn(1)[0])
    torch.manual_seed(0)
    assert torch.equal(draw(200)[1], targets)
