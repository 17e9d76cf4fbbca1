"""The experiment on experts: what is sent elsewhere, and what is recorded of it."""

import copy

import pytest
import torch
from torch import nn

from evaluation.experiments import experts
from transformer_layers import GPT2
from transformer_training.toy_language import encode
from transformer_training.toy_language.model import by_itself


@pytest.fixture(scope="module")
def model() -> GPT2:
    with by_itself(0), pytest.MonkeyPatch.context() as patch:
        patch.setattr(experts, "STEPS", 20)
        return experts.trained(0.01, seed=0)


IDS = encode("the cat near the dogs here")


@pytest.mark.parametrize("shift", [1, 3, 4])
@torch.no_grad()
def test_a_token_that_is_sent_elsewhere_meets_the_next_expert(model, shift):
    moved = copy.deepcopy(model)
    own = moved.h[0].mlp.experts
    moved.h[0].mlp.experts = nn.ModuleList(own[(i + shift) % len(own)] for i in range(len(own)))
    with experts.sent_elsewhere(model, shift):
        found = model(IDS)
    assert found.equal(moved(IDS))
    assert found.equal(model(IDS)) == (shift == 4)


def test_what_is_asked_of_a_model(model):
    found = experts.asked(model)
    assert sum(found["loads"]) == pytest.approx(1, abs=1e-3)
    assert found["loads"] == sorted(found["loads"])
    assert 0.25 <= found["between"] <= 1
    assert [len(found[name]) for name in ("all elsewhere", "between elsewhere")] == [3, 3]
    assert len(found["loss after"]) == 4
