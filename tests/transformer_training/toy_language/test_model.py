"""The model is the same wherever it is trained, leaves torch as it was, and learns."""

import pytest
import torch

from tests.book_results import kept_by_the_book
from transformer_training.toy_language import VERBS, kind, share_right, trained_model


def same(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    return all(map(torch.equal, first.parameters(), second.parameters()))


def test_the_model_is_the_same_whatever_was_drawn_before():
    torch.manual_seed(1)
    first = trained_model(steps=5)
    torch.manual_seed(2)
    torch.randn(7)
    with torch.no_grad():
        second = trained_model(steps=5)
    with torch.inference_mode():
        third = trained_model(steps=5)
    assert same(first, second)
    assert same(first, third)
    assert not third.wte.weight.is_inference()


def test_torch_is_left_as_it_was():
    torch.manual_seed(3)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    trained_model(steps=2)
    with pytest.raises(ValueError, match="got 'far'"):
        trained_model(kinds=("far",))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert torch.get_default_dtype() == torch.float32
    assert torch.is_grad_enabled()


def test_the_learning_rate_falls_in_the_second_half():
    changes = []
    for lr_decay in (False, True):
        models = [trained_model(steps=steps, lr_decay=lr_decay) for steps in (2, 4)]
        changes.append((models[1].wte.weight - models[0].wte.weight).norm().item())
    constant, falling = changes
    assert same(trained_model(steps=2), trained_model(steps=2, lr_decay=False))
    assert 0 < falling < constant  # the fourth of four updates has half the rate


def test_the_model_of_the_pages_has_learned_all_six_kinds():
    with kept_by_the_book():
        model = trained_model()
    assert not model.training
    assert min(share_right(model, name) for name in VERBS) > 0.99


def test_the_share_of_a_model_that_always_says_is():
    model = trained_model(steps=0)
    with torch.no_grad():
        model.wte.weight.zero_()  # all scores are 0, and the first choice is the highest
    singular = (kind("near").right == kind("near").right.min()).double().mean().item()
    assert share_right(model, "near") == singular == 0.5
    assert share_right(model, "and") == 0
