"""A right latent attention in the style of its authors' code is judged right; once it was not."""

import pytest
import torch
from torch import Tensor, nn

from layer_checks import check


class ProductsInTheLatents(nn.Module):
    """DeepSeek's names, complex numbers that turn neighbours, and no keys or values of heads."""

    always_compressed = False

    def __init__(
        self,
        dim: int,
        n_heads: int,
        kv_lora_rank: int,
        qk_nope_head_dim: int,
        qk_rope_head_dim: int,
        v_head_dim: int,
        q_lora_rank: int = 0,
    ) -> None:
        super().__init__()
        if self.always_compressed and not q_lora_rank:
            raise TypeError("queries are always compressed: give their rank")
        self.n_heads, self.q_lora_rank = n_heads, q_lora_rank
        self.nope, self.rope = qk_nope_head_dim, qk_rope_head_dim
        wide = n_heads * (self.nope + self.rope)
        if q_lora_rank == 0:
            self.wq = nn.Linear(dim, wide, bias=False)
        else:
            self.wq_a = nn.Linear(dim, q_lora_rank, bias=False)
            self.q_norm = nn.RMSNorm(q_lora_rank, eps=1e-6)
            self.wq_b = nn.Linear(q_lora_rank, wide, bias=False)
        self.wkv_a = nn.Linear(dim, kv_lora_rank + self.rope, bias=False)
        self.kv_norm = nn.RMSNorm(kv_lora_rank, eps=1e-6)
        self.wkv_b = nn.Linear(kv_lora_rank, n_heads * (self.nope + v_head_dim), bias=False)
        self.wo = nn.Linear(n_heads * v_head_dim, dim, bias=False)

    def turned(self, x: Tensor) -> Tensor:
        """Queries or keys of shape (batch, seq, heads, features), as complex numbers."""
        steps = torch.arange(0, self.rope, 2, dtype=torch.float64, device=x.device) / self.rope
        places = torch.arange(x.shape[1], dtype=torch.float64, device=x.device)
        angles = torch.outer(places, 10000.0**-steps)
        turn = torch.polar(torch.ones_like(angles), angles)[:, None]
        pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Attends causally."""
        q = self.wq_b(self.q_norm(self.wq_a(x))) if self.q_lora_rank else self.wq(x)
        q_nope, q_pe = q.unflatten(-1, (self.n_heads, -1)).split([self.nope, self.rope], dim=-1)
        rank = self.kv_norm.normalized_shape[0]
        kv, k_pe = self.wkv_a(x).split([rank, self.rope], dim=-1)
        kv, k_pe, q_pe = (
            self.kv_norm(kv),
            self.turned(k_pe.unsqueeze(2))[:, :, 0],
            self.turned(q_pe),
        )
        w = self.wkv_b.weight.unflatten(0, (self.n_heads, -1))
        q_nope = torch.einsum("bshd,hdc->bshc", q_nope, w[:, : self.nope])
        scores = torch.einsum("bshc,btc->bhst", q_nope, kv)
        scores = scores + torch.einsum("bshr,btr->bhst", q_pe, k_pe)
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        scores = (scores * (self.nope + self.rope) ** -0.5).masked_fill(later, -torch.inf)
        read = torch.einsum("bhst,btc->bshc", scores.softmax(-1), kv)
        return self.wo(torch.einsum("bshc,hdc->bshd", read, w[:, self.nope :]).flatten(2))


@pytest.mark.nightly  # a quarter of a minute
def test_latent_attention_that_makes_no_keys_is_right():
    report = check("MultiHeadLatentAttention", ProductsInTheLatents)
    assert report, report.all
    assert report.judged


class AlwaysCompressed(ProductsInTheLatents):
    """Has no form in which queries are made of the input."""

    always_compressed = True


@pytest.mark.nightly  # a quarter of a minute
def test_latent_attention_whose_queries_are_always_compressed_is_right():
    report = check("MultiHeadLatentAttention", AlwaysCompressed)
    assert report, report.all
