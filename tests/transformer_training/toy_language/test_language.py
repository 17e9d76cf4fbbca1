"""The grammar of each kind, by rules written here again, and every text of it."""

import pytest
import torch

from transformer_training.toy_language import WORDS, decode, draw, encode, kind, kinds

PLURAL = {"cats", "dogs", "birds", "foxes", "goats", "hens"}
ADVERBS = {"here", "today"}
NAMES = {"ann", "bob", "eve", "max", "pia", "tom"}
SIZES = {  # prompts, texts
    "near": (12 * 2 * 12, 3),
    "near here": (12 * 2 * 12 * 2, 3),
    "or": (12 * 12, 3),
    "or here": (12 * 12 * 2, 3),
    "and": (12 * 12, 3),
    "and here": (12 * 12 * 2, 3),
    "the other": (6 * 5 * 2, 1),
    "facts": (24 * 24 * 4, 1),
}


def texts_of(name: str) -> list[list[str]]:
    return [decode(row).split() for row in kind(name).texts]


def agreeing(first: str, joint: str, second: str) -> str:
    if joint == "and":
        return "are"
    subject = second if joint == "or" else first
    return "are" if subject in PLURAL else "is"


def test_unknown_words_tokens_and_kinds_are_named():
    with pytest.raises(ValueError, match=r"^the words are cat .*; got \['keys'\]$"):
        encode("the keys")
    with pytest.raises(ValueError, match=rf"^tokens must be from 0 to {len(WORDS) - 1}, got \[-1"):
        decode(torch.tensor([-1, 0]))
    with pytest.raises(ValueError, match=r"^the kinds are near, .*, facts; got 'far'$"):
        kind("far")
    with pytest.raises(ValueError, match=r"^name at least one kind of near, "):
        draw([], 3)


@pytest.mark.parametrize("name", kinds())
def test_a_kind_has_each_of_its_texts_once(name):
    n_prompts, rests = SIZES[name]
    found = kind(name)
    assert len(found.prompts.unique(dim=0)) == len(found.prompts) == n_prompts
    assert len(found.texts.unique(dim=0)) == len(found.texts) == n_prompts * rests
    seq = found.prompts.shape[1]
    asked = torch.cat([found.prompts, found.right[:, None]], dim=1)
    assert torch.equal(asked.unique(dim=0), found.texts[:, : seq + 1].unique(dim=0))
    assert {decode(right[None]) for right in found.right} <= set(found.choices)
    assert found.chance == 1 / len(found.choices)
    assert kind(name) is found


@pytest.mark.parametrize("name", [name for name in kinds() if name not in ("the other", "facts")])
def test_verbs_agree(name):
    joints = {"near", "behind"} if name.startswith("near") else {name.split()[0]}
    for words in texts_of(name):
        if name.endswith("here"):
            assert words.pop(5) in ADVERBS
        the, first, joint, again, second, verb, adjective, end = words
        assert (the, again, end) == ("the", "the", ".")
        assert joint in joints
        assert verb == agreeing(first, joint, second)
        assert adjective in {"old", "new", "big"}


def test_one_calls_the_other():
    for first, conjunction, second, met, stop, caller, called, name, end in texts_of("the other"):
        assert (conjunction, met, stop, called, end) == ("and", "met", ".", "called", ".")
        assert {first, second} == {caller, name} <= NAMES
        assert first != second


def test_facts_are_asked_again():
    for *facts, asked, color, end in texts_of("facts"):
        said = dict(zip(facts[::2], facts[1::2], strict=True))
        assert len(said) == len(set(said.values())) == 4
        assert said[asked] == color
        assert end == "."


def test_as_many_texts_of_each_kind_are_drawn_and_all_have_one_length():
    drawn = [
        decode(row) for row in draw(["or", "the other"], 300, torch.Generator().manual_seed(0))
    ]
    allowed = [{" ".join(words) for words in texts_of(name)} for name in ("or", "the other")]
    assert {text.removesuffix(" .") for text in drawn[:300]} <= allowed[0]
    assert {len(text.split()) for text in drawn} == {9}
    assert set(drawn[300:]) == allowed[1]  # 60 texts, and 300 draws


def test_draws_are_those_of_the_generator():
    def first(seed: int) -> torch.Tensor:
        return draw(["near"], 50, torch.Generator().manual_seed(seed))

    assert torch.equal(first(1), first(1))
    assert not torch.equal(first(1), first(2))
    torch.manual_seed(1)
    assert torch.equal(draw(["near"], 50), first(1))
