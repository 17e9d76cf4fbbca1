"""Right layers that lack an option, or keep, round or name something otherwise: none is condemned.

Beside each stands a wrong one in the same situation, which still is.
"""

import warnings
from collections.abc import Iterable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import transformer_layers
from layer_checks import Report, check
from layer_checks.diagnosis import diagnosis
from layer_checks.diagnosis.judging import UNKNOWN
from layer_checks.diagnosis.running import Result
from layer_checks.diagnosis.sandbox import OutOfTime


def failing(report: Report) -> set[str]:
    """The laws that count as failing."""
    return {each.name for each in report.law if each.word == "failed"}


def unasked(report: Report) -> set[str]:
    """The laws that could not be asked."""
    return {each.name for each in report.law if each.word == "unasked"}


class Grouped(nn.Module):
    """Takes no d_k, no positions and no window."""

    groups = 1

    def __init__(self, d_model: int, num_heads: int, num_kv_heads: int) -> None:
        super().__init__()
        self.inner = transformer_layers.GroupedQueryAttention(d_model, num_heads, num_kv_heads)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


class OfAnyWidth(nn.Module):
    """Rotates as many features as the input has."""

    def __init__(self, base: float = 10_000.0) -> None:
        super().__init__()
        self.base = base

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        rotary = transformer_layers.RotaryPositions(x.shape[-1], self.base)
        places = torch.arange(x.shape[-2]) if positions is None else positions
        return rotary(x, places)


class TestMissingOptions:
    def test_what_follows_from_the_others_is_left_out(self) -> None:
        report = check("GroupedQueryAttention", Grouped)
        assert report
        assert unasked(report) == {"positions", "window"}
        assert "values" in {each.name for each in report.law if each.held}
        assert {"it takes no d_k, so that d_k=4 cannot be asked for"} <= {
            each.text for each in report.contract
        }

    def test_what_the_input_tells_is_left_out(self) -> None:
        report = check("RotaryPositions", OfAnyWidth)
        assert report.passed == report.results

    def test_a_bound_of_smoothing(self) -> None:
        def smoothed(logits: Tensor, labels: Tensor, smoothing: float = 0.1) -> Tensor:
            if not 0 <= smoothing < 1:
                raise ValueError("the smoothing must be below 1")
            return functional.cross_entropy(logits, labels, label_smoothing=smoothing)

        report = check("smoothed_cross_entropy", smoothed)
        assert report
        assert "it takes no epsilon of 1" in {each.text for each in report.law}

        def halved(logits: Tensor, labels: Tensor, smoothing: float = 0.1) -> Tensor:
            return smoothed(logits, labels, smoothing / 2)

        assert "values" in failing(check("smoothed_cross_entropy", halved))

    def test_what_was_not_asked_is_no_mistake(self) -> None:
        class WithBias(nn.Module):
            def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
                super().__init__()
                self.weight = nn.Parameter(torch.ones(d_model))
                self.bias = nn.Parameter(torch.zeros(d_model))
                self.epsilon = epsilon

            def forward(self, x: Tensor) -> Tensor:
                return functional.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.epsilon)

        report = check("LayerNorm", WithBias)
        assert report
        assert report.behaves_like is None
        assert "unasked" in {each.word for each in report.contract}


class TestSpellings:
    @pytest.mark.parametrize("name", ["drop", "rate"])
    def test_a_function_of_dropout(self, name: str) -> None:
        scope: dict[str, object] = {"right": transformer_layers.dropout}
        exec(f"def dropped(x, {name}=0.5, training=True): return right(x, {name}, training)", scope)
        report = check("dropout", scope["dropped"])  # type: ignore[arg-type]  # it is a function
        assert report
        assert {each.kind for each in report.failed} <= {"names"}

    @pytest.mark.parametrize("keeps", [False, True])
    def test_attention_with_a_drop(self, keeps: bool) -> None:
        def attention(
            query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, drop: float = 0.0
        ) -> Tensor:
            p = 0.5 * drop if keeps else drop
            return transformer_layers.scaled_dot_product_attention(query, key, value, mask, p)

        report = check("scaled_dot_product_attention", attention)
        assert not unasked(report)
        assert failing(report) == ({"dropout"} if keeps else set())


class MovingAverages(nn.Module):
    """Buffers of other names, no number of batches, and no momentum=None."""

    correction = 1
    moving_mean: Tensor
    moving_var: Tensor

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(num_features))
        self.beta = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("moving_var", torch.ones(num_features))
        self.register_buffer("moving_mean", torch.zeros(num_features))
        self.eps, self.momentum = eps, momentum

    def forward(self, x: Tensor) -> Tensor:
        axes = [axis for axis in range(x.ndim) if axis != 1]
        mean, variance = self.moving_mean, self.moving_var
        if self.training:
            mean, variance = x.mean(axes), x.var(axes, correction=0)
            with torch.no_grad():
                self.moving_mean.lerp_(mean, self.momentum)
                self.moving_var.lerp_(x.var(axes, correction=self.correction), self.momentum)
        shape = [1, -1, *[1] * (x.ndim - 2)]
        scale = self.gamma * (variance + self.eps).rsqrt()
        return (x - mean.view(shape)) * scale.view(shape) + self.beta.view(shape)


