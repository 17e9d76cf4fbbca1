"""Whole models as people write them: a config and names of their own, one file, no options."""

import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from layer_checks import check
from layer_checks.diagnosis.judging import experts_in
from layer_checks.registry import LAYERS


@dataclass
class ModelArgs:
    dim: int = 32
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int = 2
    vocab_size: int = 11
    hidden_dim: int = 48
    norm_eps: float = 1e-5
    max_seq_len: int = 64
    rope_theta: float = 10000.0


class Norm(nn.Module):
    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


def turned(x: Tensor, angles: Tensor) -> Tensor:
    """Neighbours together, as in Meta's code."""
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, args: ModelArgs) -> None:
        super().__init__()
        self.heads, self.kv_heads = args.n_heads, args.n_kv_heads
        self.size = args.dim // args.n_heads
        self.wq = nn.Linear(args.dim, args.dim, bias=False)
        self.wk = nn.Linear(args.dim, self.kv_heads * self.size, bias=False)
        self.wv = nn.Linear(args.dim, self.kv_heads * self.size, bias=False)
        self.wo = nn.Linear(args.dim, args.dim, bias=False)

    def shared(self, x: Tensor) -> Tensor:
        return x.repeat_interleave(self.heads // self.kv_heads, 2)

    def forward(self, x: Tensor, angles: Tensor) -> Tensor:
        q = turned(self.wq(x).unflatten(-1, (self.heads, self.size)), angles)
        k = turned(self.wk(x).unflatten(-1, (self.kv_heads, self.size)), angles)
        v = self.wv(x).unflatten(-1, (self.kv_heads, self.size))
        q, k, v = (each.transpose(1, 2) for each in (q, self.shared(k), self.shared(v)))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).flatten(2))


class Tiled(Attention):
    def shared(self, x: Tensor) -> Tensor:
        return x.repeat(1, 1, self.heads // self.kv_heads, 1)


class Gated(nn.Module):
    def __init__(self, dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden_dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, args: ModelArgs, attention: type[Attention], inner: str) -> None:
        super().__init__()
        self.attention = attention(args)
        self.feed_forward = Gated(args.dim, getattr(args, inner))
        self.attention_norm = Norm(args.dim, args.norm_eps)
        self.ffn_norm = Norm(args.dim, args.norm_eps)

    def forward(self, x: Tensor, angles: Tensor) -> Tensor:
        h = x + self.attention(self.attention_norm(x), angles)
        return h + self.feed_forward(self.ffn_norm(h))


class Transformer(nn.Module):
    attention, inner = Attention, "hidden_dim"
    angles: Tensor

    def __init__(self, args: ModelArgs) -> None:
        super().__init__()
        self.tok_embeddings = nn.Embedding(args.vocab_size, args.dim)
        blocks = [Block(args, self.attention, self.inner) for _ in range(args.n_layers)]
        self.layers = nn.ModuleList(blocks)
        self.norm = Norm(args.dim, args.norm_eps)
        self.output = nn.Linear(args.dim, args.vocab_size, bias=False)
        size = args.dim // args.n_heads
        speeds = 1.0 / (args.rope_theta ** (torch.arange(0, size, 2).float() / size))
        table = torch.outer(torch.arange(args.max_seq_len), speeds)
        self.register_buffer("angles", table, persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h, self.angles[: tokens.shape[1]])
        return self.output(self.norm(h)).float()


class TransformerTiled(Transformer):
    attention = Tiled


def test_a_llama_in_metas_names_holds() -> None:
    report = check("Llama", Transformer)
    assert report.judged
    assert [each.name for each in report.law if each.word == "failed"] == []
    asked = {each.name for each in report.law if each.word == "held"}
    assert {"values", "gradients", "as many heads", "future"} <= asked
    assert {each.name for each in report.law if not each.asked} == {"tied head", "loss"}


def test_a_bug_inside_one_is_found_in_its_part() -> None:
    report = check("Llama", TransformerTiled)
    assert report.judged
    assert not report
    assert report.part == (
        "model.layers.0.self_attn (your layers.0.attention) is the first part whose output "
        "differs; its input is the same; inside it, o_proj (your layers.0.attention.wo) is the "
        "first part that is called otherwise: its input has other values; look between v_proj "
        "(your layers.0.attention.wv) and it; GroupedQueryAttention "
        "behaves like: tiled - let neighboring heads of queries share a head of keys: repeat "
        "each, do not tile them all"
    )


@dataclass
class Sizes:
    """Has a name for the inner width that nobody else has."""

    dim: int = 32
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int = 2
    vocab_size: int = 11
    breadth: int = 48
    norm_eps: float = 1e-5
    max_seq_len: int = 64
    rope_theta: float = 10000.0


SIZES = Sizes()


class Tied(Transformer):
    inner = "breadth"

    def __init__(self, settings: Any = SIZES) -> None:
        super().__init__(settings)
        self.output.weight = self.tok_embeddings.weight


def test_a_model_that_is_always_tied_is_asked_as_one() -> None:
    report = check("Llama", Tied)
    assert report.judged
    assert [each.name for each in report.law if each.word == "failed"] == []
    held = {each.name for each in report.law if each.word == "held"}
    assert {"values", "gradients", "tied head"} <= held


class Heads(nn.Module):
    def __init__(self, cfg: dict[str, Any]) -> None:
        super().__init__()
        self.heads = cfg["n_heads"]
        self.qkv = nn.Linear(cfg["emb_dim"], 3 * cfg["emb_dim"], bias=cfg["qkv_bias"])
        self.proj = nn.Linear(cfg["emb_dim"], cfg["emb_dim"])
        self.drop = nn.Dropout(cfg["drop_rate"])

    def divisor(self, width: int) -> float:
        return math.sqrt(width / self.heads)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / self.divisor(c)
        later = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(later, -torch.inf).softmax(-1)
        return self.proj((self.drop(weights) @ v).transpose(1, 2).reshape(b, t, c))


class Undivided(Heads):
    def divisor(self, width: int) -> float:
        return 1.0


class Layer(nn.Module):
    heads = Heads

    def __init__(self, cfg: dict[str, Any]) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(cfg["emb_dim"])
        self.att = self.heads(cfg)
        self.norm2 = nn.LayerNorm(cfg["emb_dim"])
        self.ff = nn.Sequential(
            nn.Linear(cfg["emb_dim"], 4 * cfg["emb_dim"]),
            nn.GELU(approximate="tanh"),
            nn.Linear(4 * cfg["emb_dim"], cfg["emb_dim"]),
        )
        self.drop = nn.Dropout(cfg["drop_rate"])

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.att(self.norm1(x)))
        return x + self.drop(self.ff(self.norm2(x)))


