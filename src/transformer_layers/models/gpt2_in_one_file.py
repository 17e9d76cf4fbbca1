"""GPT-2 from tokens to text, in one file that needs `torch` alone.

It is for reading. :class:`transformer_layers.GPT2` computes the same, checks what it
is given, and keeps keys and values while it writes. Its parameters have the names of
the published weights.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn


class Conv1D(nn.Module):
    """A linear layer. GPT-2 stores its weight as (in, out): the other way round."""

    def __init__(self, size_in: int, size_out: int, std: float = 0.02) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size_in, size_out) * std)
        self.bias = nn.Parameter(torch.zeros(size_out))

    def forward(self, x: Tensor) -> Tensor:
        """From (..., size_in) to (..., size_out)."""
        return x @ self.weight + self.bias


class LayerNorm(nn.Module):
    """Gives each vector mean 0 and variance 1; then a gain and a bias follow."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """From (..., width) to the same shape."""
        centered = x - x.mean(dim=-1, keepdim=True)
        variance = centered.square().mean(dim=-1, keepdim=True)
        return centered / torch.sqrt(variance + 1e-5) * self.weight + self.bias


class Attention(nn.Module):
    """Each position takes a mean of values: its own, and those before it."""

    def __init__(self, width: int, heads: int, dropout: float, std: float) -> None:
        super().__init__()
        self.heads = heads
        # Queries, keys and values, of all heads at once.
        self.c_attn = Conv1D(width, 3 * width)
        self.c_proj = Conv1D(width, width, std)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """From (batch, seq, width) to the same shape."""
        batch, seq, width = x.shape
        # Three tensors of shape (batch, heads, seq, width / heads).
        query, key, value = (
            part.view(batch, seq, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=-1)
        )
        # Scores and weights have the shape (batch, heads, seq, seq).
        scores = query @ key.mT / math.sqrt(width // self.heads)
        later = torch.ones(seq, seq, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(later, -math.inf).softmax(dim=-1)
        mean = self.drop(weights) @ value
        # The heads, side by side.
        joined = mean.transpose(1, 2).reshape(batch, seq, width)
        return self.drop(self.c_proj(joined))


class FeedForward(nn.Module):
    """Each position by itself: to four times the width, GELU, and back."""

    def __init__(self, width: int, dropout: float, std: float) -> None:
        super().__init__()
        self.c_fc = Conv1D(width, 4 * width)
        self.c_proj = Conv1D(4 * width, width, std)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """From (batch, seq, width) to the same shape."""
        x = self.c_fc(x)
        # GELU, as GPT-2 approximates it.
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        x = 0.5 * x * (1 + torch.tanh(inner))
        return self.drop(self.c_proj(x))


class Block(nn.Module):
    """Attention, then feed-forward: each reads through a norm, and adds."""

    def __init__(self, width: int, heads: int, dropout: float, std: float) -> None:
        super().__init__()
        self.ln_1 = LayerNorm(width)
        self.attn = Attention(width, heads, dropout, std)
        self.ln_2 = LayerNorm(width)
        self.mlp = FeedForward(width, dropout, std)

    def forward(self, x: Tensor) -> Tensor:
        """From (batch, seq, width) to the same shape."""
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    """Token ids in, a score for each token that may come next out.

    Args:
        vocab_size: Number of tokens in the vocabulary.
        max_seq: Longest sequence, in tokens.
        width: Features of a position.
        layers: Number of blocks.
        heads: Number of heads of each block, a divisor of `width`.
        dropout: Share that is dropped in training.

    Examples:
        >>> model = GPT2(vocab_size=50, max_seq=16, width=12, layers=2, heads=3)
        >>> ids = torch.tensor([[3, 14, 15]])
        >>> model(ids).shape
        torch.Size([1, 3, 50])
        >>> len(list(model.generate(ids, 4)))
        4
    """

    def __init__(
        self,
        vocab_size: int = 50257,
        max_seq: int = 1024,
        width: int = 768,
        layers: int = 12,
        heads: int = 12,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.max_seq = max_seq
        self.wte = nn.Embedding(vocab_size, width)
        self.wpe = nn.Embedding(max_seq, width)
        self.drop = nn.Dropout(dropout)
        # Two layers of each block write into the stream; they start smaller.
        std = 0.02 / math.sqrt(2 * layers)
        blocks = (Block(width, heads, dropout, std) for _ in range(layers))
        self.h = nn.ModuleList(blocks)
        self.ln_f = LayerNorm(width)
        for table in (self.wte, self.wpe):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        """From ids, (batch, seq), to scores, (batch, seq, vocab_size)."""
        positions = torch.arange(ids.shape[-1], device=ids.device)
        # The residual stream.
        x = self.drop(self.wte(ids) + self.wpe(positions))
        for block in self.h:
            x = block(x)
        # The table of tokens, a second time.
        return self.ln_f(x) @ self.wte.weight.T

    def loss(self, ids: Tensor) -> Tensor:
        """The mean of -ln(probability) of each next token, for ids (batch, seq)."""
        logits = self(ids[:, :-1])
        following = ids[:, 1:].flatten()
        return nn.functional.cross_entropy(logits.flatten(0, 1), following)

    @torch.no_grad()
    def generate(self, ids: Tensor, steps: int, temperature: float = 1.0) -> Iterator[Tensor]:
        """Draws token after token, each (batch,); temperature 0 takes the best."""
        for _ in range(steps):
            logits = self(ids[:, -self.max_seq :])[:, -1]
            if temperature == 0:
                token = logits.argmax(dim=-1)
            else:
                probabilities = (logits / temperature).softmax(dim=-1)
                token = torch.multinomial(probabilities, 1)[:, 0]
            yield token
            ids = torch.cat([ids, token[:, None]], dim=-1)
