"""Wrong versions of GPT-2 and of its block."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from evaluation.held_out.definitions import held_out
from transformer_layers.attention.cache import KeyValueCache
from transformer_layers.models.gpt2.block import GPT2Block
from transformer_layers.models.gpt2.conv1d import Conv1D
from transformer_layers.models.gpt2.model import GPT2

Caches = Sequence[KeyValueCache] | None


@held_out("GPT2", "review practice", r"last|position|logits|prompt|cache|shape")
class GPT2AnsweringForTheLast(GPT2):
    """With caches, scores the last position only, since no more is needed to go on."""

    def forward(self, ids: Tensor, caches: Caches = None) -> Tensor:
        hidden = self.last_hidden_state(ids, caches)
        return self.logits(hidden if not caches else hidden[..., -1:, :])


@held_out("GPT2", "review practice", r"drop|embedding|position|\bsum")
class GPT2DroppingTokensOnly(GPT2):
    """Drops of the token embeddings before it adds the positions, not of the sum."""

    def _last_hidden_state(self, ids: Tensor, positions: Tensor, caches: Caches) -> Tensor:
        x = self.drop(self._embed(ids)) + self.wpe(positions)
        for i, block in enumerate(self.h):
            x = block(x, caches[i] if caches else None)
        return self.ln_f(x)


@held_out("GPT2", "review practice", r"vocab|\bids?\b|range|clamp|error|refus|invalid|-100")
class GPT2ForgivingStrangeTokens(GPT2):
    """Takes the nearest token for one outside the vocabulary, where there should be an error."""

    def last_hidden_state(self, ids: Tensor, caches: Caches = None) -> Tensor:
        return super().last_hidden_state(ids.clamp(0, self.vocab_size - 1), caches)


@held_out("GPT2", "review practice", r"reset|initial|embedding|meta|draw")
class GPT2WithLastingEmbeddings(GPT2):
    """Draws all but the embeddings anew when it is reset."""

    def reset_parameters(self) -> None:
        kept = [each.weight.detach().clone() for each in (self.wte, self.wpe)]
        super().reset_parameters()
        with torch.no_grad():
            for each, weight in zip((self.wte, self.wpe), kept, strict=True):
                each.weight.copy_(weight)


class _PlainBlock(nn.Module):
    """The parts of a block, which are computed again for the gradient."""

    preserves = True

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float = 0.1,
        eps: float = 1e-5,
        *,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        model = GPT2Block(d_model, num_heads, dropout, eps, device=device, dtype=dtype)
        self.d_model = d_model
        self.ln_1, self.attn, self.ln_2, self.mlp = model.children()

    def reset_parameters(self) -> None:
        for each in self.modules():
            if isinstance(each, nn.LayerNorm | Conv1D):
                each.reset_parameters()

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        if not self._saves_memory(cache):
            return self._computed(x, cache)
        return checkpoint(
            self._computed, x, cache, use_reentrant=False, preserve_rng_state=self.preserves
        )

    def _computed(self, x: Tensor, cache: KeyValueCache | None) -> Tensor:
        return GPT2Block.forward(self, x, cache)

    def _saves_memory(self, cache: KeyValueCache | None) -> bool:
        return self.training and torch.is_grad_enabled()


@held_out(
    "GPT2Block",
    "allenai/OLMo-core, pull 828",
    r"drop|gradient|recompute|checkpoint|draw|random",
)
class GPT2BlockOfOtherDraws(_PlainBlock):
    """Computes itself again for the gradient, with other draws of dropout."""

    preserves = False

    def _saves_memory(self, cache: KeyValueCache | None) -> bool:
        return super()._saves_memory(cache) and cache is None


@held_out(
    "GPT2Block",
    "shihao1895/MemoryVLA, issue 18",
    r"cache|recompute|checkpoint|twice|gradient|train",
)
class GPT2BlockFillingItsCacheTwice(_PlainBlock):
    """Computes itself again for the gradient, and adds to the cache a second time."""
