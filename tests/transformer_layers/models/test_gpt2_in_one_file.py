"""The model in one file computes what the package's does."""

import ast
from pathlib import Path

import pytest
import torch

from transformer_layers import GPT2, GPT2Config
from transformer_layers.models import gpt2_in_one_file as one_file

SIZES = dict(vocab_size=50, n_positions=16, n_embd=12, n_layer=2, n_head=3)


@pytest.fixture
def models() -> tuple[one_file.GPT2, GPT2]:
    torch.manual_seed(0)
    checked = GPT2(GPT2Config(**SIZES), dtype=torch.float64).eval()
    for parameter in checked.parameters():  # biases and gains too
        torch.nn.init.normal_(parameter, std=0.3)
    short = one_file.GPT2(vocab_size=50, max_seq=16, width=12, layers=2, heads=3).double().eval()
    short.load_state_dict(checked.state_dict())
    return short, checked


def test_scores_loss_and_gradients_are_the_same(models):
    ids = torch.randint(50, (4, 16))
    found = []
    for model in models:
        loss = model.loss(ids)
        loss.backward()
        found.append([model(ids), loss, *(parameter.grad for parameter in model.parameters())])
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)


def test_it_writes_the_same_beyond_its_longest_sequence_too(models):
    short, checked = models
    ids = torch.randint(50, (2, 14))
    written = torch.stack(list(short.generate(ids, 5, temperature=0.0)), dim=-1)
    for i in range(5):
        expected = checked(ids[:, -16:])[:, -1].argmax(dim=-1)
        torch.testing.assert_close(written[:, i], expected)
        ids = torch.cat([ids, expected[:, None]], dim=-1)


def test_it_drops_in_training_only():
    torch.manual_seed(0)
    model = one_file.GPT2(vocab_size=50, max_seq=16, width=12, layers=2, heads=3, dropout=0.5)
    ids = torch.randint(50, (2, 16))
    assert not torch.equal(model(ids), model(ids))
    model.eval()
    assert torch.equal(model(ids), model(ids))


def test_the_defaults_are_the_smallest_published_model():
    with torch.device("meta"):
        short, checked = one_file.GPT2(), GPT2(GPT2Config())
    shapes = [{n: w.shape for n, w in m.state_dict().items()} for m in (short, checked)]
    assert shapes[0] == shapes[1]
    assert short.drop.p == checked.config.dropout


def test_it_is_short_and_needs_torch_alone():
    text = Path(one_file.__file__).read_text()
    assert len(text.splitlines()) <= 200
    imported = {
        alias.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported == {"math", "collections.abc", "torch"}
