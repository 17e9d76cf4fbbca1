"""The tables that count, and a whole small run of the experiment."""

import math
from dataclasses import replace

import pytest
import torch

from evaluation.experiments import prose

V = 5


def learned() -> torch.Tensor:
    return torch.randint(V - 1, (60,))  # the last token never comes


@pytest.fixture
def trigram() -> prose.Table:
    tokens = learned()
    shorter = replace(prose.counted(tokens, 2, V), discount=0.7)
    return replace(prose.counted(tokens, 3, V), discount=0.6, shorter=shorter)


def every_row() -> torch.Tensor:
    return torch.cartesian_prod(*[torch.arange(V)] * 3)


def test_probabilities_sum_to_one_after_each_context(trigram):
    for table in (trigram, trigram.shorter):
        likely = table.likely(every_row())
        assert likely.min() > 0
        sums = likely.view(-1, V).sum(dim=-1)
        torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-12)


def test_a_bigram_by_hand():
    """1 and 2 follow 0, twice and once; a discount of 1/2 leaves 3/2 and 1/2 of 3."""
    table = replace(prose.counted(torch.tensor([0, 1, 0, 1, 0, 2]), 2, 4), discount=0.5)
    shares = torch.tensor([4, 3, 2, 1]).double() / 10
    rows = torch.tensor([[0, 0], [0, 1], [0, 2], [0, 3], [3, 1]])
    rest = 2 * 0.5 / 3  # two tokens have followed
    expected = [rest * 0.4, 1.5 / 3 + rest * 0.3, 0.5 / 3 + rest * 0.2, rest * 0.1, shares[1]]
    torch.testing.assert_close(table.likely(rows), torch.tensor(expected).double())


@pytest.fixture
def small(monkeypatch) -> None:
    texts = {
        name: "".join(
            f"The {noun} of {name} had {n} keys, and lost them.\n"
            for n in range(90)
            for noun in ("dog", "cat")
        )
        for name in ("Emma", "Persuasion", "Sense and Sensibility")
    }
    sizes = {"n_layer": 1, "n_head": 1, "n_embd": 8, "seq": 16, "vocab_size": 300}
    monkeypatch.setattr(prose, "novels", lambda: texts)
    monkeypatch.setattr(prose, "SIZES", sizes)
    monkeypatch.setattr(prose, "STEPS", 100)
    monkeypatch.setattr(prose, "SAMPLE_TOKENS", 5)


@pytest.mark.usefixtures("small")
def test_a_small_run_records_what_the_page_shows():
    found = prose.measure()
    assert found["text"]["read"] == ["Emma", "Sense and Sensibility"]
    assert found["scored"] % 16 == 0
    assert [point["step"] for point in found["curve"]] == [100]
    for each in found["models"].values():
        assert each["perplexity"] == pytest.approx(math.exp(each["nats_a_token"]))
        assert 0 < each["nats_a_byte"] < each["nats_a_token"]
    assert found["models"].keys() == found["samples"].keys()
    assert all(text.startswith(prose.PROMPT) for text in found["samples"].values())
