"""Wrong layers of layers."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

import transformer_layers
from evaluation.held_out.definitions import held_out
from transformer_layers import KeyValueCache, next_token_distribution
from transformer_layers.generation.decoder import require_room, require_tokens
from transformer_layers.generation.evaluation import in_evaluation
from transformer_layers.generation.loop import as_batch, new_tokens, require_stops
from transformer_layers.generation.sampling import next_token, require_sampling
from transformer_layers.validation import require_size


class _SavesWhatItNeeds(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        return x @ weight

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        x, weight = inputs
        saved = [weight] * ctx.needs_input_grad[0] + [x] * ctx.needs_input_grad[1]
        ctx.save_for_backward(*saved)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        weight, x = ctx.saved_tensors  # no weight is there if x needs no gradient
        return gradient @ weight.T, x.flatten(0, -2).T @ gradient.flatten(0, -2)


@held_out("Conv1D", "Oneflow-Inc/oneflow, issue 5944", "gradient|backward")
class WeightNotSaved(transformer_layers.Conv1D):
    """Has no gradient of its weight for input of three axes that needs none itself."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        needed = torch.is_grad_enabled() and self.weight.requires_grad
        if x.ndim != 3 or x.requires_grad or not needed:
            return y
        product: Tensor = _SavesWhatItNeeds.apply(x, self.weight)  # type: ignore[no-untyped-call]
        return product + self.bias.to(y.dtype)


@held_out(
    "PositionwiseFeedForward", "NVIDIA/TransformerEngine, pull request 72", "gradient|eval|mode"
)
class NoGradientInEvaluation(transformer_layers.PositionwiseFeedForward):
    """Keeps no graph in evaluation, so that nothing has a gradient then."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.set_grad_enabled(self.training and torch.is_grad_enabled()):
            return super().forward(x)


@held_out("FeedForward", "mlc-ai/binary-mlc-llm-libs, pull request 68", "tanh|exact|gelu|erf")
class ExactGeluForTheTanh(transformer_layers.FeedForward):
    """Has the exact GELU in place of the one with which the weights were trained."""

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(nn.functional.gelu(self.c_fc(x))))


@held_out("TransformerEncoderLayer", "hyunwoongko/transformer, issue 8", "dropout|dropped|drops")
class DropsAfterTheNorms(transformer_layers.TransformerEncoderLayer):
    """Drops what the norms return, and not what attention and feed-forward network do."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.dropout(self.norm1(x + self.self_attention(x, x, x, mask)))
        inner = self.feed_forward.linear1(x).relu()
        return self.dropout(self.norm2(x + self.feed_forward.linear2(inner)))


@held_out(
    "PreNormTransformerEncoderLayer", "codertimo/BERT-pytorch, issue 85", "dropout|dropped|drops"
)
class DropsTheStream(transformer_layers.PreNormTransformerEncoderLayer):
    """Drops the stream, too, when all has been added to it."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.dropout(super().forward(x, mask))


@held_out("GPT2Block", "deepspeedai/DeepSpeed, pull request 7428", "cache|past|keyword")
class CacheByPlaceOnly(transformer_layers.GPT2Block):
    """Takes a cache as its second argument and ignores one that is handed over by name."""

    def forward(  # type: ignore[override]
        self,
        x: Tensor,
        layer_past: KeyValueCache | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        return super().forward(x, layer_past)


@held_out("GPT2", "rasbt/reasoning-from-scratch, issue 164", "top_p|nucleus|few|cross|reach")
class NucleusBelowItsShare(transformer_layers.GPT2):
    """Leaves the token out with which the nucleus would reach its share."""

    def stream(
        self,
        ids: Tensor | list[Tensor],
        max_new_tokens: int,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: torch.Generator | None = None,
        eos_token: int | Sequence[int] | None = None,
    ) -> Iterator[Tensor]:
        batch, padding = as_batch(ids)
        require_size("max_new_tokens", max_new_tokens, minimum=0)
        require_sampling(temperature, top_k, top_p)
        stops = require_stops(eos_token, self.config.vocab_size)
        total = batch.shape[1] + max_new_tokens
        require_room(self, total)
        require_tokens(batch, self.vocab_size)
        caches = self.new_caches(batch.shape[0], total, padding)
        model = in_evaluation(self)

        def read(new: Tensor) -> Tensor:
            return model.logits(model.last_hidden_state(new, caches)[:, -1])

        def choose(logits: Tensor) -> Tensor:
            if temperature == 0 or top_p is None:
                return next_token(logits, temperature, top_k, top_p, generator)
            probabilities = next_token_distribution(logits, temperature, top_k)
            ranked, order = probabilities.sort(dim=-1, descending=True, stable=True)
            outside = ranked.cumsum(dim=-1) > top_p
            outside[..., 0] = False
            kept = probabilities.masked_fill(outside.scatter(-1, order, outside), 0.0)
            return torch.multinomial(kept, 1, generator=generator)[:, 0]

        return new_tokens(read, choose, batch, max_new_tokens, stops)


@held_out("GPT2", "bytedance/GRN, issue 27", "generator|seed|repro")
class GeneratorNotUsed(transformer_layers.GPT2):
    """Draws from torch's global generator whatever generator is given."""

    def stream(
        self,
        ids: Tensor | list[Tensor],
        max_new_tokens: int,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: torch.Generator | None = None,
        eos_token: int | Sequence[int] | None = None,
    ) -> Iterator[Tensor]:
        return super().stream(ids, max_new_tokens, temperature, top_k, top_p, eos_token=eos_token)


@held_out(
    "GPT2", "rajveer43/VeloxQuant-MLX, pull request 59", "cache|again|second|earlier|left over"
)
class CachesOfTheLastCall(transformer_layers.GPT2):
    """Hands out caches once, and again with all that they hold to whoever asks next."""

    _handed_out: list[KeyValueCache] | None = None

    def new_caches(
        self, batch: int, max_seq: int, padding: Tensor | None = None
    ) -> list[KeyValueCache]:
        before = self._handed_out
        held = 0 if not before else before[0].length
        caches = super().new_caches(batch, held + max_seq, padding)
        if before and held and padding is None and _alike(before, caches):
            for old, new in zip(before, caches, strict=True):
                keys, values = (each[:, :, :held].detach() for each in (old._keys, old._values))
                new.append(keys, values)
                new.block = old.block
        else:
            caches = super().new_caches(batch, max_seq, padding)
        self._handed_out = caches
        return caches


def _alike(before: list[KeyValueCache], after: list[KeyValueCache]) -> bool:
    """Whether caches hold as many sequences without padding, of one dtype, on one device."""
    old, new = before[0], after[0]
    return (
        old.padding is None
        and old._keys.shape[:2] == new._keys.shape[:2]
        and old._keys.dtype == new._keys.dtype
        and old._keys.device == new._keys.device
    )
