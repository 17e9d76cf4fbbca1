"""The situations in which layers are tried, and what goes wrong in each of them alone."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from layer_checks.evidence.evidence import Evidence
from layer_checks.kit.definitions import Candidate
from layer_checks.registry import LAYERS
from transformer_layers import (
    Dropout,
)


def failed(layer: str, candidate: Candidate) -> set[str]:
    """The names of the checks of a layer that fail, with the seed of the tables."""
    from layer_checks.diagnosis.running import run

    checks = [each for each in LAYERS[layer].checks if not each.weak]
    return {each.name for each in checks if not run(each, candidate).held}


def run(name: str, layer: str, candidate: Candidate) -> Evidence:
    """Runs one check on a candidate."""
    (check,) = (each for each in LAYERS[layer].checks if each.name == name)
    return check.run(candidate)


def asked(name: str) -> set[str]:
    return {
        layer for layer, known in LAYERS.items() if name in {each.name for each in known.checks}
    }


def test_each_situation_is_made_for_every_layer_in_which_it_can_arise() -> None:
    masked = {"attention_weights", "scaled_dot_product_attention", "MultiHeadAttention"}
    masked |= {"sink_attention", "soft_capped_attention"}
    blocks = {
        f"{norm}Transformer{part}Layer"
        for norm in ("", "PreNorm")
        for part in ("Encoder", "Decoder")
    }
    assert asked("square masks") == asked("hidden queries") == masked | blocks
    cached = {"CausalSelfAttention", "GroupedQueryAttention", "GPT2Block", "GPT2"}
    cached |= {"Llama", "LlamaBlock", "MultiHeadLatentAttention"}
    decoders = {each for each in blocks if "Decoder" in each}
    assert asked("padded caches") == asked("caches in turn")
    assert asked("caches in turn") == asked("long caches") == cached | decoders
    dropping = {"CausalSelfAttention", "GPT2Block", "GPT2", "Dropout", "MultiHeadAttention"}
    dropping |= blocks | {"PositionwiseFeedForward", "FeedForward"}
    assert asked("dropout changed") == dropping
    assert asked("draws repeated") == dropping | {"dropout", "scaled_dot_product_attention"}
    of_any_size = set(LAYERS) - {"l1_penalty", "l2_penalty", "smoothed_cross_entropy"}
    assert asked("large sizes") == asked("powers of two") == of_any_size
    with_weights = {name for name, known in LAYERS.items() if known.is_class}
    with_weights -= {"Dropout", "RotaryPositions"}
    assert asked("weights changed in place") == with_weights


def test_a_view_of_a_buffer_is_seen_and_an_output_tensor_of_its_own_is_not() -> None:
    class Buffered(nn.LayerNorm):
        def forward(self, x: Tensor) -> Tensor:
            result = super().forward(x)
            if torch.is_grad_enabled():
                return result
            if getattr(self, "kept", result[:0]).shape != result.shape:
                self.kept = torch.empty_like(result)
            return self.kept.copy_(result)

    assert "earlier results" in failed("LayerNorm", Buffered)
    run("earlier results", "LayerNorm", nn.LayerNorm)


@pytest.mark.parametrize(
    ("layer", "shared"),
    [
        ("MultiHeadAttention", lambda mask: mask[:1].expand_as(mask)),  # by the batch
        ("MultiHeadAttention", lambda mask: mask[:, :1].expand_as(mask)),  # by the heads
        ("PositionwiseFeedForward", lambda mask: mask[:, :1].expand_as(mask)),
        ("TransformerEncoderLayer", lambda mask: mask[..., :1].expand_as(mask)),
    ],
)
def test_a_mask_that_is_shared_along_an_axis_is_seen(
    layer: str, shared: Callable[[Tensor], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    def dropped(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
        kept = shared(torch.rand_like(x) >= p)
        return x * kept / (1 - p) if training and p < 1 else x

    right: Any = LAYERS[layer].right_ones[0] if layer == "MultiHeadAttention" else None
    if right is not None:

        class Shares(right):
            def drop(self, weights: Tensor) -> Tensor:
                return dropped(weights, self.dropout, self.training)

        assert "dropped heads" in failed(layer, Shares)
        return

    class Sharing(LAYERS[layer].right):  # type: ignore[name-defined]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            for part in self.modules():
                if isinstance(part, Dropout):
                    part.forward = lambda x, part=part: dropped(x, part.p, part.training)

    assert {"dropped sub layers", "dropped result"} & failed(layer, Sharing)