class BiasedAverages(MovingAverages):
    correction = 0


class TestBuffers:
    def test_other_names(self) -> None:
        report = check("BatchNorm1d", MovingAverages)
        assert report
        held = {each.name for each in report.passed}
        assert {"running mean", "running variance", "initial values"} <= held
        assert unasked(report) == {"momentum=None", "averages go on"}

    def test_a_biased_variance_under_another_name(self) -> None:
        assert "running variance" in failing(check("BatchNorm1d", BiasedAverages))


class SingleAngles(nn.Module):
    """Angles in float32, as published."""

    def __init__(self, dim: int, base: float = 10_000.0) -> None:
        super().__init__()
        self.powers = 1.0 / base ** (torch.arange(0, dim, 2).float() / dim)

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        places = torch.arange(x.shape[-2]) if positions is None else positions
        angles = places[..., None].float() * self.powers
        first, second = x.chunk(2, dim=-1)
        cos, sin = angles.cos(), angles.sin()
        return torch.cat((first * cos - second * sin, first * sin + second * cos), -1).to(x.dtype)


class TestPrecision:
    def test_angles_of_float32_are_lawful_and_not_exact(self) -> None:
        report = check("RotaryPositions", SingleAngles)
        assert report
        assert "exact positions" in {each.name for each in report.contract if not each.held}

    def test_a_sum_in_its_own_dtype_breaks_the_contract(self) -> None:
        def halved(parameters: Iterable[Tensor]) -> Tensor:
            return sum((0.5 * each.square().sum() for each in parameters), torch.tensor(0.0))

        def in_its_dtype(parameters: Iterable[Tensor]) -> Tensor:
            return torch.stack([0.5 * each.square().sum() for each in parameters]).sum()

        report = check("l2_penalty", in_its_dtype)
        assert report
        assert [each.name for each in report.contract if not each.held] == ["bfloat16"]
        assert failing(check("l2_penalty", lambda parameters: 2 * halved(parameters)))


class Keeping(nn.Module):
    """Keeps its weights of attention, with their graph."""

    def __init__(self, d_model: int, num_heads: int, drop: float = 0.0) -> None:
        super().__init__()
        self.inner = transformer_layers.MultiHeadAttention(d_model, num_heads, drop)
        self.last: Tensor | None = None

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        self.last = self.inner(query, key, value, mask)
        return self.last.clone()


class Accumulating(Keeping):
    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        before = self.last
        after = super().forward(query, key, value, mask)
        same = before is not None and before.shape == after.shape
        return after + before if same and before is not None else after


class TestStored:
    def test_a_tensor_of_the_last_call_is_no_law(self) -> None:
        report = check("MultiHeadAttention", Keeping)
        assert report
        broken = {each.name for each in report.contract if each.word == "failed"}
        assert broken == {"copies", "no graph kept"}

    def test_a_result_of_the_last_call_that_counts_is_caught(self) -> None:
        assert "called again" in failing(check("MultiHeadAttention", Accumulating))


class Packed(nn.Module):
    """Both matrices in one, the other one first; its forward is compiled."""

    once = False

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.up_gate = nn.Linear(d_model, 2 * d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)
        self.run = torch.compile(self.compute, backend="eager")
        self.first: Tensor | None = None

    def compute(self, x: Tensor, weight: Tensor) -> Tensor:
        up, gate = functional.linear(x, weight).chunk(2, dim=-1)
        return self.down(functional.silu(gate) * up)

    def forward(self, x: Tensor) -> Tensor:
        weight: Tensor = self.up_gate.weight
        if self.once:
            self.first = weight.detach().clone() if self.first is None else self.first
            weight = weight + (self.first - weight).detach()
        return self.run(x, weight)


class PackedOnce(Packed):
    """Computes with the weights of its first call."""

    once = True


