"""Wrong feed-forward and encoder layers, and wrong GPT-2s."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

import transformer_layers
from evaluation.held_out.definitions import held_out
from transformer_layers.generation.evaluation import in_evaluation
from transformer_layers.generation.loop import as_batch, is_stop, new_tokens, require_stops
from transformer_layers.generation.sampling import next_token_distribution
from transformer_layers.precision import at_least_float32


@held_out(
    "PositionwiseFeedForward", "namedtensor/notation, issue 72", "relu|negative|activation|end"
)
class EndsWithARelu(transformer_layers.PositionwiseFeedForward):
    """Has a ReLU after its second map, too, so that no output is negative."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).relu()


@held_out("PreNormTransformerEncoderLayer", "pytorch/pytorch, issue 61165", "norm|residual")
class NormWithoutACopy(transformer_layers.PreNormTransformerEncoderLayer):
    """Normalizes its variable in place of a copy of it, so that each residual is of the normed."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norm1(x)
        x = x + self.dropout(self.self_attention(x, x, x, mask))
        x = self.norm2(x)
        return x + self.feed_forward(x)


@held_out("TransformerEncoderLayer", "keras-team/keras-io, issue 1256", "norm|residual|order|sum")
class NormsBeforeTheSums(transformer_layers.TransformerEncoderLayer):
    """Normalizes the output of each sub-layer and adds the residual after that."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.norm1(self.dropout(self.self_attention(x, x, x, mask)))
        return x + self.norm2(self.feed_forward(x))


@held_out("GPT2Block", "huggingface/transformers, pull request 21336", "eps|epsilon")
class EpsNotHandedOn(transformer_layers.GPT2Block):
    """Makes its norms without the eps that it was given."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-5, **where: Any
    ) -> None:
        super().__init__(d_model, num_heads, dropout, eps, **where)
        self.ln_1 = nn.LayerNorm(d_model, **where)
        self.ln_2 = nn.LayerNorm(d_model, **where)


@held_out("GPT2", "karpathy/llama2.c, issue 579", "initial|start|c_proj|residual|deviation|depth")
class HalfOfTheResidualScaled(transformer_layers.GPT2):
    """Draws c_proj of the attention for the depth, but that of the feed-forward as all others."""

    @torch.no_grad()
    def _initialize(self) -> None:
        super()._initialize()
        for name, parameter in self.h.named_parameters():
            if name.endswith("mlp.c_proj.weight"):
                parameter.normal_(std=0.02)


@held_out("GPT2", "google/BIG-bench, pull request 876", "loss|first|last|next|shift|roll")
class LossGoesRound(transformer_layers.GPT2):
    """Rolls the labels, so that the last position is to predict the first token."""

    def loss(self, ids: Tensor, labels: Tensor | None = None) -> Tensor:
        with torch.no_grad():
            super().loss(ids, labels)  # its errors
        scores = at_least_float32(self(ids[..., : self.config.n_positions]))
        following = (ids if labels is None else labels).roll(-1, dims=-1)[
            ..., : self.config.n_positions
        ]
        return nn.functional.cross_entropy(scores.flatten(0, -2), following.flatten().long())


@held_out("GPT2", "lucidrains/h-transformer-1d, issue 9", "eos|end|stop")
class EndsOnlyTogether(transformer_layers.GPT2):
    """Stops when all sequences write eos_token in the same step; one that has ended writes on."""

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
        stops = require_stops(eos_token, self.config.vocab_size)
        tokens = super().stream(ids, max_new_tokens, temperature, top_k, top_p, generator)
        return self._until_all_stop(tokens, stops)

    def _until_all_stop(self, stream: Iterator[Tensor], stops: list[int]) -> Iterator[Tensor]:
        for tokens in stream:
            yield tokens
            if stops and is_stop(tokens, stops).all():
                return


@held_out("GPT2", "microsoft/onnxruntime-genai, pull request 1694", "eos|padding|prompt|end")
class EosTakenForPadding(transformer_layers.GPT2):
    """Takes eos_token for padding where a prompt begins with it, and does not attend to it."""

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
        options = max_new_tokens, temperature, top_k, top_p, generator, eos_token
        checked = super().stream(ids, *options)
        stops = require_stops(eos_token, self.config.vocab_size)
        if not stops:
            return checked
        starts = [int(is_stop(prompt, stops).long().cumprod(dim=0).sum()) for prompt in ids]
        return super().stream(
            [
                prompt[min(start, len(prompt) - 1) :]
                for prompt, start in zip(ids, starts, strict=True)
            ],
            *options,
        )


@held_out("GPT2", "fishaudio/fish-speech, pull request 1150", "temperature|top_p|sampl|nucleus")
class TemperatureAfterTheNucleus(transformer_layers.GPT2):
    """Takes the fewest likely tokens by the logits themselves, and divides by temperature then."""

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
        options = max_new_tokens, temperature, top_k, top_p, generator, eos_token
        checked = super().stream(ids, *options)
        if temperature == 0 or top_p is None:
            return checked
        batch, padding = as_batch(ids)
        caches = self.new_caches(len(batch), batch.shape[1] + max_new_tokens, padding)
        model = in_evaluation(self)

        def read(new: Tensor) -> Tensor:
            return model.logits(model.last_hidden_state(new, caches)[:, -1])

        def choose(logits: Tensor) -> Tensor:
            left = next_token_distribution(logits, 1.0, top_k, top_p).log() / temperature
            return torch.multinomial(left.softmax(dim=-1), 1, generator=generator)[:, 0]

        stops = require_stops(eos_token, self.config.vocab_size)
        return new_tokens(read, choose, batch, max_new_tokens, stops)
