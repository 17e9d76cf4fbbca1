"""Twins of a module in evaluation mode: the same parameters, nothing switched in the module."""

import torch

from tests.transformer_layers.models.gpt2.models import modes, random_ids, random_model
from transformer_layers.generation.evaluation import evaluating, in_evaluation


def test_evaluating_gives_a_twin_without_dropout_and_gradients():
    model = random_model(dropout=0.9).train()
    ids = random_ids(1, 3)
    with evaluating(model) as twin:
        assert model.training
        assert not any(modes(twin).values())
        assert not twin(ids).requires_grad
        assert torch.equal(twin(ids), twin(ids))
    assert twin(ids).requires_grad
    assert model(ids).requires_grad


def test_a_twin_shares_parameters_buffers_and_hooks():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout())
    model.append(model[0])  # twice in the model, once among its modules
    model.register_module("none", None)
    twin = in_evaluation(model)
    assert list(twin.state_dict()) == list(model.state_dict())
    for ours, theirs in zip(twin.state_dict().values(), model.state_dict().values(), strict=True):
        assert ours.data_ptr() == theirs.data_ptr()
    assert twin[3] is twin[0]
    assert twin.none is None
    assert twin[0] is not model[0]
    seen = []
    model[0].register_forward_hook(lambda module, *_: seen.append(module))
    twin[0](torch.zeros(1, 2))
    assert seen == [twin[0]]
    model[1].running_mean = torch.ones(3)
    assert torch.equal(twin[1].running_mean, torch.ones(3))


def test_a_twin_of_a_module_that_was_compiled_in_place_is_in_evaluation():
    model = torch.nn.Sequential(torch.nn.Dropout(0.9))
    model[0].compile(backend="eager")
    x = torch.ones(100)
    assert (in_evaluation(model)(x) == x).all()
    assert (model(x) == 0).any()
