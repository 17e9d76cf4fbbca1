"""The situations in which layers are tried, and what goes wrong in each of them alone."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.evidence.evidence import Evidence
from layer_checks.kit.definitions import Candidate
from layer_checks.registry import LAYERS
from transformer_layers import (
    CausalSelfAttention,
    Conv1D,
    Dropout,
    GroupedQueryAttention,
    KeyValueCache,
    LayerNorm,
    MultiHeadAttention,
    PositionwiseFeedForward,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
    attention_weights,
    causal_mask,
    sliding_window_mask,
)

pytestmark = pytest.mark.usefixtures("as_users_run_it")


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


def test_a_rest_that_is_empty_is_seen() -> None:
    def halves(x: Tensor, axis: int) -> Tensor:
        size = x.shape[axis]
        rest = size % 64
        if size < 64:
            return x
        return torch.cat(
            [x.narrow(axis, 0, size - rest), x.movedim(axis, 0)[-rest:].movedim(0, axis)], axis
        )

    class Chunks(LayerNorm):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(halves(x, -2))

    assert failed("LayerNorm", Chunks) == {"powers of two"}


def test_masks_of_many_positions_are_seen() -> None:
    table = torch.ones(512, 1024, dtype=torch.bool).tril()

    def of_a_table(seq: int, past: int = 0) -> Tensor:
        return table.tril()[past : past + seq, : past + seq] if past + seq < 512 else table[:seq]

    assert {"large sizes", "powers of two"} <= failed("causal_mask", of_a_table)
    assert failed("causal_mask", of_a_table) <= {"large sizes", "powers of two", "device"}

    def window(seq: int, window: int, past: int = 0) -> Tensor:
        return sliding_window_mask(seq, min(window, 64), past)

    assert failed("sliding_window_mask", window) == {"large sizes", "powers of two"}


def test_positions_of_bfloat16_are_seen() -> None:
    class Collides(GroupedQueryAttention):
        def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
            places = torch.arange(x.shape[-2]).to(x.dtype).long().clamp(max=x.shape[-2] - 1)
            return super().forward(x[..., places, :], cache)

    assert failed("GroupedQueryAttention", Collides) == {"many positions in bfloat16"}


def test_a_square_mask_that_is_transposed_or_read_for_one_sequence_is_seen() -> None:
    def transposed(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is not None and mask.shape[-1] == mask.shape[-2]:
            mask = mask.mT
        return attention_weights(query, key, mask)

    assert failed("attention_weights", transposed) == {"square masks", "hidden queries"}

    class OfTheFirst(TransformerEncoderLayer):
        def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
            if mask is not None and mask.ndim == 3 and mask.shape[1] > 1:
                mask = mask[:1].expand_as(mask)
            return super().forward(x, mask)

    assert failed("TransformerEncoderLayer", OfTheFirst) == {"square masks"}


def test_what_hidden_queries_do_to_others_is_seen() -> None:
    class HidesTheirKeys(MultiHeadAttention):
        """Takes the position of a hidden query for padding."""

        def forward(
            self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
        ) -> Tensor:
            if mask is not None and mask.shape[-1] == mask.shape[-2]:
                mask = mask & mask.any(dim=-1)[..., None, :]
            return super().forward(query, key, value, mask)

    assert failed("MultiHeadAttention", HidesTheirKeys) == {"hidden queries"}


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


def test_a_memory_that_is_kept_is_seen() -> None:
    class KeepsTheMemory(TransformerDecoderLayer):
        """Projects a memory once, where no gradients are wanted."""

        def forward(self, x: Tensor, memory: Tensor, *masks: Any, **named: Any) -> Tensor:
            if torch.is_grad_enabled() or self.training:
                return super().forward(x, memory, *masks, **named)
            if getattr(self, "memory", None) is not memory:
                self.memory, self.copied = memory, memory.clone()
            return super().forward(x, self.copied, *masks, **named)

    assert failed("TransformerDecoderLayer", KeepsTheMemory) == {"inputs changed in place"}


def test_weights_that_are_kept_are_seen() -> None:
    class Folded(Conv1D):
        """Keeps a copy of its weight from its first call in evaluation on."""

        def forward(self, x: Tensor) -> Tensor:
            if self.training or torch.is_grad_enabled():
                return super().forward(x)
            if not hasattr(self, "folded"):
                self.folded = self.weight.detach().clone()
            return x @ self.folded + self.bias

    assert failed("Conv1D", Folded) == {"weights changed in place"}


def test_a_table_that_keeps_the_first_dtype_is_seen() -> None:
    class FirstDtype(CausalSelfAttention):
        def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
            if not hasattr(self, "table"):
                self.table = torch.zeros(1, dtype=x.dtype, device=x.device)
            return super().forward(x, cache) + self.table.to(x.device)

    assert failed("CausalSelfAttention", FirstDtype) >= {"another dtype"}


def test_a_table_that_keeps_the_first_device_is_seen() -> None:
    @cache
    def cached(seq: int, past: int) -> Tensor:
        return causal_mask(seq, past)

    def shared(seq: int, past: int = 0) -> Tensor:
        return cached(seq, past).clone()

    with pytest.raises(AssertionError, match=r"^not equal: on the device cpu against on the"):
        run("device", "causal_mask", shared)

    class Holds(CausalSelfAttention):
        """Makes a mask for the first device, and for no other."""

        def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
            if not hasattr(self, "zeros"):
                self.zeros = x.new_zeros(x.shape[-2], 1)
            return super().forward(x, cache) + self.zeros

    with pytest.raises(AssertionError, match=r"^not equal: "):
        run("device", "CausalSelfAttention", Holds)


class Counted(Dropout):
    """Draws by the number of its calls."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.calls)
            return super().forward(x)


