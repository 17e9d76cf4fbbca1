"""Layers in the forms in which others write them: right ones are not condemned, wrong ones are."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks import check


def half_turned(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def apply_rotary_pos_emb(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Heads before positions, tables for each feature with a batch axis: as in transformers."""
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return q * cos + half_turned(q) * sin, k * cos + half_turned(k) * sin


def backwards(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    return apply_rotary_pos_emb(q, k, cos, -sin)


def of_one(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Tables of each pair of features."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def apply_rotary_emb(xq: Tensor, xk: Tensor, freqs_cis: Tensor) -> tuple[Tensor, Tensor]:
    """Positions before heads, neighbours as complex numbers in float32: as Meta writes it."""

    def turned(x: Tensor) -> Tensor:
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * freqs_cis[:, None, :]).flatten(-2).type_as(x)

    return turned(xq), turned(xk)


def from_the_first(q: Tensor, k: Tensor, freqs_cis: Tensor, start_pos: int) -> Tensor:
    """Takes rows of a whole table, but not those that it is asked for."""
    return apply_rotary_emb(q, k, freqs_cis[: q.shape[1]])[0]


class Tables(nn.Module):
    """Gives cosines and sines in float32 for positions: as in transformers."""

    def __init__(self, dim: int, base: float = 10_000.0) -> None:
        super().__init__()
        inv_freq = 1.0 / base ** (torch.arange(0, dim, 2).float() / dim)
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        angles = position_ids[..., None].float() * self.inv_freq.float()
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


class HeadsBehind(nn.Module):
    """Its input is (batch, seq, heads, features)."""

    def __init__(self, dim: int, base: float = 10_000.0) -> None:
        super().__init__()
        self.dim, self.base = dim, base

    def forward(self, x: Tensor, input_pos: Tensor | None = None) -> Tensor:
        seq = x.shape[1]
        positions = torch.arange(seq) if input_pos is None else input_pos
        steps = torch.arange(0, self.dim, 2, dtype=torch.float64) / self.dim
        angles = positions[..., None].double() * self.base**-steps
        angles = angles.view(-1, seq, 1, self.dim // 2)
        return of_one(x, angles.cos(), angles.sin())


@pytest.mark.parametrize(
    "candidate", [apply_rotary_pos_emb, of_one, apply_rotary_emb, Tables, HeadsBehind]
)
def test_a_right_rotation_is_judged_in_its_own_form(candidate: Callable[..., object]) -> None:
    report = check("RotaryPositions", candidate)
    assert report, report.all
    assert report.judged


def test_the_form_is_said_and_no_adapter_is_asked_for() -> None:
    report = check("RotaryPositions", apply_rotary_emb)
    assert "it is given tables of angles of each pair of features" in str(report)
    assert "features 2i and 2i + 1 turn together" in str(report)
    assert "adapter" not in report.all


def test_a_wrong_rotation_is_named_in_its_own_form() -> None:
    report = check("RotaryPositions", backwards)
    assert not report
    assert report.behaves_like is not None
    assert report.behaves_like.name == "turned backwards"


def test_the_position_of_the_first_row_is_asked() -> None:
    report = check("RotaryPositions", from_the_first)
    assert [each.name for each in report.law if each.word == "failed"] == ["given positions"]


class PositionalEncoding(nn.Module):
    """Adds its table, as PyTorch's tutorial does."""

    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = 5000) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(max_len).unsqueeze(1)
        scale = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000.0) / d_model))
        table = torch.zeros(max_len, 1, d_model)
        table[:, 0, 0::2] = torch.sin(position * scale)
        table[:, 0, 1::2] = torch.cos(position * scale)
        self.register_buffer("table", table)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.table[: x.shape[0]])


class BatchFirst(PositionalEncoding):
    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.table[: x.shape[1]].transpose(0, 1))


def test_a_module_that_adds_the_table_is_judged() -> None:
    for candidate in (PositionalEncoding, BatchFirst):
        report = check("sinusoidal_positions", candidate)
        assert report, report.all
        assert "it is a module that adds the table" in str(report)


def subsequent_mask(size: int) -> Tensor:
    return torch.ones(1, size, size).tril().bool()


def added_mask(tgt_len: int, past_len: int = 0) -> Tensor:
    allowed = torch.ones(tgt_len, past_len + tgt_len).tril(past_len).bool()
    return torch.zeros(allowed.shape).masked_fill(~allowed, torch.finfo(torch.float32).min)


def of_lengths(q_len: int, kv_len: int) -> Tensor:
    return torch.ones(q_len, kv_len).tril(kv_len - q_len).bool()


def of_lengths_from_the_first(q_len: int, kv_len: int) -> Tensor:
    return torch.ones(q_len, kv_len).tril().bool()


def test_dtype_and_axes_of_a_mask_are_the_contract() -> None:
    for candidate in (subsequent_mask, added_mask):
        report = check("causal_mask", candidate)
        assert report, report.all
        assert [each.name for each in report.contract if each.word == "failed"] == ["boolean"]


