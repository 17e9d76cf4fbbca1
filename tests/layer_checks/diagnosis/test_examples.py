"""Lines to paste, and which part of a composed layer differs first."""

import pytest
import torch
from torch import Tensor, nn

from layer_checks import check, wrong_version
from layer_checks.diagnosis.running import apart
from transformer_layers import GatedFeedForward, LayerNorm, TransformerEncoderLayer


class Unbiased(nn.Module):
    """A reader's, with other names: n - 1 in place of n."""

    def __init__(self, dim: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(dim))
        self.beta = nn.Parameter(torch.zeros(dim)) if bias else None
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        y = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + self.eps).sqrt()
        y = y * self.gamma
        return y if self.beta is None else y + self.beta


def ran(lines: str, **names: object) -> tuple[object, str]:
    """What the last of the lines gives, and what stands behind it."""
    assert lines.count("\n") == 2
    names = {"torch": torch, **names}
    *first, last = lines.splitlines()
    exec("\n".join(first), names)
    code, _, told = last.partition("  # ")
    return eval(code, names), told


def test_the_first_failure_has_lines_that_show_both_values() -> None:
    report = check("LayerNorm", Unbiased)
    lines = report.failed[[each.kind for each in report.failed].index("law")].example
    assert "Unbiased(5, 0.1)" in lines
    assert "torch.randn(3, 2, 5)" in lines
    value, told = ran(lines, Unbiased=Unbiased)
    written, expected = told.split(", not ")
    assert f"{value.item():.{len(written)}f}".startswith(written[:-1])
    assert written != expected
    paste = repr(report).split("to paste:\n")[1].splitlines()[:3]
    assert "\n".join(line.removeprefix("    ") for line in paste) == lines


def test_numbers_have_as_many_digits_as_tell_them_apart() -> None:
    assert apart(1.5, 0.25) == ("1.5", "0.25")
    assert apart(1.00000123, 1.00000456) == ("1.0000012", "1.0000046")
    assert apart(2.0, 2.0) == ("2.0", "2.0")


@pytest.mark.parametrize(
    ("value", "expected", "written"),
    [
        (-0.52731, -1.665e-16, ("-0.5273", "0")),
        (float("nan"), 0.048872410232779884, ("nan", "0.04887")),
        (7e29, 1.0, ("7e+29", "1")),
        (3e-13, 1.0, ("3e-13", "1")),
    ],
)
def test_what_rounding_left_beside_a_number_is_zero(value, expected, written) -> None:
    assert apart(value, expected) == written


class TestWhatItBehavesLike:
    def test_another_error_is_no_such_value(self) -> None:
        """At a large mean, as E[x\u00b2] - E[x]\u00b2 fails, where this raises an error."""

        class Raises(LayerNorm):
            def forward(self, x: Tensor) -> Tensor:
                if float(x.detach().abs().max()) > 900 and x.dtype == torch.float32:
                    raise RuntimeError("too large")
                return super().forward(x)

        report = check("LayerNorm", Raises)
        assert [each.name for each in report.law if not each.held] == ["large mean"]
        assert report.behaves_like is None
        assert report.fails_like == ()

    def test_what_raises_is_not_likened_to_what_gives_another_value(self) -> None:
        class LeftWide(GatedFeedForward):
            def forward(self, x: Tensor) -> Tensor:
                gate, up = self.gate_proj(x), self.up_proj(x)
                if x.dtype == torch.bfloat16:
                    gate = gate.float()
                return self.down_proj(self.activation(gate) * up)

        report = check("GatedFeedForward", LeftWide)
        assert all("RuntimeError" in each.text for each in report.failed)
        assert report.failed
        assert report.fails_like == ()


class TestParts:
    def test_a_sum_that_is_left_out(self) -> None:
        class NoSecondSum(TransformerEncoderLayer):
            def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
                x = self.norm1(x + self.self_attention(x, x, x, mask))
                return self.norm2(self.feed_forward(x))

        report = check("TransformerEncoderLayer", NoSecondSum)
        assert report.part == (
            "norm2 is the first part that is called otherwise: its x has other values; look "
            "between feed_forward and it"
        )
        assert "look at the parts: norm2" in repr(report)

    def test_a_part_that_is_wrong_itself(self) -> None:
        class Doubled(nn.Module):
            def __init__(self, inner: nn.Module) -> None:
                super().__init__()
                self.inner = inner

            def forward(self, x: Tensor) -> Tensor:
                return 2 * self.inner(x)

        class Composed(TransformerEncoderLayer):
            def __init__(self, *args: float, **kwargs: float) -> None:
                super().__init__(*args, **kwargs)
                self.feed_forward.linear2 = Doubled(self.feed_forward.linear2)

        assert check("TransformerEncoderLayer", Composed).part == (
            "feed_forward is the first part whose output differs; its input is the same"
        )

    @pytest.mark.parametrize(
        ("layer", "mistake", "part"),
        [
            (
                "GPT2",
                "not causal",
                "h.0.attn is the first part whose output differs; its input is the same; inside "
                "it, c_proj is the first part that is called otherwise: its x has other values; "
                "look between c_attn and it; "
                "CausalSelfAttention behaves like: not causal - mask the scores: a position must "
                "not see what follows it. A mask that is only held hides nothing",
            ),
            (
                "Llama",
                "second norm missing",
                "model.layers.0 is the first part whose output differs; its input is the same; "
                "inside it, post_attention_layernorm is not called",
            ),
        ],
    )
    def test_parts_inside_the_blocks_of_a_model(self, layer: str, mistake: str, part: str) -> None:
        assert check(layer, wrong_version(layer, mistake).layer).part == part

    def test_a_layer_without_parts(self) -> None:
        assert check("LayerNorm", Unbiased).part == ""


def test_a_notebook_shows_the_same_order() -> None:
    page = check("LayerNorm", Unbiased)._repr_html_()
    places = [
        page.index(text)
        for text in (
            "LayerNorm: the law fails",
            "behaves like: variance not biased",
            "look first at values",
            "torch.randn(3, 2, 5)",
            ">failed</td>",
            "checks hold</summary>",
        )
    ]
    assert places == sorted(places)
