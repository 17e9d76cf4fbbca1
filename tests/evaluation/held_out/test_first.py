"""Each held-out version is wrong: `check` catches it, or what it does otherwise is shown here."""

import copy
import re

import pytest
import torch

from evaluation.held_out.__main__ import examined, totals
from evaluation.held_out.definitions import VERSIONS
from evaluation.held_out.first import attention, blocks, elementwise, norms, situations  # noqa: F401
from layer_checks import check
from tests.evaluation.held_out.demonstrations import assert_shown, recorded
from transformer_layers import GPT2Config, padding_mask

CONFIG = GPT2Config(vocab_size=11, n_positions=12, n_embd=6, n_layer=2, n_head=2, dropout=0.5)


def batch_of_evaluation(candidate):
    layer = candidate(3)
    layer.load_state_dict(candidate(3).state_dict())
    x = torch.randn(5, 3)
    return torch.allclose(layer.eval()(x), x, atol=1e-4)


def clamped_maximum(candidate):
    scores = candidate(torch.tensor([[-2e4]]), torch.tensor([[1.0], [1.0001]]))
    return bool(scores.sum() > 0.99)


def not_causal_while_dropping(candidate):
    layer, x = candidate(6, 2, dropout=1e-9), torch.randn(1, 4, 6)
    first = layer(x)[:, 0]
    x[:, 3] = 9.0
    return torch.allclose(layer(x)[:, 0], first)


def padding_becomes_zero(candidate):
    layer = candidate(6, 2, 8).eval()
    y = layer(torch.randn(2, 3, 6), padding_mask(torch.tensor([3, 1]), 3))
    return bool((y != 0).any(dim=-1).all())


def embeddings_dropped_twice(candidate):
    model = candidate(CONFIG)
    held = {}
    model.h[0].register_forward_pre_hook(lambda module, inputs: held.update(x=inputs[0]))
    model(torch.randint(11, (200, 12)))
    return abs((held["x"] == 0).double().mean().item() - 0.5) < 0.05


def positions_count_padding(candidate):
    # dtype float64, so that no two logits are equal by rounding
    model = candidate(CONFIG, dtype=torch.float64).eval()
    with torch.no_grad():
        model.wpe.weight.normal_()
        caches = model.new_caches(2, 5, torch.tensor([0, 3]))
        padded = model(torch.tensor([[1, 2, 3, 4, 5], [0, 0, 0, 6, 7]]), caches)[1, -1]
        return torch.allclose(padded, model(torch.tensor([[6, 7]]))[0, -1])


def tanh_form_for_wide_input(candidate):
    x = torch.linspace(-4, 4, 2000, dtype=torch.float64)
    return torch.allclose(candidate(x), torch.nn.functional.gelu(x))


def drawn_by_numpy(candidate):
    drawn = []
    for _ in range(2):
        torch.manual_seed(0)
        drawn.append(candidate(0.5)(torch.ones(100)))
    return torch.equal(*drawn)


def of_trained_weights_only(candidate):
    trained = torch.ones(3, requires_grad=True)
    return candidate([trained, torch.ones(2)]).item() == 5


def batch_of_one_squeezed(candidate):
    return candidate(3, 4)(torch.randn(1, 2, 3)).shape == (1, 2, 3)


def single_key_squeezed(candidate):
    return candidate(torch.randn(2, 3), torch.randn(1, 3)).shape == (2, 1)


def residual_in_place(candidate):
    x = torch.randn(2, 3, 6)
    before = x.clone()
    with torch.no_grad():
        candidate(6, 2, 8)(x)
    return torch.equal(x, before)


def mask_of_the_first_call(candidate):
    layer = candidate(6, 2)
    layer(torch.randn(1, 2, 6))
    try:
        layer(torch.randn(1, 3, 6))
    except RuntimeError:
        return False
    return True


def stays_in_evaluation(candidate):
    model = candidate(CONFIG)
    model.generate(torch.tensor([[1, 2]]), 1)
    return model.training


def drops_while_generating(candidate):
    model = candidate(CONFIG)
    drawn = {tuple(model.generate(torch.tensor([[1, 2]]), 5)[0].tolist()) for _ in range(8)}
    return len(drawn) == 1


def no_gradient_of_a_constant(candidate):
    x = torch.ones(1, 4, requires_grad=True)
    candidate(4)(x).sum().backward()
    return bool(x.grad.isfinite().all())


def nan_of_a_single_value(candidate):
    try:
        candidate(3)(torch.randn(1, 3))
    except ValueError:
        return True
    return False


def dtype_ignored(candidate):
    return candidate(3, dtype=torch.float64).weight.dtype == torch.float64


def keeps_its_weights(candidate):
    layer, x = candidate(6, 2), torch.randn(1, 3, 6)
    layer(x, x, x)
    try:
        copy.deepcopy(layer)
    except RuntimeError:
        return False
    return True


# What `check` did not catch when the versions were collected.
SHOWN = (
    batch_of_evaluation,
    clamped_maximum,
    not_causal_while_dropping,
    padding_becomes_zero,
    embeddings_dropped_twice,
    positions_count_padding,
    tanh_form_for_wide_input,
    drawn_by_numpy,
    of_trained_weights_only,
    batch_of_one_squeezed,
    single_key_squeezed,
    residual_in_place,
    mask_of_the_first_call,
    stays_in_evaluation,
    drops_while_generating,
    no_gradient_of_a_constant,
    nan_of_a_single_value,
    dtype_ignored,
    keeps_its_weights,
)
BEFORE = recorded("before")


class TestTheVersions:
    @pytest.mark.parametrize("shows", SHOWN, ids=lambda shows: shows.__name__)
    def test_the_right_layer_does_what_the_wrong_one_does_not(self, shows):
        assert_shown(shows)

    def test_each_is_caught_or_shown(self):
        missed = {row["version"] for row in BEFORE["versions"] if not row["caught"]}
        assert missed == {shows.__name__.replace("_", " ") for shows in SHOWN}

    def test_all_have_a_source_a_sentence_and_words(self):
        for version in VERSIONS.values():
            assert version.what.endswith(".")
            assert version.source
            assert re.compile(version.words)

    @pytest.mark.parametrize(
        ("layer", "rewritten"),
        [
            ("LayerNorm", norms._LayerNorm),
            ("RMSNorm", norms._RMSNorm),
            ("MultiHeadAttention", attention._Projected),
        ],
    )
    def test_what_they_derive_from_passes(self, layer, rewritten):
        assert check(layer, rewritten)


class TestTheRecord:
    def test_the_record_is_of_these_versions(self):
        first = [name for name, each in VERSIONS.items() if each.collection == "first"]
        assert [row["version"] for row in BEFORE["versions"]] == first
        assert BEFORE["totals"] == totals(BEFORE["versions"])

    def test_a_row_says_what_failed_and_how_it_was_named(self):
        row = examined(VERSIONS["p is kept"])
        assert row["caught"]
        assert "kept share" in row["failed"]
        assert len(row["failed"]) == len(row["measured"])