def test_a_mask_may_be_asked_for_by_the_number_of_keys() -> None:
    assert check("causal_mask", of_lengths)
    report = check("causal_mask", of_lengths_from_the_first)
    assert not report
    assert report.behaves_like is not None
    assert report.behaves_like.name == "aligned at the top left"


def without_the_middle_axis(lengths: Tensor, max_len: int) -> Tensor:
    return torch.arange(max_len) < lengths[:, None]


def test_a_padding_mask_of_two_axes_breaks_the_contract_alone() -> None:
    report = check("padding_mask", without_the_middle_axis)
    assert report, report.all
    assert "shape" in [each.name for each in report.contract if each.word == "failed"]


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout: nn.Module | None = None,
) -> tuple[Tensor, Tensor]:
    """Takes a module for the dropout, and returns the weights, too."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    weights = scores.softmax(-1)
    weights = weights if dropout is None else dropout(weights)
    return weights @ value, weights


def positions_before_heads(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
    scores = torch.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5
    weights = (scores if bias is None else scores + bias).softmax(-1)
    return torch.einsum("bhij,bjhd->bihd", weights, v)


def test_attention_may_take_a_module_or_have_its_heads_behind() -> None:
    for candidate in (attention, positions_before_heads):
        report = check("scaled_dot_product_attention", candidate)
        assert report, report.all


class OfHeads(nn.Module):
    """The best-known one: four maps, a dropout that is on by default, a mask with an axis more."""

    def __init__(self, h: int, d_model: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.d_k, self.h = d_model // h, h
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(4)])
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        mask = None if mask is None else mask.unsqueeze(1)
        batch = query.shape[0]
        query, key, value = (
            linear(x).view(batch, -1, self.h, self.d_k).transpose(1, 2)
            for linear, x in zip(self.linears, (query, key, value), strict=False)
        )
        found, _ = attention(query, key, value, mask, self.dropout)
        return self.linears[-1](found.transpose(1, 2).reshape(batch, -1, self.h * self.d_k))


def test_a_dropout_by_default_and_a_mask_with_an_axis_more_break_no_law() -> None:
    report = check("MultiHeadAttention", OfHeads)
    assert report, report.all
    assert "the mask gets an axis for the batch" in str(report)


class InAndOut(nn.Module):
    """Is told the width twice, and the number of positions; drops no result."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        batch, seq, _ = x.shape
        query, key, value = (
            each(x).view(batch, seq, self.num_heads, -1).transpose(1, 2)
            for each in (self.W_query, self.W_key, self.W_value)
        )
        blocked = self.mask[:seq, :seq].bool()
        scores = (query @ key.mT).masked_fill(blocked, -torch.inf) / key.shape[-1] ** 0.5
        found = (self.dropout(scores.softmax(-1)) @ value).transpose(1, 2)
        return self.out_proj(found.reshape(batch, seq, -1))


