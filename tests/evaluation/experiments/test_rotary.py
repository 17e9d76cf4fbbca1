"""The experiment on rotary positions: what its models read, before they are trained."""

import pytest
import torch

from evaluation.experiments import rotary
from transformer_training.toy_language import encode

TEXT = encode("the cat near the dogs here")


@pytest.fixture(autouse=True)
def _untrained(monkeypatch):
    monkeypatch.setattr(rotary, "STEPS", 0)


def test_a_rotary_model_does_not_see_where_a_text_begins():
    model = rotary.trained("rotary")
    early, late = (rotary.logits(model, TEXT, start) for start in (0, 1000))
    torch.testing.assert_close(early, late, rtol=0, atol=1e-9)


def test_a_rotary_model_sees_the_order_of_words():
    model = rotary.trained("rotary")
    swapped = encode("the dogs near the cat here")
    ends = [rotary.logits(model, text)[-1] for text in (TEXT, swapped)]
    assert (ends[0] - ends[1]).abs().max() > 1e-3


def test_a_model_with_a_table_is_gpt2_and_sees_where_a_text_begins():
    model = rotary.trained("table")
    early, late = (rotary.logits(model, TEXT, start) for start in (0, 1))
    torch.testing.assert_close(early, model(TEXT), rtol=0, atol=1e-12)
    assert (early - late).abs().max() > 1e-3


def test_the_arms_begin_with_the_same_words_and_weights():
    first, *others = (rotary.trained(arm, 3) for arm in rotary.ARMS)
    for other in others:
        assert other.wte.weight.equal(first.wte.weight)
        assert other.h[0].attn.c_attn.weight.equal(first.h[0].attn.c_attn.weight)
