"""Decoder layers and smoothed losses of others: the law holds, or the mistake is named."""

from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor, nn
from torch.nn import functional
from transformers import BartConfig, MBartConfig
from transformers.models.bart.modeling_bart import BartDecoderLayer
from transformers.models.mbart.modeling_mbart import MBartDecoderLayer

from layer_checks import Report, check


def broken(report: Report) -> list[str]:
    return [result.name for result in report.law if not result.held]


def unasked(report: Report) -> list[str]:
    return [result.name for result in report.results if not result.asked]


@pytest.mark.parametrize("layer", ["TransformerDecoderLayer", "PreNormTransformerDecoderLayer"])
def test_decoder_layers_of_torch(layer: str) -> None:
    report = check(layer, nn.TransformerDecoderLayer)
    assert broken(report) == []
    assert "cache" in unasked(report)
    assert all("cache" in name for name in unasked(report))
    assert "called with tgt_mask for mask" in report.notes
    assert "the mask is inverted, one for each head: True blocks" in report.notes
    assert "multihead_attn.out_proj <- cross_attention.output_proj" in report.matching


def built_by(
    config: Callable[..., Any], layer: Callable[..., nn.Module], kernel: str = "eager"
) -> Callable[..., nn.Module]:
    """A layer of transformers, which takes a configuration."""

    def build(d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> nn.Module:
        sizes = config(
            d_model=d_model,
            decoder_attention_heads=num_heads,
            decoder_ffn_dim=d_ff,
            dropout=dropout,
            attention_dropout=dropout,
            activation_function="relu",
            attn_implementation=kernel,
        )
        return layer(sizes, layer_idx=0)

    return build


@pytest.mark.parametrize(
    ("layer", "theirs"),
    [
        ("TransformerDecoderLayer", built_by(BartConfig, BartDecoderLayer)),
        ("PreNormTransformerDecoderLayer", built_by(MBartConfig, MBartDecoderLayer)),
    ],
    ids=["BART", "mBART"],
)
def test_decoder_layers_of_transformers(layer: str, theirs: Callable[..., nn.Module]) -> None:
    report = check(layer, theirs)
    assert broken(report) == []
    assert "the mask becomes 0 and -inf, with an axis for the heads" in report.notes
    for matched in (
        "encoder_attn.k_proj <- cross_attention.key_proj",
        "encoder_attn_layer_norm <- norm2",
        "fc1 <- feed_forward.linear1",
        "final_layer_norm <- norm3",
    ):
        assert matched in report.matching


def test_a_layer_that_is_causal_where_no_mask_is_given() -> None:
    theirs = built_by(BartConfig, BartDecoderLayer, kernel="sdpa")
    report = check("TransformerDecoderLayer", theirs)
    assert report.behaves_like.name == "causal without a mask"


class Attention(nn.Module):
    """With the names of the Annotated Transformer's tutorials, and no dropout of weights."""

    def __init__(self, n_heads: int, d: int, dropout: float) -> None:
        super().__init__()
        self.n_heads, self.p = n_heads, dropout
        self.w_q, self.w_k, self.w_v, self.fc = (nn.Linear(d, d) for _ in range(4))

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        heads = [
            one(x).unflatten(-1, (self.n_heads, -1)).transpose(-3, -2)
            for one, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
        ]
        mask = mask.unsqueeze(-3) if mask is not None and mask.ndim == 3 else mask
        p = self.p if self.training else 0.0
        found = functional.scaled_dot_product_attention(*heads, mask, dropout_p=p)
        return self.fc(found.transpose(-3, -2).flatten(-2))


class SourceFirst(nn.Module):
    """The cross-attention and its mask stand first, and every name is another one."""

    def __init__(self, d: int, n_heads: int, d_inner: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.src_attn_norm, self.ff_norm, self.self_attn_norm = (nn.LayerNorm(d) for _ in range(3))
        self.src_attn = Attention(n_heads, d, dropout)
        self.slf_attn = Attention(n_heads, d, dropout)
        self.w_2, self.w_1 = nn.Linear(d_inner, d), nn.Linear(d, d_inner)
        self.drop = nn.Dropout(dropout)

    def forward(
        self, trg: Tensor, enc_src: Tensor, src_mask: Tensor, trg_mask: Tensor
    ) -> tuple[Tensor, None]:
        x = self.self_attn_norm(trg + self.drop(self.slf_attn(trg, trg, trg, trg_mask)))
        x = self.src_attn_norm(x + self.drop(self.found(x, enc_src, src_mask)))
        return self.ff_norm(x + self.drop(self.w_2(self.w_1(x).relu()))), None

    def found(self, x: Tensor, enc_src: Tensor, src_mask: Tensor) -> Tensor:
        return self.src_attn(x, enc_src, enc_src, src_mask)


class AsksWithTheSource(SourceFirst):
    def found(self, x: Tensor, enc_src: Tensor, src_mask: Tensor) -> Tensor:
        return self.src_attn(enc_src, x, x, src_mask)


def test_names_tell_the_two_attentions_and_their_masks() -> None:
    report = check("TransformerDecoderLayer", SourceFirst)
    assert broken(report) == []
    assert "src_attn.w_q <- cross_attention.query_proj" in report.matching
    assert "src_attn_norm <- norm2" in report.matching
    called = next(note for note in report.notes if note.startswith("called with"))
    assert "enc_src for memory" in called
    assert "src_mask for memory_mask" in called


def test_a_mistake_is_named_in_a_layer_of_other_names() -> None:
    report = check("TransformerDecoderLayer", AsksWithTheSource)
    assert report.behaves_like.name == "queries from the memory"


def test_a_smoothed_loss_that_counts_padding_is_known_by_other_names() -> None:
    def loss(lprobs: Tensor, target: Tensor, eps: float, ignore_index: int = -100) -> Tensor:
        lprobs = lprobs.log_softmax(dim=-1)
        pad = target == ignore_index
        right = lprobs.gather(-1, target.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        losses = (1 - eps) * right + eps * lprobs.mean(dim=-1)
        return -losses.masked_fill(pad, 0.0).sum() / len(target)

    report = check("smoothed_cross_entropy", loss)
    assert report.behaves_like.name == "divided by all labels"
    assert "called with target for labels" in "; ".join(report.notes)