class GroupsWithTables(nn.Module):
    """Is given the mask and the tables, which it must have."""

    def __init__(self, d_in: int, d_out: int, num_heads: int, num_kv_groups: int) -> None:
        super().__init__()
        self.heads, self.groups, self.d_k = num_heads, num_kv_groups, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_groups * self.d_k, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_groups * self.d_k, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=False)

    def forward(self, x: Tensor, mask: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        seq = x.shape[1]
        query, key, value = (
            each(x).unflatten(-1, (-1, self.d_k)).transpose(1, 2)
            for each in (self.W_query, self.W_key, self.W_value)
        )
        query, key = (each * cos[:seq] + half_turned(each) * sin[:seq] for each in (query, key))
        key, value = (
            each.repeat_interleave(self.heads // self.groups, dim=1) for each in (key, value)
        )
        found = functional.scaled_dot_product_attention(query, key, value, ~mask)
        return self.out_proj(found.transpose(1, 2).flatten(2))


def test_a_width_may_be_told_twice_and_a_causal_mask_be_wanted() -> None:
    report = check("CausalSelfAttention", InAndOut)
    assert report, report.all
    report = check("GroupedQueryAttention", GroupsWithTables)
    assert report, report.all
    assert "it is given a causal mask in which True blocks" in str(report)


class RefusesOne(nn.Module):
    def __init__(self, drop_prob: float = 0.5) -> None:
        super().__init__()
        if not 0 <= drop_prob < 1:
            raise ValueError("drop_prob must lie in [0, 1)")
        self.drop_prob = drop_prob

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        return x * (torch.rand_like(x) >= self.drop_prob) / (1 - self.drop_prob)


def test_a_dropout_that_refuses_one_is_not_asked_for_it() -> None:
    report = check("Dropout", RefusesOne)
    assert report, report.all
    assert [each.name for each in report.law if each.word == "unasked"] == ["p = 1"]


class ToItself(nn.Module):
    """Packed projections without biases, and a width of heads that is told by itself."""

    def __init__(self, dim: int, heads: int = 8, dim_head: int = 64, dropout: float = 0.0) -> None:
        super().__init__()
        inner = heads * dim_head
        self.heads, self.d_k = heads, dim_head
        self.to_qkv = nn.Linear(dim, 3 * inner, bias=False)
        self.to_out = nn.Linear(inner, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.to_qkv(x).unflatten(-1, (3, self.heads, self.d_k))
        query, key, value = (each.squeeze(-3).transpose(1, 2) for each in qkv.split(1, dim=-3))
        scores = query @ key.mT
        weights = (scores / math.sqrt(self.d_k)).softmax(-1)
        return self.to_out((self.drop(weights) @ value).transpose(1, 2).flatten(2))


class ToContext(nn.Module):
    """Keys and values are made of one input by one matrix; True in a mask is padding."""

    first_of_values = False

    def __init__(self, embed_dim: int, num_heads: int, bias: bool = True) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.kv_proj = nn.Linear(embed_dim, 2 * embed_dim, bias=bias)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(
        self, x: Tensor, context: Tensor | None = None, key_padding_mask: Tensor | None = None
    ) -> Tensor:
        context = x if context is None else context
        key, value = self.kv_proj(context).chunk(2, dim=-1)
        query, key, value = (
            each.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for each in (self.q_proj(x), key, value)
        )
        kept = None if key_padding_mask is None else ~key_padding_mask[:, None, None, :]
        if self.first_of_values:
            value = value[:, :, :1].expand_as(value)
        found = functional.scaled_dot_product_attention(query, key, value, kept)
        return self.out_proj(found.transpose(1, 2).flatten(2))


class OfOneValue(ToContext):
    first_of_values = True


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        (ToItself, "queries, keys and values are made of one input"),
        (ToContext, "its keys and values are made of one input"),
    ],
)
def test_attention_with_fewer_inputs_is_judged(candidate: type[nn.Module], words: str) -> None:
    report = check("MultiHeadAttention", candidate)
    assert report, report.all
    assert words in str(report)
    assert report.law[0].word == "held"


def test_attention_with_fewer_inputs_is_condemned_where_it_is_wrong() -> None:
    report = check("MultiHeadAttention", OfOneValue)
    assert report.judged
    assert not report


class PlainNorm:
    """A batch norm that is no module, as courses build it."""

    divides_by_n = True

    def __init__(self, dim: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        self.eps, self.momentum, self.training = eps, momentum, True
        self.gamma, self.beta = torch.ones(dim), torch.zeros(dim)
        self.running_mean, self.running_var = torch.zeros(dim), torch.ones(dim)

    def __call__(self, x: Tensor) -> Tensor:
        features = x.movedim(1, -1)
        mean, var = self.running_mean, self.running_var
        if self.training:
            rows = features.flatten(0, -2)
            mean, var = rows.mean(0), rows.var(0, unbiased=not self.divides_by_n)
            with torch.no_grad():
                self.running_mean = torch.lerp(self.running_mean, mean, self.momentum)
                self.running_var = torch.lerp(self.running_var, rows.var(0), self.momentum)
        self.out = self.gamma * (features - mean) / (var + self.eps).sqrt() + self.beta
        return self.out.movedim(-1, 1)

    def parameters(self) -> list[Tensor]:
        return [self.gamma, self.beta]


class PlainNormOfTheSample(PlainNorm):
    divides_by_n = False


def test_a_plain_object_is_judged_as_a_module() -> None:
    report = check("BatchNorm1d", PlainNorm)
    assert report.judged
    assert [each.name for each in report.law if each.word == "failed"] == []
    assert "a plain object" in str(report)
    assert not check("BatchNorm1d", PlainNormOfTheSample)


def rmsnorm(x: Tensor, g: Tensor, epsilon: float = 1e-5) -> Tensor:
    return g * x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt()


def layer_norm(x: Tensor, g: Tensor, b: Tensor, eps: float = 1e-5) -> Tensor:
    variance, mean = torch.var_mean(x, -1, unbiased=False, keepdim=True)
    return g * (x - mean) / (variance + eps).sqrt() + b


def test_a_norm_may_be_a_function_of_its_weights() -> None:
    for layer, function in (("RMSNorm", rmsnorm), ("LayerNorm", layer_norm)):
        report = check(layer, function)
        assert report.judged
        assert [each.name for each in report.law if each.word == "failed"] == []


class SmoothedLoss(nn.Module):
    def __init__(self, smoothing: float = 0.1, ignore_index: int = -100) -> None:
        super().__init__()
        self.smoothing, self.ignore_index = smoothing, ignore_index

    def forward(self, pred: Tensor, target: Tensor) -> Tensor:
        scored = target != self.ignore_index
        pred, target = pred.log_softmax(-1)[scored], target[scored]
        own = pred.gather(-1, target[..., None])[..., 0]
        return -((1 - self.smoothing) * own + self.smoothing * pred.mean(-1)).mean()


def test_a_loss_may_be_a_module_that_is_built_with_its_epsilon() -> None:
    report = check("smoothed_cross_entropy", SmoothedLoss)
    assert [each.name for each in report.law if each.word != "held"] == []


def test_an_instance_is_judged_in_the_form_of_its_class() -> None:
    report = check("MultiHeadAttention", ToItself(16, 4, 4))
    assert report, report.all
