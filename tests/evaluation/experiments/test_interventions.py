"""Interventions: the sentences, what is deleted, hidden and swapped, and what stays as it was."""

import pytest
import torch

from evaluation.experiments.interventions import (
    KINDS,
    PLACES,
    SWAPPED,
    deleted,
    hidden,
    layers,
    leads,
    mixed,
    read,
    swapped,
    words,
)
from transformer_layers import GPT2
from transformer_training.toy_language import decode, encode, kind, share_right, trained_model
from transformer_training.toy_language.model import by_itself


@pytest.fixture(scope="module")
def model() -> GPT2:
    with by_itself(0):
        trained = trained_model(steps=60)
    return trained.requires_grad_(False)


@pytest.fixture(autouse=True)
def _float64():
    with by_itself(0):
        yield


@pytest.mark.parametrize("name", KINDS)
def test_mixed_sentences_have_a_singular_and_a_plural_noun(name):
    ids, are = mixed(name)
    texts = [decode(each).split() for each in ids]
    nouns = [[text[PLACES[noun]].endswith("s") for noun in SWAPPED] for text in texts]
    assert all(first != second for first, second in nouns)
    assert are.tolist() == [each[name == "or here"] for each in nouns]
    assert 2 * len(ids) == len(kind(name).prompts)


def test_a_noun_is_put_into_its_other_number():
    ids = torch.stack([encode("the cat near the dogs here"), encode("the hens or the goat today")])
    first, second = ([decode(each) for each in swapped(ids, noun)] for noun in SWAPPED)
    assert first == ["the cats near the dogs here", "the hen or the goat today"]
    assert second == ["the cat near the dog here", "the hens or the goats today"]


def test_a_deleted_weight_is_zero_and_a_hidden_one_leaves_the_sum_one():
    weights = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
    assert deleted(weights, 0).tolist() == [[0, 0.25, 0.25], [0, 0.5, 0.25]]
    assert deleted(weights, torch.tensor([0, 1])).tolist() == [[0, 0.25, 0.25], [0.25, 0, 0.25]]
    assert hidden(weights, torch.tensor([0, 1])).tolist() == [[0, 0.5, 0.5], [0.5, 0, 0.5]]


@pytest.mark.parametrize("name", KINDS)
def test_with_nothing_changed_the_leads_are_the_models(model, name):
    ids = kind(name).prompts
    is_, are = model(ids)[:, -1, encode("is are")].unbind(-1)
    torch.testing.assert_close(leads(model, ids, *read(model, ids)), are - is_)


def test_a_deleted_word_is_its_term_taken_from_what_attention_writes(model):
    ids = mixed("near here")[0][:3]
    weights, value = read(model, ids)
    projection = model.h[0].attn.c_proj
    term = weights[:, 1, None] * value[:, 1] @ projection.weight
    wrote = model.h[0].attn(model.h[0].ln_1(model.wte(ids) + model.wpe.weight[:6]))[:, -1]
    left = projection((deleted(weights, 1)[..., None] * value).sum(-2))
    torch.testing.assert_close(left, wrote - term)


def test_a_swap_with_free_weights_is_the_other_sentence(model):
    ids, are = mixed("near here")
    found = words(model, "near here")["swapped"]["first noun"]["free"]
    is_lead, are_lead = model(swapped(ids, "first noun"))[:, -1, encode("is are")].unbind(-1)
    lead = torch.where(are, are_lead - is_lead, is_lead - are_lead)
    assert found["lead"] == pytest.approx(lead.median().item())


@pytest.mark.parametrize("name", KINDS)
def test_layers_are_silenced_and_come_back(model, name):
    before = {key: value.clone() for key, value in model.state_dict().items()}
    found = layers(model, name)
    assert found["whole"] == share_right(model, name)
    assert found["no attention"] == 0.5
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
