"""Label smoothing: its three readings, by hand and against torch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.transformer_layers.comparisons import assert_same, values_and_gradients
from transformer_layers import smoothed_cross_entropy

V, PADDING = 7, 0


def random_case():
    logits = torch.randn(3, 4, V, dtype=torch.float64)
    labels = torch.randint(1, V, (3, 4))
    labels[1, 2:] = PADDING
    return logits, labels


@given(st.floats(0, 1), st.integers(0, 2**16))
def test_all_is_torchs(epsilon, seed):
    torch.manual_seed(seed)
    logits, labels = random_case()
    expected = values_and_gradients(
        lambda logits: torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=0, label_smoothing=epsilon
        ),
        [logits],
        [],
    )
    actual = values_and_gradients(
        lambda logits: smoothed_cross_entropy(logits, labels, epsilon, "all", PADDING), [logits], []
    )
    assert_same(actual, expected)


@pytest.mark.parametrize(
    ("reading", "kept"),
    [("all", 0.9 + 0.1 / V), ("others", 0.9), ("others_but_padding", 0.9)],
)
def test_the_share_that_the_right_token_keeps_shows_in_its_gradient(reading, kept):
    logits = torch.zeros(1, V, dtype=torch.float64, requires_grad=True)
    smoothed_cross_entropy(logits, torch.tensor([3]), 0.1, reading, PADDING).backward()
    # The gradient is probability minus target.
    target = 1 / V - logits.grad[0]
    assert target[3].item() == pytest.approx(kept, abs=1e-12)
    assert target.sum().item() == pytest.approx(1, abs=1e-12)
    padding = {"all": 0.1 / V, "others": 0.1 / (V - 1), "others_but_padding": 0.0}[reading]
    assert target[PADDING].item() == pytest.approx(padding, abs=1e-12)


@pytest.mark.parametrize("reading", ["all", "others", "others_but_padding"])
def test_padding_is_not_scored_whatever_stands_there(reading):
    logits, labels = random_case()
    changed = logits.clone()
    changed[1, 2:] += torch.randn(2, V)
    losses = [
        smoothed_cross_entropy(each, labels, 0.1, reading, PADDING) for each in (logits, changed)
    ]
    assert losses[0] == losses[1]
    rows = labels != PADDING
    alone = smoothed_cross_entropy(logits[rows], labels[rows], 0.1, reading, PADDING)
    torch.testing.assert_close(losses[0], alone)


def test_half_precision_is_summed_up_in_float32():
    logits, labels = random_case()
    low = logits.bfloat16()
    loss = smoothed_cross_entropy(low, labels, 0.1, "all", PADDING)
    assert loss.dtype == torch.float32
    exact = smoothed_cross_entropy(low.double(), labels, 0.1, "all", PADDING)
    torch.testing.assert_close(loss.double(), exact, rtol=1e-5, atol=0)


@pytest.mark.usefixtures("as_users_run_it")
def test_it_compiles_to_one_graph():
    logits, labels = random_case()
    compiled = torch.compile(smoothed_cross_entropy, fullgraph=True, backend="aot_eager")
    arguments = (logits, labels, 0.1, "others_but_padding", PADDING)
    torch.testing.assert_close(compiled(*arguments), smoothed_cross_entropy(*arguments))


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"labels": torch.zeros(2)}, TypeError, "labels must be a tensor of int64 or int32"),
        ({"epsilon": 1.5}, ValueError, "epsilon must be between 0 and 1, got 1.5"),
        ({"reading": "others_but_padding"}, ValueError, "others_but_padding needs a padding_token"),
        (
            {"labels": torch.zeros(2).long(), "padding_token": 0},
            ValueError,
            "there must be a label to score, got 2 of padding",
        ),
        (
            {"logits": torch.zeros(2, 1), "labels": torch.zeros(2).long(), "reading": "others"},
            ValueError,
            "others leaves no token to share epsilon, of vocab_size = 1",
        ),
    ],
)
def test_errors(change, error, message):
    arguments = {"logits": torch.zeros(2, 3), "labels": torch.tensor([1, 2]), "epsilon": 0.1}
    with pytest.raises(error, match="^" + message):
        smoothed_cross_entropy(**{**arguments, **change})
