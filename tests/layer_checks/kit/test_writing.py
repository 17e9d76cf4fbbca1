"""What a language model writes is asked of those that write."""

from typing import Any

import pytest
import torch
from torch import Tensor

from layer_checks import check
from layer_checks.kit.writing import continued, written
from transformer_layers import GPT2, GPT2Config

# In the process that already knows how the model's mistakes behave.
with_the_mistakes = pytest.mark.xdist_group("mistakes of GPT2")
ASKED = {"greedy tokens", "rows that end", "end in a prompt", "nucleus", "nucleus of four"}
ASKED |= {
    "past the positions",
    "modes after writing",
    "streams in turn",
    "draws of a generator",
    "boundary of top p",
    "ties of top k",
    "temperature near zero",
}


class WithoutEnds(GPT2):
    """Writes as nanoGPT does: there is no token that ends a sequence, and no nucleus."""

    stream: Any = property()  # hasattr is false

    def generate(  # type: ignore[override]
        self, ids: Tensor, max_new_tokens: int, temperature: float = 0.0, top_k: int | None = None
    ) -> Tensor:
        return continued(self, ids)


class Silent(GPT2):
    """Writes nothing."""

    generate: Any = property()
    stream: Any = property()


@with_the_mistakes
def test_a_model_that_does_not_write_is_not_asked() -> None:
    report = check("GPT2", Silent)
    assert report
    assert {result.name for result in report.failed} == ASKED
    assert {result.text for result in report.failed} == {"it has no generate"}
    assert all(result.word == "unasked" for result in report.failed)


@with_the_mistakes
def test_a_model_is_asked_for_what_it_takes() -> None:
    report = check("GPT2", WithoutEnds)
    assert report
    unasked = {result.name: result.text for result in report.failed if result.word == "unasked"}
    assert set(unasked) == ASKED - {
        *("greedy tokens", "past the positions", "ties of top k"),
        *("temperature near zero", "modes after writing"),
    }
    assert unasked["rows that end"] == "its generate takes no eos_token"
    assert unasked["nucleus"] == "its generate takes no top_p"
    assert report.behaves_like is None


def test_a_stream_that_is_another_is_seen() -> None:
    class Other(GPT2):
        def stream(self, ids: Tensor, max_new_tokens: int) -> Any:  # type: ignore[override]
            yield from torch.zeros(max_new_tokens, len(ids), dtype=torch.int64)

        def generate(self, ids: Tensor, max_new_tokens: int) -> Tensor:  # type: ignore[override]
            return continued(self, ids)

    model = Other(GPT2Config(11, 8, 6, 2, 3)).eval()
    with torch.no_grad():  # token 0 has the logit 0, and token 4 a greater one, for every draw
        model.wte.weight[0] = 0
        model.ln_f.weight.zero_()
        model.ln_f.bias.copy_(model.wte.weight[4])
    with pytest.raises(AssertionError, match=r"^not equal: "):
        written(model, torch.tensor([[1, 2, 3]]))


class Drawing(GPT2):
    """Writes as nanoGPT does: it draws at temperature 1, and calls itself for logits and a loss."""

    stream: Any = property()  # hasattr is false

    def forward(self, ids: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return super().forward(ids), None

    @torch.no_grad()
    def generate(  # type: ignore[override]
        self, ids: Tensor, max_new_tokens: int, temperature: float = 1.0, top_k: int | None = None
    ) -> Tensor:
        self.eval()
        for _ in range(max_new_tokens):
            logits, _ = self(ids)
            scores = logits[:, -1] / temperature
            if top_k is not None:
                scores[scores < scores.topk(top_k).values[:, -1:]] = -torch.inf
            ids = torch.cat([ids, torch.multinomial(scores.softmax(-1), 1)], dim=1)
        return ids


class AlwaysDrawing(Drawing):
    """Takes nothing with which it would not draw."""

    def generate(  # type: ignore[override]
        self, ids: Tensor, max_new_tokens: int, temperature: float = 1.0
    ) -> Tensor:
        return super().generate(ids, max_new_tokens, temperature)


@with_the_mistakes
def test_a_model_that_draws_is_asked_for_its_likeliest_tokens() -> None:
    found = {each.name: each for each in check("GPT2", Drawing).results}
    assert found["greedy tokens"].held, found["greedy tokens"]
    assert "it returns a tuple, of which the first tensor is taken" in found["arguments"].text


@with_the_mistakes
def test_one_that_cannot_but_draw_is_not_asked() -> None:
    found = {each.name: each for each in check("GPT2", AlwaysDrawing).results}
    greedy = found["greedy tokens"]
    assert not greedy.asked
    assert greedy.text == "its generate draws, and takes no greedy or do_sample or sample or top_k"