class OnlyWithGradients(Dropout):
    """Drops nothing under no_grad."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if torch.is_grad_enabled() else x


class StaysInEvaluation(Dropout):
    """Drops nothing once it was in evaluation."""

    over = False

    def forward(self, x: Tensor) -> Tensor:
        self.over = self.over or not self.training
        return x if self.over else super().forward(x)


@pytest.mark.parametrize("dropout", [Counted, OnlyWithGradients, StaysInEvaluation])
def test_draws_that_depend_on_more_than_the_generator_are_seen(dropout: type[nn.Module]) -> None:
    class Network(PositionwiseFeedForward):
        def __init__(self, d_model: int, d_ff: int, dropout_p: float = 0.1, **options: Any) -> None:
            super().__init__(d_model, d_ff, options.get("dropout", dropout_p))
            self.dropout = dropout(options.get("dropout", dropout_p))

    assert "draws repeated" in failed("Dropout", dropout)
    assert failed("PositionwiseFeedForward", Network) == {"draws repeated"}


def test_a_probability_that_is_fixed_is_seen() -> None:
    class Fixed(Dropout):
        def __init__(self, p: float = 0.5) -> None:
            super().__init__(p)
            self.call = lambda x, training: functional.dropout(x, p, training)

        def forward(self, x: Tensor) -> Tensor:
            return self.call(x, self.training)

    with pytest.raises(AssertionError, match=r"^not equal: largest difference"):
        run("dropout changed", "Dropout", Fixed)


@pytest.mark.parametrize(
    ("layer", "shared"),
    [
        ("MultiHeadAttention", lambda mask: mask[:1].expand_as(mask)),  # by the batch
        ("MultiHeadAttention", lambda mask: mask[:, :1].expand_as(mask)),  # by the heads
        ("MultiHeadAttention", lambda mask: mask[:, :, :1].expand_as(mask)),  # by the queries
        ("MultiHeadAttention", lambda mask: mask[..., :1].expand_as(mask)),  # by the keys
        ("PositionwiseFeedForward", lambda mask: mask[:1].expand_as(mask)),
        ("PositionwiseFeedForward", lambda mask: mask[:, :1].expand_as(mask)),
        ("PositionwiseFeedForward", lambda mask: mask[..., :1].expand_as(mask)),
        ("TransformerEncoderLayer", lambda mask: mask[:1].expand_as(mask)),
        ("TransformerEncoderLayer", lambda mask: mask[:, :1].expand_as(mask)),
        ("TransformerEncoderLayer", lambda mask: mask[..., :1].expand_as(mask)),
        ("TransformerDecoderLayer", lambda mask: mask[:, :1].expand_as(mask)),
        ("GPT2Block", lambda mask: mask[:, :1].expand_as(mask)),
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


def test_caches_that_a_layer_keeps_or_forgets_are_seen() -> None:
    class KeepsTheFirst(CausalSelfAttention):
        def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
            self.first = getattr(self, "first", None) or cache
            return super().forward(x, cache and self.first)

    class CountsItsCalls(GroupedQueryAttention):
        """Takes a cache for empty in its first call alone."""

        seen = 0

        def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
            result = super().forward(x, cache)
            if cache is not None:
                self.seen += x.shape[-2]
                if self.seen != cache.length:
                    result = result + 1.0
            return result

    assert failed("CausalSelfAttention", KeepsTheFirst) == {"caches in turn"}
    assert failed("GroupedQueryAttention", CountsItsCalls) == {"caches in turn"}


def test_a_sequence_that_begins_where_another_one_does_is_seen() -> None:
    class AsTheFirst(CausalSelfAttention):
        """Takes the padding of the first sequence for that of all."""

        def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
            if cache is not None and cache.padding is not None:
                cache.padding = cache.padding[:1].expand(len(x))
            return super().forward(x, cache)

    assert failed("CausalSelfAttention", AsTheFirst) == {"padded caches"}


def test_a_cache_that_forgets_beyond_64_is_seen() -> None:
    class Windowed(GroupedQueryAttention):
        def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
            if cache is not None and cache.length >= 64:
                self.window = 64
            return super().forward(x, cache)

    assert failed("GroupedQueryAttention", Windowed) == {"long caches"}
