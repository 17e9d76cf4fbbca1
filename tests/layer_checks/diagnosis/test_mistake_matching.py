"""What is known of the wrong versions does not depend on who was checked before."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks import check, wrong_version
from layer_checks.diagnosis import kept_results, mistake_matching
from layer_checks.diagnosis.pairs import pairs
from layer_checks.registry import layer_named
from transformer_layers import PreNormTransformerEncoderLayer


@pytest.fixture
def nothing_known(monkeypatch):
    monkeypatch.delenv(kept_results.FOLDER)
    monkeypatch.setattr(kept_results, "_found", {})
    for kept in (mistake_matching._fails_with, mistake_matching._known_with):
        kept.cache_clear()


@pytest.mark.usefixtures("nothing_known")
def test_a_candidate_with_weights_of_its_own_layout_leaves_nothing_behind():
    assert check("Conv1D", nn.Linear).matching == "by order: weight <- weight (transposed)"
    for version in layer_named("Conv1D").wrong_versions:
        assert check("Conv1D", version.layer).behaves_like is version


class OwnEps(nn.Module):
    """A norm whose eps nobody can choose."""

    eps = 1e-5

    def __init__(self, d: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float() if x.dtype.itemsize == 2 else x
        return (self.gain * self.normed(wide)).to(x.dtype)

    def normed(self, x: Tensor) -> Tensor:
        return x / torch.sqrt(self.size(x) + self.eps)

    def size(self, x: Tensor) -> Tensor:
        return x.square().mean(-1, keepdim=True)


class OwnEpsVariance(OwnEps):
    def size(self, x: Tensor) -> Tensor:
        return x.var(-1, keepdim=True)


class OwnEpsOutside(OwnEps):
    def normed(self, x: Tensor) -> Tensor:
        return x / (self.size(x).sqrt() + self.eps)


class OwnEpsDetached(OwnEps):
    def normed(self, x: Tensor) -> Tensor:
        return x / torch.sqrt(self.size(x) + self.eps).detach()


NAMES = {
    OwnEps: "another default eps",
    OwnEpsVariance: "variance for mean square",
    OwnEpsOutside: "eps outside the root",
    OwnEpsDetached: "root detached",
}


@pytest.mark.parametrize("norm", NAMES)
def test_a_wrong_norm_is_named_whatever_eps_it_has(norm):
    report = check("RMSNorm", type("Own", (norm,), {"eps": 1e-3}))
    assert report.behaves_like is not None, report
    assert report.behaves_like.name == NAMES[norm]


class UnbiasedAndDetached(nn.Module):
    """Two mistakes, of which each hides the other's values."""

    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float() if x.dtype.itemsize == 2 else x
        deviation = torch.sqrt(wide.var(-1, keepdim=True).detach() + self.eps)
        y = self.weight * (wide - wide.mean(-1, keepdim=True)) / deviation
        return (y if self.bias is None else y + self.bias).to(x.dtype)


def test_two_mistakes_at_once_are_named_as_two():
    report = check("LayerNorm", UnbiasedAndDetached)
    assert report.behaves_like is not None, report
    assert report.and_like is not None
    names = {report.behaves_like.name, report.and_like.name}
    assert names == {"variance not biased", "variance detached"}
    assert "and like: variance detached" in repr(report)


def test_no_pair_hides_one_of_its_two():
    found = {(first.name, second.name) for first, second, _ in pairs(layer_named("LayerNorm"))}
    assert ("variance not biased", "no bias") in found
    assert ("variance not biased", "no eps") in found
    assert ("no gain", "no bias") not in found  # both replace the last step


