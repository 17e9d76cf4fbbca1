"""The translator learns the language, is the same each time, and can lose a part."""

import pytest
import torch

from tests.book_results import kept_by_the_book
from transformer_layers import Transformer, TransformerConfig
from transformer_training.toy_language import VERBS
from transformer_training.toy_translation import (
    ABLATIONS,
    END,
    attention_to_source,
    batch,
    share_exact,
    trained_translator,
    translated,
)

pytestmark = pytest.mark.xdist_group("translators")  # they are trained once

SENTENCES = ["the cats near the dog here are old .", "the fox or the hens are new ."]
GERMAN = ["hier sind die Katzen bei dem Hund alt .", "der Fuchs oder die Hühner sind neu ."]


def same(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    return all(map(torch.equal, first.parameters(), second.parameters()))


@pytest.fixture(scope="module")
def translator() -> Transformer:
    with kept_by_the_book():
        return trained_translator()


def made(part: str | None) -> Transformer:
    torch.manual_seed(1)
    config = TransformerConfig(60, d_model=12, num_layers=2, num_heads=3, d_ff=16, dropout=0.0)
    return (ABLATIONS[part](config) if part else Transformer(config)).eval()


def test_the_translator_of_the_pages_translates_what_is_held_out(translator):
    assert not translator.training
    assert translator.embedding.weight.dtype == torch.float32
    assert min(share_exact(translator, kind) for kind in VERBS) >= 0.98
    assert translated(translator, SENTENCES) == translated(translator, SENTENCES, beams=3) == GERMAN


def test_the_model_is_the_same_whatever_was_drawn_before():
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = trained_translator(steps=5)
    assert torch.equal(torch.get_rng_state(), state)
    torch.randn(7)
    with torch.inference_mode():
        second = trained_translator(steps=5)
    assert same(first, second)
    assert not second.embedding.weight.is_inference()
    assert not same(first, trained_translator(steps=5, seed=1))
    assert not same(first, trained_translator(steps=5, epsilon=0.1))
    assert torch.get_default_dtype() == torch.float32


def test_averaged_weights_are_the_mean_of_the_last_checkpoints(monkeypatch):
    seen, step = [], torch.optim.Adam.step

    def noted(self, *arguments):
        result = step(self, *arguments)
        seen.append([each.detach().clone() for each in self.param_groups[0]["params"]])
        return result

    monkeypatch.setattr(torch.optim.Adam, "step", noted)
    averaged = trained_translator(steps=25, checkpoints=2)
    expected = [(first + last) / 2 for first, last in zip(seen[14], seen[24], strict=True)]
    for found, mean in zip(averaged.parameters(), expected, strict=True):
        torch.testing.assert_close(found.double(), mean, rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="25 updates have 2 checkpoints, 10 updates apart; got 3"):
        trained_translator(steps=25, checkpoints=3)


@torch.no_grad()
def test_what_each_part_is_for():
    sources, targets = torch.tensor([[5, 6, 7, 8]]), torch.tensor([[9, 10, 11]])
    others, swapped = torch.tensor([[5, 6, 7, 30]]), torch.tensor([[6, 5, 7, 8]])
    later = torch.tensor([[9, 10, 30]])

    def change(part, source, target):
        model = made(part)
        return (model(source, target) - model(sources, targets)).abs().amax(dim=(0, 2))

    assert change(None, others, targets).min() > 1e-3
    assert change("cross-attention", others, targets).max() == 0
    assert change(None, sources, later)[:2].max() == 0
    assert change("mask", sources, later).min() > 1e-3
    assert change(None, swapped, targets).min() > 1e-3
    assert change("positions", swapped, targets).max() < 1e-5
    # In the target too: the last of three words, each of which sees those before it.
    assert change(None, sources, torch.tensor([[10, 9, 11]]))[2] > 1e-3


@torch.no_grad()
def test_the_weights_are_those_with_which_the_memory_is_read(translator):
    source, target = SENTENCES[0], GERMAN[0]
    (weights,) = attention_to_source(translator, source, target)
    assert weights.shape == (2, 10, 10)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 10))
    kept = {}
    attention = translator.decoder.layers[0].cross_attention
    hook = attention.register_forward_hook(lambda *args: kept.update(inputs=args[1], out=args[2]))
    translator(batch([source]), translator.shifted(batch([target])))
    hook.remove()
    values = attention.value_proj(kept["inputs"][1]).unflatten(-1, (2, -1)).transpose(1, 2)
    heads = (weights @ values).transpose(1, 2).flatten(-2)
    torch.testing.assert_close(attention.output_proj(heads), kept["out"], rtol=1e-4, atol=1e-5)
    assert not translator.decoder.layers[0].cross_attention._forward_pre_hooks
    assert batch([target])[0, -1] == END
