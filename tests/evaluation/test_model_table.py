"""The table of released models: a row says what its modules say."""

from dataclasses import asdict

import pytest
import torch
from bs4 import BeautifulSoup
from torch import nn
from transformers import Gemma3TextConfig, GPT2Config, Phi3Config, Qwen3MoeConfig

from evaluation.model_table import NONE, RELEASES, Row, as_html, order, read, row_of, row_of_config
from transformer_layers import Gemma3, Gemma3Config, GPT2Block, Llama, LlamaConfig


def row(config):
    """Of our own config, made small."""
    kind = Gemma3 if isinstance(config, Gemma3Config) else Llama
    return row_of(kind(config, device="meta", dtype=torch.bfloat16))


SMALL = {"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2}


def llama(**options):
    sizes = {"intermediate_size": 40, "head_dim": 6, "max_position_embeddings": 16}
    return LlamaConfig(11, 24, **sizes | SMALL | options)


def test_a_row_of_gpt2():
    assert row_of_config(GPT2Config()) == Row(
        norm="LayerNorm",
        gain="w, b",
        rounded="after",
        order="before",
        heads_normed=NONE,
        positions="table of 1,024",
        feed_forward="GELU",
        window=NONE,
        biases="all maps",
        head="tied",
        blocks=12,
        width=768,
        queries=12,
        keys=12,
        d_k=64,
        d_ff=3072,
        longest=1024,
        cache=2 * 12 * 768 * 2,
        parameters=124_439_808,
        active=124_439_808,
    )


GEMMA = Gemma3Config(11, 24, 40, 6, 4, 1, 8, sliding_window=3)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (llama(), {"gain": "w", "rounded": "before", "order": "before", "head": "own"}),
        (llama(tie_word_embeddings=True), {"head": "tied", "biases": NONE, "window": NONE}),
        (llama(attention_bias=True), {"biases": "q, k, v, o"}),
        (llama(attention_bias=True, mlp_bias=True), {"biases": "all maps"}),
        (llama(model_type="mistral", sliding_window=1024), {"window": "1,024"}),
        (
            llama(model_type="qwen2", sliding_window=5, max_window_layers=1),
            {"window": "5 in 2 of 3 blocks", "biases": "q, k, v"},
        ),
        (llama(model_type="qwen3", head_dim=10), {"heads_normed": "each", "d_k": 10, "width": 24}),
        (
            llama(model_type="olmo2"),
            {"order": "after", "heads_normed": "all", "rounded": "after", "norm": "RMSNorm"},
        ),
        (
            llama(model_type="phi3", head_dim=8, partial_rotary_factor=0.5, rope_theta=100.0),
            {"positions": "turn, base 100, 4 of 8 features"},
        ),
        (
            llama(model_type="mixtral", num_experts=5, intermediate_size=7),
            {"feed_forward": "2 of 5 experts, SiLU gate", "d_ff": 7},
        ),
        (
            GEMMA,
            {
                "gain": "1 + w",
                "rounded": "after",
                "order": "both",
                "feed_forward": "GELU gate",
                "positions": "turn, base 1,000,000; with a window 10,000",
                "window": "3 in 5 of 6 blocks",
            },
        ),
    ],
)
def test_a_row_says_what_a_config_asks_for(config, said):
    found = asdict(row(config))
    assert {name: found[name] for name in said} == said


def test_active_parameters_are_those_of_one_expert_for_each_that_a_token_is_sent_to():
    few = row(llama(model_type="mixtral", num_experts=5))
    assert few.parameters - few.active == 3 * (5 - 2) * 3 * 24 * 40
    some = {"model_type": "qwen3_moe", "num_experts": 6, "num_experts_per_tok": 1}
    found = row(llama(**some, moe_intermediate_size=7, decoder_sparse_step=2))
    assert found.parameters - found.active == 1 * (6 - 1) * 3 * 24 * 7


@pytest.mark.parametrize(
    "config",
    [
        Qwen3MoeConfig(**SMALL, vocab_size=11, num_experts=5, num_experts_per_tok=2, head_dim=4),
        Qwen3MoeConfig(**SMALL, vocab_size=11, num_experts=9, decoder_sparse_step=2, head_dim=4),
        Gemma3TextConfig(**SMALL | {"num_hidden_layers": 7}, vocab_size=11, sliding_window=3),
        Phi3Config(**SMALL, vocab_size=11, sliding_window=3),
        GPT2Config(n_layer=4, n_embd=24, n_head=2),
    ],
    ids=lambda config: config.model_type,
)
def test_a_row_of_two_blocks_tells_that_of_many(config):
    kind, sizes = read(config)
    whole = kind(sizes, device="meta", dtype=torch.bfloat16)
    assert row_of_config(config) == row_of(whole)


def test_each_release_is_of_another_family():
    kinds = {each.config().model_type for each in RELEASES.values()}
    assert len(kinds) == len(RELEASES) == 10


@pytest.mark.parametrize(
    ("config", "released"),
    [(Qwen3MoeConfig(), "Qwen 3 30B"), (Phi3Config(), "Phi-3 mini")],
)
def test_a_release_is_not_the_defaults_of_its_class(config, released):
    assert config.to_dict() != RELEASES[released].config().to_dict()


def test_a_config_that_no_class_computes_is_refused():
    with pytest.raises(ValueError, match="hidden_act is 'gelu'"):
        read(Phi3Config(hidden_act="gelu"))


def test_a_block_without_norms_is_refused():
    block = GPT2Block(8, 2, device="meta")
    block.ln_1 = block.ln_2 = nn.Identity()
    with pytest.raises(ValueError, match="in another order: GPT2Block"):
        order(block, 8)


def test_the_table_can_be_reached_and_heard():
    text = as_html("Two <models>", ("model", "a & b"), [('<a href="x">one</a>', "1 < 2")])
    soup = BeautifulSoup(text, "html.parser")
    frame = soup.select_one("div.wide-table")
    assert (frame["tabindex"], frame["role"], frame["aria-label"]) == ("0", "group", "Two <models>")
    assert [each["scope"] for each in soup.select("th")] == ["col", "col", "row"]
    assert soup.select_one("tbody th a").get_text() == "one"
    assert soup.select_one("td").get_text() == "1 < 2"