class Scripted(nn.Module):
    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.up_gate = nn.Linear(d_model, 2 * d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        up, gate = self.up_gate(x).chunk(2, dim=-1)
        return self.down(functional.silu(gate) * up)


class TestCompiledAndPacked:
    def test_new_weights_are_matched_as_the_first_ones(self) -> None:
        report = check("GatedFeedForward", Packed)
        assert report
        assert not failing(report)

    def test_a_module_whose_copies_compute_with_its_own_weights(self) -> None:
        report = check("GatedFeedForward", Packed(8, 12))
        assert report
        assert not failing(report)

    def test_weights_that_outlive_their_change_are_caught(self) -> None:
        assert "weights changed in place" in failing(check("GatedFeedForward", PackedOnce))

    def test_what_is_scripted_can_be_matched(self) -> None:
        def scripted(d_model: int, d_ff: int) -> nn.Module:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch's, that scripts are deprecated
                return torch.jit.script(Scripted(d_model, d_ff))

        assert not failing(check("GatedFeedForward", scripted))


class OfWidthOne(nn.Module):
    """A convolution of width 1 in the place of Conv1D."""

    def __init__(self, nx: int, nf: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(nx, nf, 1)
        nn.init.normal_(self.conv.weight, std=0.02)
        nn.init.zeros_(self.conv.get_parameter("bias"))

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x.transpose(1, 2)).transpose(1, 2)


class TestContainers:
    def test_a_part_that_is_not_called_is_named(self) -> None:
        class Uncalled(Scripted):
            def forward(self, x: Tensor) -> Tensor:
                up, gate = functional.linear(x, self.up_gate.weight).chunk(2, dim=-1)
                return self.down(functional.silu(gate) * up)

        report = check("GatedFeedForward", Uncalled)
        assert "no call of up_gate, whose hooks wait" in {each.text for each in report.contract}

    def test_a_convolution_of_width_one(self) -> None:
        report = check("Conv1D", OfWidthOne)
        assert report
        assert not [
            each.name for each in report.failed if each.word == "failed" and each.kind != "names"
        ]
        assert "it takes inputs of three axes alone" in {each.text for each in report.contract}


def test_a_report_that_ended_early_counts_no_law_that_was_not_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def half_done(*args: object) -> None:
        found = args[-1]
        assert isinstance(found, diagnosis.Findings)
        found.results = (Result("values", "A law.", False, UNKNOWN, asked=False),)
        raise OutOfTime

    monkeypatch.setattr("layer_checks.diagnosis.report.diagnose", half_done)
    report = check("LayerNorm", nn.LayerNorm)
    assert "could not be judged: it is not known which weight is which" in report.headline


class WithAPast(nn.Module):
    """Keys and values of earlier positions are handed in and out, as a pair."""

    aligned = True

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.num_heads, self.p = num_heads, dropout
        self.c_attn, self.c_proj = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(
        self,
        x: Tensor,
        layer_past: tuple[Tensor, Tensor] | None = None,
        use_cache: bool = False,
    ) -> Tensor | tuple[Tensor, tuple[Tensor, Tensor]]:
        query, key, value = (
            each.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for each in self.c_attn(x).chunk(3, dim=-1)
        )
        if layer_past is not None:
            key = torch.cat([layer_past[0], key], dim=2)
            value = torch.cat([layer_past[1], value], dim=2)
        past = key.shape[2] - query.shape[2] if self.aligned else 0
        mask = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool).tril(past)
        p = self.p if self.training else 0.0
        found = functional.scaled_dot_product_attention(query, key, value, mask, p)
        y = functional.dropout(self.c_proj(found.transpose(1, 2).flatten(2)), p)
        return (y, (key, value)) if use_cache else y


class WithAPastAtTheTopLeft(WithAPast):
    aligned = False


def test_an_attention_is_asked_for_a_past_in_its_own_form() -> None:
    report = check("CausalSelfAttention", WithAPast)
    assert report["cache"].word == "held", report.all
    report = check("CausalSelfAttention", WithAPastAtTheTopLeft)
    assert report["cache"].word == "failed"
    assert not failing(report)


class RoutedInSingle(nn.Module):
    """Chooses by a softmax in float32, where numbers that differ by a millionth are one."""

    def __init__(self, d_model: int, d_ff: int, num_experts: int, top_k: int) -> None:
        super().__init__()
        self.inner = transformer_layers.MixtureOfExperts(d_model, d_ff, num_experts, top_k)

    def forward(self, x: Tensor) -> Tensor:
        scores, top_k = self.inner.router.scores, self.inner.router.top_k
        shares, chosen = scores(x).float().softmax(-1).topk(top_k)
        weights = (shares / shares.sum(-1, keepdim=True)).to(x.dtype)
        outputs = torch.stack([each(x) for each in self.inner.experts], dim=-2)
        read = outputs.gather(-2, chosen[..., None].expand(*chosen.shape, x.shape[-1]))
        return (weights[..., None] * read).sum(dim=-2)


def test_a_router_in_float32_is_not_asked_what_float32_cannot_tell() -> None:
    report = check("MixtureOfExperts", RoutedInSingle)
    assert not failing(report), report.all
