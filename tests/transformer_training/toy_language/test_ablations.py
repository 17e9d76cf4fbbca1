"""Each ablation takes out its part, and leaves the others and their first weights alone."""

import pytest
import torch

from transformer_layers import GPT2, GPT2Config, causal_mask, scaled_dot_product_attention
from transformer_layers.attention.heads import merge_heads, split_heads
from transformer_training.toy_language import ABLATIONS

X = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0))
IDS = torch.tensor([[3, 1, 4, 1, 5]])

# The parameters that are gone, by how their names begin or end.
GONE = {
    "attention": (".attn.c_attn.", ".attn.c_proj."),
    "attention weights": (),
    "mask": (),
    "positions": (),
    "feed-forward": (".mlp.",),
    "activation": (),
    "norms": (".ln_1.", ".ln_2.", "ln_f."),
    "residuals": (),
}


def whole() -> GPT2:
    torch.manual_seed(1)
    config = GPT2Config(vocab_size=9, n_positions=6, n_embd=12, n_layer=2, n_head=3, dropout=0.0)
    model = GPT2(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model


def without(part: str) -> GPT2:
    model = whole()
    ABLATIONS[part](model)
    return model.eval()


@pytest.mark.parametrize("part", ABLATIONS)
def test_only_its_own_parameters_are_gone(part):
    before = {name: value for name, value in whole().named_parameters()}
    after = dict(without(part).named_parameters())
    gone = {name for name in before if any(piece in name for piece in GONE[part])}
    renamed = {"mlp.c_fc": "mlp.0", "mlp.c_proj": "mlp.1"} if part == "activation" else {}
    for name in before.keys() - gone:
        new = name
        for old_piece, new_piece in renamed.items():
            new = new.replace(old_piece, new_piece)
        value = after.pop(new)
        if part == "positions" and name == "wpe.weight":
            assert not value.any()
            assert not value.requires_grad
        else:
            assert torch.equal(value, before[name]), name
            assert value.requires_grad
    assert after == {}


@torch.no_grad()
def test_without_attentions_weights_each_word_gets_the_mean_of_what_it_may_see():
    attention, before = without("attention weights").h[0].attn, whole().h[0].attn
    value = before.c_attn(X)[..., 24:]
    means = torch.stack([value[:, : i + 1].mean(dim=1) for i in range(5)], dim=1)
    assert torch.allclose(attention(X), before.c_proj(means), atol=1e-5)


@torch.no_grad()
def test_without_the_mask_each_word_sees_all():
    attention, before = without("mask").h[0].attn, whole().h[0].attn
    query, key, value = (split_heads(each, 3) for each in before.c_attn(X).chunk(3, dim=-1))
    for module, mask in ((attention, None), (before, causal_mask(5))):
        expected = scaled_dot_product_attention(query, key, value, mask)
        assert torch.allclose(module(X), before.c_proj(merge_heads(expected)), atol=1e-5)


@torch.no_grad()
def test_without_positions_the_order_of_words_before_the_last_is_lost():
    # In one block; a second one reads what the first has made of shorter texts.
    model = whole()
    del model.h[1]
    other_order = IDS[:, [1, 0, 3, 2, 4]]
    assert not torch.allclose(model(IDS)[:, -1], model(other_order)[:, -1], atol=1e-3)
    ABLATIONS["positions"](model)
    assert torch.allclose(model(IDS)[:, -1], model(other_order)[:, -1], atol=1e-4)


@torch.no_grad()
def test_without_the_activation_the_feed_forward_layer_is_linear():
    mlp = without("activation").h[0].mlp
    zero = mlp(torch.zeros_like(X))
    assert torch.allclose(mlp(3 * X) - zero, 3 * (mlp(X) - zero), atol=1e-4)
    before = whole().h[0].mlp
    assert not torch.allclose(before(3 * X), 3 * before(X), atol=1e-1)


def test_without_residuals_a_layer_replaces_what_it_reads():
    model, before = without("residuals"), whole()
    for block, old in zip(model.h, before.h, strict=True):
        assert torch.equal(block(X), old.mlp(old.ln_2(old.attn(old.ln_1(X)))))


def test_a_cache_that_would_be_ignored_is_refused():
    with pytest.raises(ValueError, match="keeps no cache"):
        without("attention").generate(IDS, max_new_tokens=1)