class UndividedLayer(Layer):
    heads = Undivided


class GPTModel(nn.Module):
    """With a config that is a dictionary, and an eps that is nobody's option."""

    layer = Layer

    def __init__(self, cfg: dict[str, Any]) -> None:
        super().__init__()
        self.tok_emb = nn.Embedding(cfg["vocab_size"], cfg["emb_dim"])
        self.pos_emb = nn.Embedding(cfg["context_length"], cfg["emb_dim"])
        self.drop_emb = nn.Dropout(cfg["drop_rate"])
        self.trf_blocks = nn.Sequential(*[self.layer(cfg) for _ in range(cfg["n_layers"])])
        self.final_norm = nn.LayerNorm(cfg["emb_dim"])
        self.out_head = nn.Linear(cfg["emb_dim"], cfg["vocab_size"], bias=False)
        self.out_head.weight = self.tok_emb.weight

    def forward(self, in_idx: Tensor) -> Tensor:
        positions = torch.arange(in_idx.shape[1], device=in_idx.device)
        x = self.drop_emb(self.tok_emb(in_idx) + self.pos_emb(positions))
        return self.out_head(self.final_norm(self.trf_blocks(x)))


def test_a_gpt2_with_a_dictionary_of_sizes_holds() -> None:
    report = check("GPT2", GPTModel)
    assert report.judged
    assert [each.name for each in report.law if each.word == "failed"] == []
    assert "values" in {each.name for each in report.law if each.word == "held"}


class OwnHead(GPTModel):
    def __init__(self, cfg: dict[str, Any]) -> None:
        super().__init__(cfg)
        self.out_head.weight = nn.Parameter(torch.randn_like(self.tok_emb.weight))


class WithUndivided(GPTModel):
    layer = UndividedLayer


def test_a_bug_in_packed_projections_of_no_known_order_is_found_in_its_part() -> None:
    report = check("GPT2", WithUndivided)
    assert report.judged
    assert report.part == (
        "h.0.attn (your trf_blocks.0.att) is the first part whose output differs; its input is the "
        "same; inside it, c_proj (your trf_blocks.0.att.proj) is the first part that is called "
        "otherwise: its x has other values; look between c_attn (your trf_blocks.0.att.qkv) and "
        "it; "
        "CausalSelfAttention behaves like: not scaled - divide "
        "the products by √d_k, or the softmax saturates as d_k grows"
    )


