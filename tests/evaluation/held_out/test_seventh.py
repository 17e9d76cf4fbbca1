"""Tests of the seventh collection of held-out wrong versions: each by what can be seen of it.

A row has what is seen in the situation that a version is wrong in, and what is seen in plain use,
where it is right; None for one that is wrong everywhere.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import transformer_layers
from evaluation.held_out import seventh  # noqa: F401, it declares them
from evaluation.held_out.definitions import VERSIONS
from tests.evaluation.held_out.demonstrations import assert_recorded
from transformer_layers import (
    DecoderCache,
    GPT2Config,
    KeyValueCache,
    RMSNorm,
    RotaryPositions,
    YaRNScaling,
    causal_mask,
    padding_mask,
)

SEVENTH = {name: each for name, each in VERSIONS.items() if each.collection == "seventh"}
BF16, F64 = torch.bfloat16, torch.float64


class Maker:
    """Makes layers of a class with the weights of the right one."""

    def __init__(self, candidate: Any, right: Any) -> None:
        self.layer, self.right = candidate, right

    def __call__(self, *args: Any, **options: Any) -> Any:
        right, layer = self.right(*args, **options), self.layer(*args, **options)
        torch.manual_seed(1)
        with torch.no_grad():
            for parameter in right.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        layer.load_state_dict(right.state_dict(), strict=False)
        torch.manual_seed(2)
        return layer.eval()


def rand(*shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return scale * torch.randn(shape, generator=generator).to(dtype)


def gradient(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    (function(x) * rand(*function(x).shape, dtype=x.dtype)).sum().backward()
    return x.grad


def without_gradients(function: Callable[[], Any]) -> Any:
    with torch.no_grad():
        return function()


def zeroed(layer: nn.Module, *parts: str) -> Any:
    with torch.no_grad():
        for part in parts:
            for parameter in layer.get_submodule(part).parameters():
                parameter.zero_()
    return layer


def mixes_zeros(x: Tensor, axes: tuple[int, ...]) -> bool:
    """Whether zeros and others stand together along these axes."""
    dropped = (x == 0).float().mean(dim=axes)
    return bool(((dropped > 0) & (dropped < 1)).any())


def line(dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.linspace(-3, 3, 61, dtype=dtype)


def smoothed(f: Any, padding: int | None = None, scale: float = 1.0, **options: Any) -> Tensor:
    labels = torch.tensor([[1, 2, 5, 0], [3, 0, 0, 0]])
    options = {"epsilon": 0.2, "padding_token": padding, **options}
    return f(rand(2, 4, 6, scale=scale), labels, **options)


def weights_gradient(f: Any) -> Tensor:
    mask = torch.tensor([[False, False], [True, False]])
    return gradient(lambda key: f(rand(2, 4), key, mask), rand(2, 4))


def far_below_zero(f: Any) -> Tensor:
    query, mask = torch.full((1, 4), 20.0), torch.arange(80)[None] >= 64
    return f(query, rand(80, 4) - 20.0, rand(80, 3), mask)


def written_mask(f: Any) -> Tensor:
    f(61)[5] = False
    return f(61)


def resumed(make: Maker) -> Tensor:
    layer, other = make(3, momentum=None).train(), make(3, momentum=None).train()
    layer(rand(4, 3))
    other.load_state_dict(layer.state_dict())
    other(rand(4, 3) + 5)
    return other.running_mean


def after(layer: Any, *batches: Tensor) -> Any:
    for batch in batches:
        layer(batch)
    return layer


def served(make: Maker) -> Tensor:
    layer = make(4, 3)
    layer(rand(4))
    layer.weight.mul_(2)
    return layer(rand(4))


def equal_heads(make: Maker) -> bool:
    layer = make(8, 2, dropout=0.5, bias=False).train()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.eye(8))
    x = rand(6, 4).repeat(1, 2)
    first, second = layer(x, x, x).chunk(2, dim=-1)
    return bool(torch.allclose(first, second))


def in_two_steps(layer: Any, heads: int) -> Tensor:
    cache = KeyValueCache(2, heads, 8, 4, padding=torch.tensor([0, 2]))
    layer(rand(2, 3, 8), cache)
    return layer(rand(2, 1, 8), cache)


def pair(layer: Any, **options: Any) -> Tensor:
    return layer(rand(2, 3, 8), rand(2, 4, 8) + 0.5, **options)


def decoder_cache(batch: int = 2) -> DecoderCache:
    return DecoderCache(batch, 2, 8, 4)


def second_memory(layer: Any) -> Tensor:
    pair(layer)
    return layer(rand(2, 3, 8), 2 - rand(2, 4, 8))


def beams(layer: Any) -> Tensor:
    return layer(rand(4, 1, 8), rand(2, 4, 8), cache=decoder_cache(4))


def share_of_zeros(make: Maker) -> bool:
    layer = zeroed(make(*SIZES, dropout=0.5), "self_attention", "cross_attention").train()
    x = rand(20, 20, 8)
    return bool((layer(x, x) - x == 0).float().mean() > 0.6)


def attention_dropped(make: Maker) -> bool:
    layer = zeroed(make(*SIZES, dropout=0.5), "feed_forward").train()
    x = rand(20, 5, 8)
    return mixes_zeros(layer(x) - x, (1, 2))


def gpt2(make: Maker, dropout: float = 0.0) -> Any:
    return make(GPT2Config(11, 16, 8, 2, 2, dropout))


IDS = torch.tensor([[3, 1, 4, 1]])


def reset(make: Maker) -> bool:
    model = zeroed(gpt2(make), "wte", "wpe")
    model.reset_parameters()
    return bool(model.wte.weight.any() and model.wpe.weight.any())


def trained(make: Maker, dropout: float = 0.0, cache: KeyValueCache | None = None) -> Any:
    layer, x = make(8, 2, dropout=dropout).train(), rand(2, 3, 8).requires_grad_()
    layer(x, cache).square().sum().backward()
    return x.grad, 0 if cache is None else cache.length


def sharp(f: Any, dtype: torch.dtype) -> Tensor:
    return f(rand(5, 4, dtype=dtype, scale=5), rand(6, 4, dtype=dtype, scale=5)).float()


def low(layer: Any, dtype: torch.dtype = BF16) -> Tensor:
    return layer(rand(50, 8, dtype=dtype)).float()


PADDED = {"memory_mask": padding_mask(torch.tensor([1, 3]), 4)}
SIZES = (8, 2, 12)
ROTARY = {"positions": RotaryPositions(4)}
NORMED = {"head_norm": RMSNorm, **ROTARY}
PLACES = torch.tensor([[0, 1, 2], [4, 5, 6]])
KEYS = torch.tensor([[1.0], [2.0]])
ALLOWED = causal_mask(3)

# name: (what is seen in the situation, what is seen in plain use)
SHOWN: dict[str, tuple[Callable[[Maker], Any], Callable[[Maker], Any] | None]] = {
    "gelu by polynomial erf": (lambda m: m.layer(line(F64)), lambda m: m.layer(line())),
    "gelu of a constant gate": (lambda m: gradient(m.layer, line()), lambda m: m.layer(line())),
    "gelu tanh of bounded input": (
        lambda m: m.layer(torch.tensor([20.0])),
        lambda m: m.layer(line()),
    ),
    "gelu tanh of short constant": (lambda m: m.layer(line(F64)), None),
    "dropout by product": (
        lambda m: m.layer(torch.full((1000,), torch.inf)).isnan().any(),
        lambda m: m.layer(line()),
    ),
    "dropout by random bytes": (
        lambda m: (m.layer(torch.ones(100_000), 0.001) == 0).any(),
        lambda m: m.layer(torch.ones(1000), 0.5).unique(),
    ),
    "dropout only with gradients": (
        lambda m: without_gradients(lambda: m(0.5).train()(torch.ones(1000)).unique()),
        lambda m: m(0.5).train()(torch.ones(1000)).unique(),
    ),
    "dropout with a pattern by shape": (
        lambda m: (lambda layer, x: layer(x).equal(layer(x)))(m(0.5).train(), torch.ones(1000)),
        lambda m: m(0.5).train()(torch.ones(1000)).unique(),
    ),
    "l1 penalty summed in half": (
        lambda m: m.layer([torch.full((1000,), 100.0, dtype=torch.float16)]),
        lambda m: m.layer([line(), rand(2, 3)]),
    ),
    "l1 penalty of smoothed roots": (
        lambda m: m.layer([torch.zeros(1000)]),
        lambda m: m.layer([line()]),
    ),
    "l2 penalty of a spent generator": (
        lambda m: m.layer(iter([])),
        lambda m: m.layer([line(), rand(2, 3)]),
    ),
    "l2 penalty averaged by tensor": (lambda m: m.layer([line()]), None),
    "soft threshold with straight gradient": (
        lambda m: gradient(lambda x: m.layer(x, 1.0), line()),
        lambda m: m.layer(line(), 1.0),
    ),
    "soft threshold that grows": (
        lambda m: m.layer(line(), -1.0),
        lambda m: m.layer(line(), 1.0),
    ),
    "smoothed with uniform part of padding": (
        lambda m: smoothed(m.layer, 0),
        lambda m: smoothed(m.layer),
    ),
    "smoothed mean over all places": (
        lambda m: smoothed(m.layer, 0),
        lambda m: smoothed(m.layer),
    ),
    "smoothed divergence": (
        lambda m: smoothed(m.layer),
        lambda m: smoothed(m.layer, epsilon=0.0),
    ),
    "smoothed mean of sequence means": (
        lambda m: smoothed(m.layer, 0),
        lambda m: smoothed(m.layer),
    ),
    "smoothed others and the right one": (
        lambda m: smoothed(m.layer, reading="others"),
        lambda m: smoothed(m.layer),
    ),
    "smoothed log of floored probabilities": (
        lambda m: smoothed(m.layer, scale=30),
        lambda m: smoothed(m.layer),
    ),
    "causal mask from a store": (lambda m: written_mask(m.layer), lambda m: m.layer(3, past=2)),
    "causal mask of the last rows": (
        lambda m: m.layer(0, past=3),
        lambda m: m.layer(3, past=2),
    ),
    "window mask by suffix rows": (lambda m: m.layer(2, 2, past=3), lambda m: m.layer(4, 2)),
    "window mask without a step window": (
        lambda m: m.layer(1, 2, past=3),
        lambda m: m.layer(4, 2),
    ),
    "padding mask never empty": (
        lambda m: m.layer(torch.tensor([0, 2]), 3),
        lambda m: m.layer(torch.tensor([1, 3]), 3),
    ),
    "padding mask from marked ends": (
        lambda m: m.layer(torch.tensor([1, 3]), 3),
        lambda m: m.layer(torch.tensor([0, 2]), 3),
    ),
    "weights below one maximum": (
        lambda m: m.layer(torch.tensor([[100.0], [-100.0]]), KEYS),
        lambda m: m.layer(rand(3, 4), rand(3, 4), ALLOWED),
    ),
    "weights cleared of nan": (
        lambda m: weights_gradient(m.layer),
        lambda m: m.layer(rand(3, 4), rand(3, 4), ALLOWED),
    ),
    "weights of rounded scores": (
        lambda m: sharp(m.layer, BF16),
        lambda m: sharp(m.layer, torch.float32),
    ),
    "attention by blocks from zero": (
        lambda m: far_below_zero(m.layer),
        lambda m: m.layer(rand(3, 4), rand(3, 4), rand(3, 5), ALLOWED),
    ),
    "attention of whole tiles": (
        lambda m: m.layer(rand(200, 4), rand(5, 4), rand(5, 3)),
        lambda m: m.layer(rand(3, 4), rand(3, 4), rand(3, 5), ALLOWED),
    ),
    "attention in room of the query": (
        lambda m: m.layer(rand(3, 4), rand(2, 5, 4), rand(2, 5, 4)),
        lambda m: m.layer(rand(3, 4), rand(3, 4), rand(3, 5), ALLOWED),
    ),
    "batch norm counting for itself": (
        resumed,
        lambda m: after(m(3, momentum=None).train(), rand(4, 3), rand(5, 3)).running_mean,
    ),
    "batch norm moved by evaluation": (
        lambda m: after(m(3), rand(4, 3)).running_mean,
        lambda m: m(3)(rand(4, 3)),
    ),
    "batch norm counting rows": (
        lambda m: after(m(3).train(), rand(4, 3, 5)).running_var,
        lambda m: after(m(3).train(), rand(4, 3)).running_var,
    ),
    "layer norm centered once": (
        lambda m: m(768)(torch.full((1, 768), 100_000.1)),
        lambda m: m(8)(rand(5, 8)),
    ),
    "layer norm left wide": (
        lambda m: str(m(8)(rand(5, 8, dtype=BF16)).dtype),
        lambda m: m(8)(rand(5, 8)),
    ),
    "layer norm through single": (
        lambda m: m(8, dtype=F64)(rand(5, 8, dtype=F64)),
        lambda m: m(8)(rand(5, 8)),
    ),
    "rms norm by a constant root": (
        lambda m: gradient(m(8), rand(5, 8)),
        lambda m: m(8)(rand(5, 8)),
    ),
    "rms norm by a rounded root": (
        lambda m: low(m(8, dtype=BF16)),
        lambda m: m(8)(rand(5, 8)),
    ),
    "llama norm by torchs kernel": (
        lambda m: low(m(8, dtype=BF16)),
        lambda m: m(8)(rand(5, 8)),
    ),
    "gemma norm adding one in half": (
        lambda m: low(m(8, dtype=BF16)),
        lambda m: m(8)(rand(5, 8)),
    ),
    "gemma norm that starts as twice": (
        lambda m: m.layer(8)(rand(5, 8)),
        lambda m: m(8)(rand(5, 8)),
    ),
    "sinusoids of single angles": (lambda m: m.layer(20_000, 64)[-1], lambda m: m.layer(10, 7)),
    "sinusoids up to a limit": (
        lambda m: str(m.layer(5001, 4).shape),
        lambda m: m.layer(10, 7),
    ),
    "sinusoids in two halves": (lambda m: m.layer(10, 6), None),
    "rotary of rounded angles": (
        lambda m: m(8)(rand(600, 8, dtype=BF16)).float(),
        lambda m: m(8)(rand(600, 8)),
    ),
    "rotary by a table of the call": (
        lambda m: m(8)(rand(1, 8), torch.tensor([5])),
        lambda m: m(8)(rand(5, 8)),
    ),
    "rotary by frequencies of the head": (
        lambda m: m(8, d_rotary=4)(rand(5, 8)),
        lambda m: m(8)(rand(5, 8)),
    ),
    "rotary without the tables factor": (
        lambda m: m(8, scaling=YaRNScaling(4.0, 64))(rand(5, 8)),
        lambda m: m(8)(rand(5, 8)),
    ),
    "rotary of neighbours into halves": (
        lambda m: m(8, layout="neighbours")(rand(5, 8)),
        lambda m: m(8)(rand(5, 8)),
    ),
    "rotary by the first sequence": (
        lambda m: m(8)(rand(2, 3, 8), PLACES),
        lambda m: m(8)(rand(2, 3, 8), PLACES[0]),
    ),
    "rotary by whole numbers": (
        lambda m: m(8)(rand(2, 8), torch.tensor([0.5, 1.5])),
        lambda m: m(8)(rand(2, 8), torch.tensor([0, 7])),
    ),
    "positionwise with an unseen activation": (
        lambda m: len(list(m.layer(4, 6, activation=nn.PReLU()).parameters())),
        lambda m: m(4, 6)(rand(5, 4)),
    ),
    "positionwise within the range of half": (
        lambda m: m(4, 6)(rand(5, 4, scale=1e6)),
        lambda m: m(4, 6)(rand(5, 4)),
    ),
    "feed forward with the exact gradient": (
        lambda m: gradient(m(4, dtype=F64), rand(5, 4, dtype=F64, scale=20)),
        lambda m: m(4)(rand(5, 4)),
    ),
    "feed forward dropping positions": (
        lambda m: mixes_zeros(m(8, dropout=0.5).train()(rand(50, 8)), (1,)),
        lambda m: m(4)(rand(5, 4)),
    ),
    "gated product written over the gate": (
        lambda m: gradient(m(4, 6, torch.relu), rand(5, 4)),
        lambda m: m(4, 6)(rand(5, 4)),
    ),
    "gated width of full tiles": (
        lambda m: str(m.layer(4, 6).gate_proj.weight.shape),
        lambda m: m(4, 8)(rand(5, 4)),
    ),
    "gated activation of the other": (lambda m: m(4, 6)(rand(5, 4)), None),
    "packed rows by turns": (lambda m: m(4, 6)(rand(5, 4)), None),
    "packed capped at seven": (
        lambda m: m(4, 6)(rand(5, 4, scale=50)),
        lambda m: m(4, 6)(rand(5, 4)),
    ),
    "conv1 d by a flat view": (
        lambda m: m(4, 3)(rand(2, 4, 5).transpose(1, 2)),
        lambda m: m(4, 3)(rand(2, 5, 4)),
    ),
    "conv1 d serving its first weight": (
        lambda m: without_gradients(lambda: served(m)),
        lambda m: without_gradients(lambda: m(4, 3)(rand(4))),
    ),
    "heads of one tensor": (
        lambda m: (lambda x: m(8, 2)(x, x, x + 1))(rand(3, 8)),
        lambda m: (lambda x: m(8, 2)(x, x, x))(rand(3, 8)),
    ),
    "heads of inferred length": (
        lambda m: (lambda x: m(8, 2)(x, x, x))(rand(0, 3, 8)),
        lambda m: (lambda x: m(8, 2)(x, x, x))(rand(2, 3, 8)),
    ),
    "heads scaled in the weight": (
        lambda m: (lambda x: m(8, 2)(x, x, x))(rand(3, 8)),
        lambda m: (lambda x: m(8, 2, bias=False)(x, x, x))(rand(3, 8)),
    ),
    "heads that drop together": (
        equal_heads,
        lambda m: (lambda x: m(8, 2, 0.5)(x, x, x))(rand(3, 8)),
    ),
    "causal steps that see padding": (
        lambda m: in_two_steps(m(8, 2), 2),
        lambda m: m(8, 2)(rand(2, 3, 8)),
    ),
    "causal over merged axes": (
        lambda m: m(8, 2)(rand(2, 3, 4, 8)),
        lambda m: m(8, 2)(rand(2, 4, 8)),
    ),
    "causal within a thousand": (
        lambda m: m(4, 1)(rand(1100, 4))[-1],
        lambda m: m(4, 1)(rand(10, 4)),
    ),
    "causal with its mask in the state": (
        lambda m: str(sorted(m.layer(8, 2).state_dict())),
        lambda m: m(8, 2)(rand(2, 3, 8)),
    ),
    "grouped heads by turns": (
        lambda m: m(8, 4, 2)(rand(3, 8)),
        lambda m: m(8, 4, 1)(rand(3, 8)),
    ),
    "grouped norms behind positions": (
        lambda m: m(8, 2, 1, **NORMED)(rand(3, 8)),
        lambda m: m(8, 2, 1, **ROTARY)(rand(3, 8)),
    ),
    "grouped scaled as if shared": (
        lambda m: m(8, 2, 1, d_k=16)(rand(3, 8)),
        lambda m: m(8, 2, 1)(rand(3, 8)),
    ),
    "grouped faithful to its positions": (
        lambda m: m(8, 2, 1, **ROTARY)(rand(3, 8), positions=RotaryPositions(4, base=2.0)),
        lambda m: m(8, 2, 1, **ROTARY)(rand(3, 8)),
    ),
    "grouped window over padding": (
        lambda m: in_two_steps(m(8, 2, 1, window=4), 1),
        lambda m: m(8, 2, 1, window=2)(rand(4, 8)),
    ),
    "encoder deaf to its activation": (
        lambda m: m(*SIZES, activation=nn.functional.gelu)(rand(2, 3, 8)),
        lambda m: m(*SIZES)(rand(2, 3, 8)),
    ),
    "encoder with a rate of its own": (
        lambda m: m(*SIZES, dropout=0.0).train()(rand(2, 3, 8)),
        lambda m: m(*SIZES)(rand(2, 3, 8)),
    ),
    "encoder with the epsilon of bert": (
        lambda m: zeroed(m(*SIZES), "self_attention")(rand(2, 3, 8, scale=1e-3)),
        lambda m: m(*SIZES)(rand(2, 3, 8)),
    ),
    "pre norm encoder dropping paths": (attention_dropped, lambda m: m(*SIZES)(rand(2, 3, 8))),
    "pre norm encoder side by side": (lambda m: m(*SIZES)(rand(2, 3, 8)), None),
    "decoder unmasked by its cache": (
        lambda m: pair(m(*SIZES), cache=decoder_cache(), **PADDED),
        lambda m: pair(m(*SIZES), **PADDED),
    ),
    "decoder faithful to a memory": (
        lambda m: without_gradients(lambda: second_memory(m(*SIZES))),
        lambda m: without_gradients(lambda: pair(m(*SIZES))),
    ),
    "decoder causal unasked": (
        lambda m: pair(m(*SIZES)),
        lambda m: pair(m(*SIZES), mask=ALLOWED),
    ),
    "decoder of shuffled beams": (
        lambda m: beams(m(*SIZES)),
        lambda m: pair(m(*SIZES), cache=decoder_cache()),
    ),
    "pre norm decoder norming its memory": (lambda m: pair(m(*SIZES)), None),
    "pre norm decoder dropping twice": (share_of_zeros, lambda m: pair(m(*SIZES))),
    "pre norm decoder keeping the raw": (
        lambda m: pair(m(*SIZES), cache=decoder_cache()),
        lambda m: pair(m(*SIZES)),
    ),
    "gpt2 answering for the last": (
        lambda m: (lambda model: model(IDS, model.new_caches(1, 8)))(gpt2(m)),
        lambda m: gpt2(m)(IDS),
    ),
    "gpt2 dropping tokens only": (
        lambda m: gpt2(m, dropout=1.0).train()(IDS),
        lambda m: gpt2(m)(IDS),
    ),
    "gpt2 forgiving strange tokens": (
        lambda m: gpt2(m)(torch.tensor([[11]])),
        lambda m: gpt2(m)(IDS),
    ),
    "gpt2 with lasting embeddings": (reset, lambda m: gpt2(m)(IDS)),
    "gpt2 block of other draws": (lambda m: trained(m, dropout=0.5), trained),
    "gpt2 block filling its cache twice": (
        lambda m: trained(m, cache=KeyValueCache(2, 2, 8, 4)),
        lambda m: trained(m, dropout=0.5),
    ),
}
REFUSED = {  # what the right layer refuses
    "l2 penalty of a spent generator",
    "soft threshold that grows",
    "gpt2 forgiving strange tokens",
}


def seen(look: Callable[[Maker], Any], candidate: Any, right: Any) -> Any:
    torch.manual_seed(0)
    try:
        return look(Maker(candidate, right))
    except (RuntimeError, ValueError, IndexError) as error:
        return type(error)


def alike(one: Any, other: Any, tolerance: float | None = None) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return all(alike(*each, tolerance) for each in zip(one, other, strict=True))
    if not (isinstance(one, Tensor) and isinstance(other, Tensor)):
        return bool(one == other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not one.is_floating_point():
        return one.equal(other)
    if tolerance is None:
        tolerance = 1e-9 if one.dtype == F64 else 2e-5
    return torch.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)


class TestTheVersions:
    @pytest.mark.parametrize("name", SEVENTH)
    def test_each_is_wrong_in_its_situation_and_the_right_layer_is_not(self, name: str) -> None:
        look, right = SHOWN[name][0], getattr(transformer_layers, SEVENTH[name].layer)
        expected = seen(look, right, right)
        assert (expected is ValueError) == (name in REFUSED)
        assert isinstance(expected, type) == (name in REFUSED)
        assert not isinstance(expected, Tensor) or bool(expected.isfinite().all())
        assert alike(seen(look, right, right), expected)
        assert not alike(seen(look, SEVENTH[name].candidate, right), expected)

    @pytest.mark.parametrize("name", [name for name, looks in SHOWN.items() if looks[1]])
    def test_plain_use_does_not_tell_it_from_the_right_layer(self, name: str) -> None:
        look, right = SHOWN[name][1], getattr(transformer_layers, SEVENTH[name].layer)
        expected = seen(look, right, right)
        assert not isinstance(expected, type)
        assert alike(seen(look, SEVENTH[name].candidate, right), expected, 1e-4)

    def test_each_is_shown_and_told(self) -> None:
        assert set(SHOWN) == set(SEVENTH)
        for version in SEVENTH.values():
            assert version.what.endswith(".")
            assert re.compile(version.words)
            assert re.fullmatch(
                r"review practice|[\w.-]+/[\w.-]+, (issue|pull) \d+", version.source
            )

    def test_at_most_a_third_is_wrong_everywhere(self) -> None:
        everywhere = [name for name, (_, plain) in SHOWN.items() if plain is None]
        assert 3 * len(everywhere) <= len(SHOWN)

    def test_there_is_one_of_each_layer(self) -> None:
        assert len({version.layer for version in SEVENTH.values()}) == 34

    def test_the_record_is_of_these(self) -> None:
        assert_recorded("seventh", 95)