class ByHeads(nn.Module):
    """Query, key and value of each head side by side, under names of its own, and no scale."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.config = SimpleNamespace(num_attention_heads=num_heads)
        self.query_key_value = nn.Linear(d_model, 3 * d_model)
        self.dense = nn.Linear(d_model, d_model)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        by_head = self.query_key_value(x).unflatten(-1, (self.config.num_attention_heads, 3, -1))
        query, key, value = by_head.transpose(-4, -3).movedim(-2, 0)
        heads = functional.scaled_dot_product_attention(
            query, key, value, None, self.training * self.dropout, is_causal=True, scale=1.0
        )
        return functional.dropout(
            self.dense(heads.transpose(-3, -2).flatten(-2)), self.dropout, self.training
        )


def test_a_wrong_layer_is_named_whatever_the_layout_of_its_weights():
    report = check("CausalSelfAttention", ByHeads)
    assert "packed by heads" in report.matching
    assert report.behaves_like is not None, report
    assert report.behaves_like.name == "not scaled"


def test_what_follows_from_another_failure_is_no_mistake_of_its_own():
    report = check("gelu_tanh", lambda x: wrong_version("gelu_tanh", "constant rounded").layer(x))
    assert report.behaves_like.name == "constant rounded"
    digits = check("gelu_tanh", rounded_to_eight)
    assert "sizes of one" in {result.name for result in digits.failed}
    names = {version.name for version in digits.fails_like}
    assert "constant of ten digits" in names
    assert "axes of one squeezed" not in names


class AnotherBlock(PreNormTransformerEncoderLayer):
    """Computes with another activation, and drops its result."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        normed = self.norm1(x)
        x = x + self.dropout(self.self_attention(normed, normed, normed, mask))
        inner = functional.gelu(self.feed_forward.linear1(self.norm2(x)))
        return self.last(x + self.dropout(self.feed_forward.linear2(inner)))

    def last(self, x: Tensor) -> Tensor:
        return self.dropout(x)


class RightlyDropped(AnotherBlock):
    def last(self, x: Tensor) -> Tensor:
        return x


def test_what_is_dropped_is_told_whatever_else_is_computed():
    report = check("PreNormTransformerEncoderLayer", AnotherBlock)
    assert report.behaves_like is None
    assert [version.name for version in report.fails_like] == ["residual stream dropped"]
    assert check("PreNormTransformerEncoderLayer", RightlyDropped).fails_like == ()


class InSingle(nn.Module):
    """Returns float32 whatever it is given."""

    def __init__(self, d_model: int, eps: float = 1e-3) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        weights = self.weight.float(), self.bias.float()
        return functional.layer_norm(x.float(), x.shape[-1:], *weights, self.eps)


def test_another_start_is_told_whatever_the_contract():
    report = check("LayerNorm", InSingle)
    assert report
    assert report.in_single
    assert "it returns float32 where its input is float64" in report.notes
    assert report.behaves_like is None  # whose eps is another one: it does not give these values
    assert report.fails_like == (wrong_version("LayerNorm", "another default eps"),)
    attention = check("MultiHeadAttention", partial(nn.MultiheadAttention, batch_first=True))
    assert attention
    names = [version.name for version in attention.fails_like]
    assert names == ["initialized as nn.MultiheadAttention"]


def rounded_to_eight(x: Tensor) -> Tensor:
    wide = x.float() if x.dtype.itemsize == 2 else x
    y = 0.5 * wide * (1 + torch.tanh(0.79788456 * (wide + 0.044715 * wide**3)))
    return y.to(x.dtype)


def over_the_queries(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Beside its mistake it hides by a large number, drops nothing and never refuses a mask."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e4)
    return scores.softmax(-2) @ v


def test_the_values_of_a_mistake_name_it_whatever_else_differs() -> None:
    report = check("scaled_dot_product_attention", over_the_queries)
    assert report.behaves_like is not None
    assert report.behaves_like.name == "softmax over the queries"


def near_the_width(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    scores = q @ k.mT / (q.shape[-1] + 0.3) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e4)
    return scores.softmax(-1) @ v


def test_values_that_are_near_those_of_a_mistake_name_none() -> None:
    report = check("scaled_dot_product_attention", near_the_width)
    assert not report
    assert report.behaves_like is None


class WithoutBiases(nn.Module):
    """An attention that has none, and divides by the root of its whole width."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        w = [nn.Linear(d_model, d_model, bias=False) for _ in range(4)]
        self.w_q, self.w_k, self.w_v, self.w_o = w
        self.num_heads, self.dropout = num_heads, nn.Dropout(dropout)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        def split(x: Tensor) -> Tensor:
            return x.unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)

        scores = split(self.w_q(q)) @ split(self.w_k(k)).mT / q.shape[-1] ** 0.5
        if mask is not None:
            mask = mask if mask.ndim == 2 else mask[:, None]
            scores = scores.masked_fill(~mask, -torch.inf)
        heads = self.dropout(scores.softmax(-1)) @ split(self.w_v(v))
        return self.w_o(heads.transpose(-3, -2).flatten(-2))


def test_a_wrong_layer_is_named_where_it_lacks_the_biases_of_the_mistake() -> None:
    report = check("MultiHeadAttention", WithoutBiases)
    assert report.behaves_like is wrong_version(
        "MultiHeadAttention", "divided by the root of d_model"
    )
