"""Known wrong versions of `GPT2` that err in what they write."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from layer_checks.checks.gpt2 import gpt2
from transformer_layers import GPT2, GPT2Config, KeyValueCache, next_token_distribution
from transformer_layers.generation.ending import is_stop, require_stops
from transformer_layers.generation.evaluation import in_evaluation
from transformer_layers.generation.loop import as_batch


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
        **unchanged: Any,  # no wrong version is about these options
    ) -> Iterator[Any]:
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


@gpt2.wrong("where positions are used up, go on from the last tokens, or refuse.")
class GoesOnFromTheFirst(_Writing):
    """Reads the first tokens again and again once there are no more positions."""

    def generate(self, ids: Any, max_new_tokens: int, **options: Any) -> Any:  # type: ignore[override]  # no wrong version is about the others
        positions = self.config.n_positions
        if not isinstance(ids, Tensor) or ids.shape[-1] + max_new_tokens <= positions:
            return super().generate(ids, max_new_tokens, **options)
        for _ in range(max_new_tokens):
            with torch.no_grad():
                new = self.reading()(ids[..., :positions])[..., -1, :].argmax(dim=-1)
            ids = torch.cat([ids, new[..., None]], dim=-1)
        return ids


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


@gpt2.wrong("keep every token whose logit is the last of top_k's, also where there are several.")
class TiesLeftOut(_Writing):
    """Keeps as many tokens as `top_k` says, the first of those that are equal."""

    def distribution(
        self, logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
    ) -> Tensor:
        if top_k is not None:
            others = torch.ones_like(logits, dtype=torch.bool)
            others.scatter_(-1, logits.topk(min(top_k, logits.shape[-1])).indices, False)
            logits = logits.masked_fill(others, -math.inf)
        return super().distribution(logits, temperature, None, top_p)


@gpt2.wrong(
    "stop where the sum reaches top_p: a token that follows is one too many.",
    published="top_k_top_p_filtering, "
    "https://gist.github.com/thomwolf/1a5a29f6962089e871b94cbd09daf317",
)
class OneTokenMoreAtTheBoundary(_Writing):
    """Removes what comes after the sum has passed top_p, and so keeps one where it is reached."""

    def distribution(
        self, logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
    ) -> Tensor:
        probabilities = super().distribution(logits, temperature, top_k, None)
        if top_p is None or temperature == 0:
            return probabilities
        ranked, order = probabilities.sort(dim=-1, descending=True, stable=True)
        before = ranked.cumsum(dim=-1) - ranked
        outside = torch.zeros_like(before, dtype=torch.bool).scatter(-1, order, before > top_p)
        kept = probabilities.masked_fill(outside, 0.0)
        return kept / kept.sum(dim=-1, keepdim=True)


@gpt2.wrong(
    "subtract the highest logit before the division: near temperature 0 the quotient overflows."
)
class QuotientOverflows(_Writing):
    """Divides the logits as they are, which gives infinity near temperature 0."""

    def distribution(
        self, logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
    ) -> Tensor:
        if temperature == 0:
            return super().distribution(logits, temperature, top_k, top_p)
        return super().distribution(logits / temperature, 1.0, top_k, top_p)


@gpt2.wrong(
    "leave the mode as it was: whoever trains on after a sample trains without dropout.",
    published="https://github.com/rohitg00/ai-engineering-from-scratch/pull/206; the other way "
    "round https://github.com/fatchord/WaveRNN/issues/71",
)
class StaysInEvaluation(_Writing):
    """Switches itself to evaluation, and not back."""

    def reading(self) -> GPT2:
        return self.eval()


@gpt2.wrong(
    "give each stream caches of its own: those of the model are overwritten by the next prompt.",
    published="meta-llama/llama, llama/model.py, where there is one prompt at a time",
)
class CachesOfTheModel(_Writing):
    """Holds one set of caches, that of the last prompt."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.last: list[Any] = []

    def new_caches(self, *args: Any, **kwargs: Any) -> list[KeyValueCache]:
        self.last[:] = super().new_caches(*args, **kwargs)
        return list(self.last)

    def last_hidden_state(
        self, ids: Any, caches: Sequence[KeyValueCache] | None = None, **further: Any
    ) -> Tensor:
        return super().last_hidden_state(
            ids, self.last if caches and self.last else caches, **further
        )
