"""torch's own layers keep the law of each layer, whatever contract they have with their callers."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks import check
from layer_checks.kit.definitions import Candidate
from layer_checks.registry import LAYERS

pytestmark = pytest.mark.usefixtures("as_users_run_it")


class RMSNorm(nn.RMSNorm):
    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__(d_model, eps)


class BatchNorm1d(nn.BatchNorm1d):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1) -> None:
        super().__init__(num_features, eps, momentum)


class Linear(nn.Module):
    """`nn.functional.linear` on a transposed matrix."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight.t(), self.bias)


class Attention(nn.Module):
    """torch's attention kernel between four `nn.Linear`."""

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.query_proj = nn.Linear(d_model, d_model, bias)
        self.key_proj = nn.Linear(d_model, d_model, bias)
        self.value_proj = nn.Linear(d_model, d_model, bias)
        self.output_proj = nn.Linear(d_model, d_model, bias)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        heads = [
            projection(x).unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)
            for projection, x in (
                (self.query_proj, query),
                (self.key_proj, key),
                (self.value_proj, value),
            )
        ]
        mask = mask.unsqueeze(-3) if mask is not None and mask.ndim == 3 else mask
        dropped = functional.scaled_dot_product_attention(
            *heads, mask, dropout_p=self.dropout if self.training else 0.0
        )
        return self.output_proj(dropped.transpose(-3, -2).flatten(-2))


class PositionwiseFeedForward(nn.Sequential):
    """`nn.Linear`, `nn.ReLU`, `nn.Linear` and `nn.Dropout`."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__(
            nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model), nn.Dropout(dropout)
        )


def smoothed_cross_entropy(
    logits: Tensor, labels: Tensor, epsilon: float, padding_token: int | None = None
) -> Tensor:
    ignored = -100 if padding_token is None else padding_token
    return functional.cross_entropy(logits, labels, ignore_index=ignored, label_smoothing=epsilon)


TORCH: dict[str, Candidate] = {
    "LayerNorm": nn.LayerNorm,
    "RMSNorm": RMSNorm,
    "BatchNorm1d": BatchNorm1d,
    "Conv1D": Linear,
    "Dropout": nn.Dropout,
    "dropout": functional.dropout,
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "scaled_dot_product_attention": functional.scaled_dot_product_attention,
    "MultiHeadAttention": Attention,
    "PositionwiseFeedForward": PositionwiseFeedForward,
    "smoothed_cross_entropy": smoothed_cross_entropy,
    "soft_threshold": lambda x, threshold: functional.softshrink(x, threshold),
}


@pytest.mark.parametrize("layer", TORCH)
def test_a_layer_of_torch_keeps_the_law(layer: str) -> None:
    for seed in range(5):
        report = check(layer, TORCH[layer], seed)
        assert not [result for result in report.failed if result.kind == "law"], report


@pytest.mark.parametrize("layer", LAYERS)
def test_every_layer_has_a_law_and_no_kind_is_unknown(layer: str) -> None:
    kinds = [each.kind for each in LAYERS[layer].checks if not each.weak]
    assert set(kinds) <= {"law", "contract", "start"}
    assert kinds.count("law") >= 2
