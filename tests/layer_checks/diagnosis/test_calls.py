"""Layers that are called in a form of their own, by an adapter that is handed to `check`."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from layer_checks import check
from layer_checks.diagnosis.calls import called_by


def rotated(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    def turned(x: Tensor) -> Tensor:
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-second, first], dim=-1) * sin

    return turned(q), turned(k)


def stretched(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, stretch: Tensor) -> Tensor:
    """No form has a call like this, so that the reader's own lines must make it."""
    return rotated(stretch * q, stretch * k, cos, sin)[0]


def by_tables(layer: Any, x: Tensor, positions: Tensor | None = None, *, base: float) -> Tensor:
    d_k = x.shape[-1]
    positions = torch.arange(x.shape[-2]) if positions is None else positions
    angles = positions[..., None] * base ** (-torch.arange(0, d_k, 2).double() / d_k)
    angles = torch.cat([angles, angles], dim=-1)
    return layer(x.double(), x.double(), angles.cos(), angles.sin())[0].to(x)


class AddedNorm(nn.Module):
    """Norms its second argument, and adds the first."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, residual: Tensor, x: Tensor) -> Tensor:
        return residual + nn.functional.layer_norm(
            x, x.shape[-1:], self.weight, self.bias, self.eps
        )


class Uncentered(AddedNorm):
    """The same without the mean."""

    def forward(self, residual: Tensor, x: Tensor) -> Tensor:
        size = (x.var(dim=-1, keepdim=True, correction=0) + self.eps).sqrt()
        return residual + x / size * self.weight + self.bias


def to_zero(layer: Any, x: Tensor) -> Tensor:
    return layer(torch.zeros_like(x), x)


def built(d_model: int, eps: float = 1e-5) -> nn.Module:
    return AddedNorm(d_model, eps)


@pytest.mark.parametrize("candidate", [AddedNorm, built, AddedNorm(6)])
def test_a_layer_of_another_call_holds_by_its_adapter(candidate):
    report = check("LayerNorm", candidate, adapter=to_zero)
    assert report
    assert not [each for each in report.results if each.word == "failed" and each.kind != "names"]


def test_its_mistake_is_named():
    report = check("LayerNorm", Uncentered, adapter=to_zero)
    assert not report
    assert report.behaves_like.name == "mean not subtracted"
    assert "adapter=adapter" in report.all


def test_a_function_in_the_place_of_a_layer_gets_what_its_adapter_names():
    assert check("RotaryPositions", rotated, adapter=by_tables)

    def other_base(layer, x, positions=None):
        return by_tables(layer, x, positions, base=100.0)

    report = check("RotaryPositions", rotated, adapter=other_base)
    assert not report
    assert "the adapter takes no base" in repr(report)


@pytest.mark.parametrize(
    ("layer", "candidate", "lines"),
    [
        ("LayerNorm", AddedNorm(6), ["def adapter(layer, x):", "(residual, x)"]),
        (
            "RotaryPositions",
            stretched,
            [
                "def adapter(layer, x, positions=None, *, d_k, base=10000.0,",
                "(q, k, cos, sin, stretch)",
                'check("RotaryPositions", stretched, adapter=adapter)',
            ],
        ),
    ],
)
def test_an_adapter_to_fill_in_is_shown_where_the_calls_do_not_meet(layer, candidate, lines):
    report = check(layer, candidate)
    assert report.headline == f"{layer}: the law could not be judged"
    text = repr(report)
    assert [line for line in lines if line not in text] == []
    assert text.count("missing") == 1
    code = compile(report.adapter_lines, "<report>", "exec")
    found: dict[str, Any] = {}
    exec(
        code,
        {
            "check": lambda *args, **kwargs: found.update(kwargs),
            "stretched": stretched,
            "AddedNorm": AddedNorm,
            "candidate": candidate,
        },
        {},
    )
    assert callable(found["adapter"])


def test_an_adapter_sees_the_layers_attributes_and_copies_compute_with_their_own_weights():
    layer = called_by(AddedNorm(3), lambda own, x: own(own.bias, x))
    again = copy.deepcopy(layer)
    nn.init.ones_(again.bias)
    x = torch.randn(2, 3)
    torch.testing.assert_close(again(x), layer(x) + 2)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="adapter must be a function, got 3"):
        check("gelu", nn.GELU, adapter=3)
