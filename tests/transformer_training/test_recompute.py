"""Blocks that are computed once more in the backward pass: the same gradients, less memory."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from transformer_training import TrainingConfig, costs, recompute_activations, train
from transformer_training.pairs import random_pairs
from transformer_training.plans import PLANS
from transformer_training.plans.plan import Plan
from transformer_training.tokens import random_sequences

SIZES = {"vocab_size": 50, "seq": 16, "n_layer": 3, "n_head": 2, "n_kv_head": 0, "n_embd": 32}
SEQUENCES = 4


def loss_of(plan: Plan, model: torch.nn.Module) -> torch.Tensor:
    torch.manual_seed(3)
    make = random_pairs if plan.pairs else random_sequences
    batch = make(SIZES["vocab_size"], SEQUENCES, SIZES["seq"])
    torch.manual_seed(4)  # of dropout
    return plan.loss(model, batch, 0.0)


@pytest.mark.parametrize("name", PLANS)
def test_loss_and_gradients_are_the_same(name):
    dropout = 0.0 if name in ("llama", "gemma3") else 0.3
    plan = PLANS[name]
    sizes = plan.sizes_of(**SIZES, dropout=dropout)
    model = plan.model(sizes).double()
    expected = loss_of(plan, model)
    gradients = torch.autograd.grad(expected, list(model.parameters()))
    before = [key for key, _ in model.named_parameters()]
    recompute_activations(plan.blocks(model))
    found = loss_of(plan, model)
    assert found.equal(expected)
    again = torch.autograd.grad(found, list(model.parameters()))
    assert all(map(torch.equal, again, gradients))
    assert [key for key, _ in model.named_parameters()] == before
    with pytest.raises(ValueError, match="block 0 recomputes its activations already"):
        recompute_activations(plan.blocks(model))


def test_blocks_leave_nothing_but_their_inputs():
    plan = PLANS["llama"]
    sizes = plan.sizes_of(**SIZES, dropout=0.0)
    model = plan.model(sizes)
    recompute_activations(plan.blocks(model))
    left = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        if not isinstance(tensor, torch.nn.Parameter) and tensor.is_floating_point():
            left[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        loss = loss_of(plan, model)
    del loss
    tokens = SEQUENCES * SIZES["seq"]
    one, two = (plan.activation_bytes(plan.with_blocks(sizes, n), "float32", 1) for n in (1, 2))
    behind = 2 * one - two  # what comes after the blocks leaves
    assert sum(left.values()) < tokens * (behind + 4 * 32 * (3 + 2))  # and what embeddings leave
    kept = costs(sizes, SEQUENCES, SIZES["seq"], recompute=True).activations
    assert kept == tokens * (one + 4 * 3 * 32)
    assert kept < costs(sizes, SEQUENCES, SIZES["seq"]).activations


def test_operations_are_at_most_those_that_are_derived():
    plan = PLANS["gpt2"]
    sizes = plan.sizes_of(**SIZES, dropout=0.0)
    model = plan.model(sizes)
    counted = []
    for recompute in (False, True):
        if recompute:
            recompute_activations(plan.blocks(model))
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            loss_of(plan, model).backward()
        counted.append(counter.get_total_flops())
    derived = [
        costs(sizes, SEQUENCES, SIZES["seq"], recompute=recompute).flops
        for recompute in (False, True)
    ]
    # Torch stops before a block's last product, whose result nothing needs.
    most = derived[1] / derived[0] - 1
    assert 0.6 * most < counted[1] / counted[0] - 1 < 1.01 * most


def test_a_run_ends_with_the_same_weights(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the cat near the dogs is here . " * 60, encoding="utf-8")
    config = TrainingConfig(
        data=(str(text),), out="-", steps=4, batch_size=4, seq=16, n_layer=2, n_head=2, n_embd=16,
        vocab_size=260, dropout=0.1, device="cpu",
    )  # fmt: skip
    weights = []
    for recompute in (False, True):
        out = tmp_path / f"run-{recompute}"
        folder = train(replace(config, out=str(out), recompute=recompute))
        weights.append(load_file(folder / "model.safetensors"))
    assert weights[0].keys() == weights[1].keys()
    assert all(weights[0][key].equal(weights[1][key]) for key in weights[0])
