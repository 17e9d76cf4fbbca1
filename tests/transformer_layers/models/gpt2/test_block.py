"""GPT-2's block against that of `transformers`, and by its laws."""

import math

import pytest
import torch
from transformers import GPT2Config as TheirConfig
from transformers.models.gpt2.modeling_gpt2 import GPT2Block as TheirBlock

from tests.transformer_layers.comparisons import (
    assert_same,
    values_and_gradients,
    with_random_weights,
)
from transformer_layers import GPT2Block, causal_mask

BATCH, SEQ = 3, 20
N_EMBD, N_HEAD, EPS = 14, 2, 1e-3


def random_block(dropout=0.0):
    return with_random_weights(GPT2Block(N_EMBD, N_HEAD, dropout, EPS)).double()


def random_input(*leading, seq=SEQ):
    return torch.randn(*leading, seq, N_EMBD, dtype=torch.float64)


def their_config(**options):
    return TheirConfig(
        n_embd=N_EMBD,
        n_head=N_HEAD,
        layer_norm_epsilon=EPS,
        attn_pdrop=0.0,
        resid_pdrop=0.0,
        **options,
    )


# By hand


def test_block_by_hand():
    # One head whose queries and keys are 0 and whose values are its input: the mean so far. The
    # feed-forward adds ten times the first feature to the second one, where it is positive.
    block = GPT2Block(2, 1, dropout=0.0).double()
    with torch.no_grad():
        for parameter in (*block.attn.parameters(), *block.mlp.parameters()):
            parameter.zero_()
        block.attn.c_attn.weight[:, 4:] = torch.eye(2)
        block.attn.c_proj.weight.copy_(torch.eye(2))
        block.mlp.c_fc.weight[0, 0] = 10.0
        block.mlp.c_proj.weight[0, 1] = 1.0
    output = block(torch.tensor([[1.0, 3.0], [9.0, 5.0]], dtype=torch.float64))
    # The norm gives (-1, 1) and (1, -1). The attention's means are (-1, 1) and (0, 0), the sums
    # (0, 4) and (9, 5), their norms (-1, 1) and (1, -1) again, so that the second gains 10.
    expected = torch.tensor([[0.0, 4.0], [9.0, 15.0]], dtype=torch.float64)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-4)  # eps: norms a bit smaller


# Against transformers


def test_the_block_equals_that_of_transformers():
    block, x = random_block(), random_input(BATCH)
    theirs = TheirBlock(their_config(attn_implementation="eager"), layer_idx=0).double()
    theirs.load_state_dict(block.state_dict(), strict=True)
    names = [name for name, _ in theirs.named_parameters()]
    assert names == [name for name, _ in block.named_parameters()]
    # The model makes their mask; a block without one is not causal.
    added = torch.zeros(SEQ, SEQ, dtype=torch.float64).masked_fill(~causal_mask(SEQ), -math.inf)
    expected = values_and_gradients(
        lambda x: theirs(x, attention_mask=added[None, None]), [x], list(theirs.parameters())
    )
    assert_same(values_and_gradients(block, [x], list(block.parameters())), expected)


# Laws


def test_the_norms_have_the_eps_of_the_published_models():
    block = GPT2Block(N_EMBD, N_HEAD)
    assert (block.ln_1.eps, block.ln_2.eps) == (1e-5, 1e-5)


# Errors


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            (14, 4),
            ValueError,
            "d_model must be divisible by num_heads, got d_model=14 and num_heads=4",
        ),
        ((0, 1), ValueError, "d_model must be at least 1, got 0"),
        ((6.0, 2), TypeError, "d_model must be an int, got 6.0"),
        ((14, 2, 0.1, 0.0), ValueError, "eps must be greater than 0, got 0.0"),
    ],
)
def test_errors_of_a_block(arguments, error, message):
    with pytest.raises(error, match=message):
        GPT2Block(*arguments)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (torch.zeros(3, 5, 13), ValueError, "must have a last axis of d_model = 14, got a last"),
        (torch.zeros(3, 5, 14).double(), TypeError, "is torch.float64 but the layer's parameters"),
    ],
)
def test_errors_of_a_blocks_input(x, error, message):
    with pytest.raises(error, match=message):
        GPT2Block(N_EMBD, N_HEAD)(x)
