"""Gemma 3 is trained by its plan: what it costs, and what it has not."""

import pytest
import torch

from tests.transformer_training.plans.test_llama import left_by_a_token
from transformer_layers import Gemma3
from transformer_training import TrainingError, costs
from transformer_training.config import parse
from transformer_training.plans import PLANS

SIZES = {"vocab_size": 260, "seq": 32, "n_layer": 3, "n_head": 4, "n_kv_head": 2, "n_embd": 64}
PLAN = PLANS["gemma3"]


def test_what_a_token_leaves_is_what_autograd_keeps():
    """All but a twentieth, as of a Llama."""
    sizes = PLAN.sizes_of(**SIZES, dropout=0.0)
    torch.manual_seed(0)
    found = left_by_a_token(Gemma3(sizes), torch.randint(260, (4, 32)))
    assert found == pytest.approx(PLAN.activation_bytes(sizes, "float32", 1), rel=0.05)


def test_what_a_step_costs_is_derived():
    sizes = PLAN.sizes_of(**SIZES, dropout=0.0)
    weights = sum(each.numel() for each in Gemma3(sizes).parameters())
    assert costs(sizes, 4).parameters == 4 * weights
    matrices = sum(each.numel() for each in Gemma3(sizes).parameters() if each.ndim == 2)
    assert PLAN.matrix_weights(sizes, 1) == matrices  # the head is the embedding


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--dropout", "0.1"], r"--dropout: a Gemma 3 has no dropout, got 0\.1"),
        (["--n-kv-head", "3"], "divisible by"),
        (["--parallel", "tp"], "ranks cannot share the matrices of --model gemma3; give ddp or"),
    ],
)
def test_what_a_gemma_has_not_is_refused(more, said):
    with pytest.raises(TrainingError, match=said):
        parse(["--data", "a.txt", "--out", "x", "--model", "gemma3", *more])
