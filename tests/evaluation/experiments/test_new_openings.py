"""Openings that training has not shown: what is held out is, and what is right is counted so."""

import pytest
import torch

from evaluation.experiments import new_openings
from transformer_layers import train_tokenizer


class Prefers(torch.nn.Module):
    """Gives one token the highest score, whatever it reads."""

    def __init__(self, token: int) -> None:
        super().__init__()
        self.token = token

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.eye(300)[self.token].expand(*ids.shape, 300)


def test_no_text_of_training_begins_as_one_that_is_held_out(monkeypatch):
    monkeypatch.setattr(new_openings, "STEPS", 0)
    read = []

    def noted(texts, vocab_size):
        read.extend(texts)
        return train_tokenizer(texts, vocab_size=vocab_size)

    monkeypatch.setattr(new_openings, "train_tokenizer", noted)
    _, _, held = new_openings.trained(seed=1)
    assert len(set(held)) == new_openings.HELD
    assert {new_openings.opening(line) for line in read} == set(new_openings.openings()) - set(held)


def test_who_always_says_is_has_the_singular_ones_right(monkeypatch):
    monkeypatch.setattr(new_openings, "STEPS", 0)
    _, tokenizer, _ = new_openings.trained(seed=0)
    model = Prefers(tokenizer.encode(" is").item())
    texts = ["the cat near the dogs", "the cats near the dog", "the dog near the cat"]
    assert new_openings.right(model, tokenizer, texts) == 2


def test_a_verb_of_two_tokens_is_refused():
    tokenizer = train_tokenizer(["the cat near the dogs"], vocab_size=257)
    with pytest.raises(ValueError, match="a token each was wanted"):
        new_openings.right(Prefers(0), tokenizer, [])
