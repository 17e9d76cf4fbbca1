"""torch's own layers keep the law of each layer, whatever contract they have with their callers."""

from functools import partial

import pytest
from torch import Tensor, nn
from torch.nn import functional

from layer_checks import check
from layer_checks.diagnosis import naming
from layer_checks.diagnosis.mistake_matching import Mistakes
from layer_checks.kit import protocol_probes
from layer_checks.kit.definitions import Candidate
from layer_checks.kit.probes import PROBES
from layer_checks.registry import LAYERS

# What asks how a layer gets on with torch.
PROTOCOL = {
    name for name, each in PROBES.items() if each.run.__module__ == protocol_probes.__name__
}


def smoothed_cross_entropy(
    logits: Tensor, labels: Tensor, epsilon: float, padding_token: int | None = None
) -> Tensor:
    ignored = -100 if padding_token is None else padding_token
    return functional.cross_entropy(logits, labels, ignore_index=ignored, label_smoothing=epsilon)


TORCH: dict[str, Candidate] = {
    "LayerNorm": nn.LayerNorm,
    "RMSNorm": nn.RMSNorm,
    "BatchNorm1d": nn.BatchNorm1d,
    "Conv1D": nn.Linear,
    "Dropout": nn.Dropout,
    "dropout": functional.dropout,
    "gelu": nn.GELU,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "scaled_dot_product_attention": functional.scaled_dot_product_attention,
    "MultiHeadAttention": nn.MultiheadAttention,
    "TransformerEncoderLayer": nn.TransformerEncoderLayer,
    "PreNormTransformerEncoderLayer": nn.TransformerEncoderLayer,
    "smoothed_cross_entropy": smoothed_cross_entropy,
    "soft_threshold": lambda x, threshold: functional.softshrink(x, threshold),
}


@pytest.mark.parametrize("layer", TORCH)
def test_a_layer_of_torch_keeps_the_law(layer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming, "known_mistakes", lambda *_, **__: Mistakes())  # slow
    report = check(layer, TORCH[layer])
    assert not [each for each in report.law if each.word == "failed"], report
    assert not [each for each in report.failed if each.name in PROTOCOL], report


@pytest.mark.parametrize("layer", LAYERS)
def test_every_layer_has_a_law_and_no_kind_is_unknown(layer: str) -> None:
    kinds = [each.kind for each in LAYERS[layer].checks if not each.weak]
    assert set(kinds) <= {"law", "contract", "start"}
    assert kinds.count("law") >= 2
