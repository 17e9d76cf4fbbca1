"""Known wrong versions of `GPT2` that err in what they write."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from layer_checks.checks.gpt2 import gpt2
from transformer_layers import GPT2, next_token_distribution
from transformer_layers.generation.evaluation import in_evaluation
from transformer_layers.generation.loop import as_batch, is_stop, require_stops


@gpt2.right_otherwise
class _Writing(GPT2):
    """Writes in small steps, of which each wrong version changes one."""

    def stream(
        self,
        ids: Any,
        max_new_tokens: int,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: torch.Generator | None = None,
        eos_token: int | Sequence[int] | None = None,
    ) -> Iterator[Tensor]:
        batch, padding = as_batch(ids)
        stops = require_stops(eos_token, self.config.vocab_size)
        caches = self.new_caches(len(batch), batch.shape[1] + max_new_tokens, padding)
        model = self.reading()
        ended = self.ended_before(batch, stops)
        new = batch
        for _ in range(max_new_tokens):
            with torch.no_grad():
                logits = model.logits(model.last_hidden_state(new, caches)[:, -1])
                probabilities = self.distribution(logits, temperature, top_k, top_p)
            tokens = self.chosen(probabilities, temperature, generator)
            if stops:
                tokens = self.filled(tokens, ended, stops[0])
                ended = ended | is_stop(tokens, stops)
            yield tokens
            if stops and self.over(ended):
                return
            new = tokens[:, None]

    def reading(self) -> GPT2:
        return in_evaluation(self)

    def ended_before(self, ids: Tensor, stops: Sequence[int]) -> Tensor:
        return torch.zeros(len(ids), dtype=torch.bool)

    def distribution(
        self, logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
    ) -> Tensor:
        return next_token_distribution(logits, temperature, top_k, top_p)

    def chosen(
        self, probabilities: Tensor, temperature: float, generator: torch.Generator | None
    ) -> Tensor:
        if temperature == 0:
            return probabilities.argmax(dim=-1)
        return torch.multinomial(probabilities, 1, generator=generator).squeeze(-1)

    def filled(self, tokens: Tensor, ended: Tensor, stop: int) -> Tensor:
        return tokens.masked_fill(ended, stop)

    def over(self, ended: Tensor) -> bool:
        return bool(ended.all())


@gpt2.wrong("switch dropout off while it writes, and leave the model's mode as it was.")
class DropsWhileItWrites(_Writing):
    """Writes in the mode in which it is."""

    def reading(self) -> GPT2:
        return self


@gpt2.wrong("take the most likely token at temperature 0: draw none.")
class DrawsAtTemperatureZero(_Writing):
    """Draws at temperature 0 as at 1."""

    def distribution(
        self, logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
    ) -> Tensor:
        return super().distribution(logits, temperature or 1.0, top_k, top_p)

    def chosen(
        self, probabilities: Tensor, temperature: float, generator: torch.Generator | None
    ) -> Tensor:
        return super().chosen(probabilities, temperature or 1.0, generator)


@gpt2.wrong("fill a row that has ended up with eos_token: the others go on without it.")
class WritesAfterTheEnd(_Writing):
    """Lets a row that has ended go on, until all have."""

    def filled(self, tokens: Tensor, ended: Tensor, stop: int) -> Tensor:
        return tokens


@gpt2.wrong("stop when all rows have ended, not when one has.")
class FirstEndEndsAll(_Writing):
    """Stops with the row that ends first."""

    def over(self, ended: Tensor) -> bool:
        return bool(ended.any())


@gpt2.wrong("stop when all rows have ended.")
class WritesToTheLastStep(_Writing):
    """Fills up rows that have all ended."""

    def over(self, ended: Tensor) -> bool:
        return False


@gpt2.wrong("look for eos_token in new tokens alone: GPT-2's prompts often begin with it.")
class EndOfThePromptCounts(_Writing):
    """Takes a prompt that holds eos_token for one that has ended."""

    def ended_before(self, ids: Tensor, stops: Sequence[int]) -> Tensor:
        return is_stop(ids, stops).any(dim=-1) if stops else super().ended_before(ids, stops)


@gpt2.wrong("divide by the temperature before top_p is counted.")
class TemperatureAfterTopP(_Writing):
    """Counts the nucleus at temperature 1, and divides what is left."""

    def distribution(
        self, logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
    ) -> Tensor:
        if temperature == 0:
            return super().distribution(logits, temperature, top_k, top_p)
        allowed = super().distribution(logits, 1.0, top_k, top_p) > 0
        return (logits / temperature).masked_fill(~allowed, -math.inf).softmax(dim=-1)


@gpt2.wrong("count top_p in what top_k leaves, not the other way round.")
class TopPBeforeTopK(_Writing):
    """Counts the nucleus among all tokens, and then takes the highest of it."""

    def distribution(
        self, logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
    ) -> Tensor:
        nucleus = super().distribution(logits, temperature, None, top_p)
        return super().distribution(nucleus.log(), 1.0, top_k, None) if temperature else nucleus


@gpt2.wrong("divide the logits by the temperature.")
class TemperatureMultiplied(_Writing):
    """Multiplies by the temperature."""

    def distribution(
        self, logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
    ) -> Tensor:
        return super().distribution(logits, temperature and 1 / temperature, top_k, top_p)


@gpt2.wrong("keep the token with which the probabilities reach top_p.")
class NucleusTooSmall(_Writing):
    """Leaves out the token with which the sum reaches top_p."""

    def distribution(
        self, logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
    ) -> Tensor:
        probabilities = super().distribution(logits, temperature, top_k, top_p)
        if top_p is None or temperature == 0:
            return probabilities
        last = probabilities.masked_fill(probabilities == 0, math.inf).argmin(-1, keepdim=True)
        return probabilities.scatter(-1, last, 0.0)


@gpt2.wrong("hand the generator on to what draws.")
class GeneratorLeftOut(_Writing):
    """Draws from torch's global generator, whichever it is given."""

    def chosen(
        self, probabilities: Tensor, temperature: float, generator: torch.Generator | None
    ) -> Tensor:
        return super().chosen(probabilities, temperature, None)