def test_a_head_of_its_own_is_given_the_embedding_and_said() -> None:
    report = check("GPT2", OwnHead)
    assert report.judged
    assert [each.name for each in report.law if each.word == "failed"] == []
    said = next(each.text for each in report.results if each.name == "arguments")
    assert said == "its out_head.weight is no wte.weight: it is given the same values"


class WithCaches(GPTModel):
    def forward(self, in_idx: Tensor, seen: list[Tensor] = []) -> Tensor:  # noqa: B006  # the bug
        seen.append(in_idx)
        return super().forward(in_idx)


def test_a_default_that_a_call_changes_is_named_first_and_hides_nothing_else() -> None:
    report = check("GPT2", WithCaches)
    first = report.failed[0]
    assert (first.name, first.kind) == ("defaults", "law")
    assert first.text == "all calls share what each of them changes: forward(seen=[])"
    assert {"values", "gradients"} <= {each.name for each in report.law if each.word == "held"}


class MetaBlock(nn.Module):
    """A block as Meta's files have it: a number, a config, and angles as complex numbers."""

    norms = ("attention_norm", "ffn_norm")

    def __init__(self, layer_id: int, args: Any) -> None:
        super().__init__()
        self.layer_id, self.heads, self.groups = layer_id, args.n_heads, args.n_kv_heads
        self.attention = nn.Module()
        width = args.dim // args.n_heads
        for name, size in (
            ("wq", args.dim),
            ("wk", self.groups * width),
            ("wv", self.groups * width),
        ):
            self.attention.add_module(name, nn.Linear(args.dim, size, bias=False))
        self.attention.wo = nn.Linear(args.dim, args.dim, bias=False)
        hidden = args.multiple_of * math.ceil(8 * args.dim / 3 / args.multiple_of)
        self.feed_forward = nn.Module()
        for name, sizes in (
            ("w1", (args.dim, hidden)),
            ("w2", (hidden, args.dim)),
            ("w3", (args.dim, hidden)),
        ):
            self.feed_forward.add_module(name, nn.Linear(*sizes, bias=False))
        self.attention_norm = nn.RMSNorm(args.dim, args.norm_eps)
        self.ffn_norm = nn.RMSNorm(args.dim, args.norm_eps)

    def forward(self, x: Tensor, freqs_cis: Tensor) -> Tensor:
        first, second = (getattr(self, name) for name in self.norms)
        h = first(x)
        query, key, value = (
            linear(h).unflatten(-1, (-1, h.shape[-1] // self.heads))
            for linear in (self.attention.wq, self.attention.wk, self.attention.wv)
        )
        query, key = (
            torch.view_as_real(
                torch.view_as_complex(each.unflatten(-1, (-1, 2)).contiguous()) * freqs_cis[:, None]
            ).flatten(-2)
            for each in (query, key)
        )
        heads = functional.scaled_dot_product_attention(
            *(each.transpose(1, 2) for each in (query, key, value)), is_causal=True, enable_gqa=True
        )
        x = x + self.attention.wo(heads.transpose(1, 2).flatten(2))
        h = second(x)
        gate = functional.silu(self.feed_forward.w1(h))
        return x + self.feed_forward.w2(gate * self.feed_forward.w3(h))


class NormsExchanged(MetaBlock):
    norms = ("ffn_norm", "attention_norm")


@pytest.mark.parametrize("candidate", [MetaBlock, LlamaDecoderLayer])
def test_a_block_of_llama_as_others_write_it_holds(candidate: type[nn.Module]) -> None:
    report = check("LlamaBlock", candidate)
    assert report, report.all
    assert report.judged


def test_parts_that_hold_only_in_each_others_place_are_named() -> None:
    report = check("LlamaBlock", NormsExchanged)
    assert not report
    said = " ".join(str(report).split())
    named = "attention_norm.weight and ffn_norm.weight"
    assert f"{named} stand in each other's place, if their names are right" in said


class Several(nn.Module):
    """A list of linear layers and one beside it."""

    def __init__(self, number: int, each: int, beside: int) -> None:
        super().__init__()
        self.several = nn.ModuleList(nn.Linear(16, each) for _ in range(number))
        self.beside = nn.Linear(16, beside)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (Several(4, 16, beside=4), "part has a router and 4 experts, which no Llama of the book"),
        (Several(4, 4, beside=16), ""),  # heads, of as many features as there are
    ],
)
def test_experts_are_pointed_out_and_heads_are_none(part: nn.Module, said: str) -> None:
    found = experts_in(LAYERS["Llama"], nn.ModuleDict({"part": part}))
    assert found.startswith(said)
    assert bool(found) == bool(said)
