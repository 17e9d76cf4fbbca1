"""Rotary positions against those of `transformers`, far from 0 and in bfloat16."""

import random

import torch
from torch import Tensor
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama import modeling_llama

from evaluation.held_out_sizes.decoders import drawn_rope
from evaluation.held_out_sizes.differences import Row
from tests.transformer_layers.comparisons import assert_rounded_once
from tests.transformer_layers.models.llama.families import in_float64
from transformer_layers import NTKScaling, RotaryPositions
from transformer_layers.checkpoints.rotary_entries import rotary_settings
from transformer_layers.positions.rotary import Layout

FAR = 100_000


def rotary(draw: random.Random) -> Row:
    """One size: both layouts, positions of each sequence, and features that do not turn."""
    size, rest = 2 * draw.randint(2, 70), draw.choice([0, draw.randint(1, 20)])
    entries = drawn_rope(draw, draw.randint(20, 5000))
    row = Row(f"rotary {size} of {size + rest} {entries}")
    batch, heads, seq = (draw.randint(1, n) for n in (3, 5, 40))
    places = torch.randint(FAR + 1, (batch, seq))
    places[-1, -1] = FAR
    x = torch.randn(batch, heads, seq, size + rest, dtype=torch.float64)
    theta, scaling, _ = rotary_settings({"rope_parameters": entries}, "Llama")
    dynamic = {"rope_type": "dynamic", "factor": 2.5, "rope_theta": theta}
    with in_float64():
        table = modeling_llama.LlamaRotaryEmbedding(
            LlamaConfig(head_dim=size, rope_parameters=dict(entries))
        )
        cos, sin = table(x, places)
        extended = LlamaConfig(head_dim=size, rope_parameters=dynamic)
        length = 2 * extended.max_position_embeddings  # of which the factor is 2 * 2.5 - 1.5
        ntk, _ = ROPE_INIT_FUNCTIONS["dynamic"](extended, seq_len=length)
    for each, wanted in ((scaling, table.inv_freq), (NTKScaling(3.5), ntk)):
        found = RotaryPositions(size, theta, scaling=each).frequencies()
        row.values(f"frequencies, {each}", found / wanted, torch.ones_like(wanted))
    expected = x.clone()
    expected[..., :size] = modeling_llama.apply_rotary_pos_emb(
        x[..., :size], x[..., :size], cos, sin
    )[0]
    # Where neighbors are the pairs, features 0, 1, 2, ... are 0, size / 2, 1, ... of the halves.
    mixed = torch.arange(size).unflatten(0, (2, -1)).T.flatten()
    order = torch.cat([mixed, torch.arange(size, size + rest)])
    layouts: dict[Layout, Tensor] = {"halves": torch.arange(size + rest), "neighbours": order}
    for layout, features in layouts.items():
        ours = RotaryPositions(size + rest, theta, layout, scaling, d_rotary=size)
        result = ours(x[..., features], places[:, None])
        row.values(layout, result, expected[..., features], "far values")
        rounded = x[..., features].bfloat16()
        exact = ours(rounded.double(), places[:, None])
        assert_rounded_once(ours.to(torch.bfloat16)(rounded, places[:, None]), exact)
    return row
