"""`check`: the words of a report, and that no layer of a reader's makes it raise."""

import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import transformer_layers
from layer_checks import check, wrong_version
from layer_checks.running import Result
from transformer_layers import LayerNorm

pytestmark = pytest.mark.usefixtures("as_users_run_it")


class WithGammaAndBeta(nn.Module):
    """A reader's: other names, and the variance that divides by n - 1."""

    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        dtype, x = x.dtype, x.double()
        x_hat = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + self.eps).sqrt()
        y = self.gamma * x_hat
        return (y if self.beta is None else y + self.beta).to(dtype)


def failed(report: object) -> list[str]:
    return [result.name for result in report.failed]


def unfolded(report: object) -> str:
    """The text of a report with each result on one line."""
    return re.sub(r"\n {8}", " ", repr(report))


def test_the_report_of_the_right_layer() -> None:
    report = check("LayerNorm", LayerNorm)
    assert repr(report) == (
        "LayerNorm: 19 of 19 checks hold\n"
        "held    parameters: weight (5,), bias (5,)\n"
        "held    values: equal, tolerance 1e-12\n"
        "held    gradients: equal, tolerance 1e-11\n"
        "held    large mean: equal, tolerance 0.001\n"
        "held    each position by itself: equal, tolerance 0\n"
        "held    constant row: equal, tolerance 1e-12\n"
        "held    half precision: equal, tolerance 0.004\n"
        "held    bfloat16: equal, tolerance 0.0001 + 0.00395 * |expected|\n"
        "held    initial values: 2 parameters start as they should\n"
        "held    default eps: equal, tolerance 1e-11\n"
        "held    input unchanged: the inputs are unchanged\n"
        "held    called again: equal, tolerance 1e-06\n"
        "held    sizes of one: equal, tolerance 1e-11\n"
        "held    empty batch: (0, 4, 5)\n"
        "held    layout in memory: equal, tolerance 1e-06\n"
        "held    sizes of values: equal, tolerance 1e-07\n"
        "held    half precisions: equal, tolerance 0.1\n"
        "held    no graph kept: no graph is kept\n"
        "held    copies: equal, tolerance 0"
    )
    assert report
    assert (len(report.passed), report.failed, report.behaves_like) == (19, (), None)


def test_the_report_of_a_wrong_version() -> None:
    version = wrong_version("LayerNorm", "variance not biased")
    report = check("LayerNorm", version.layer)
    lines = unfolded(report).splitlines()
    assert lines[0] == "LayerNorm: 11 of 19 checks hold"
    assert re.fullmatch(r"failed  values: largest difference 0\.\d\d, tolerance 1e-12", lines[2])
    assert re.fullmatch(
        r"failed  gradients: gradient of (input 0|parameter weight): largest difference "
        r"\d\.?\d*, tolerance 1e-11",
        lines[3],
    )
    assert lines[-1] == (
        "behaves like: variance not biased - divide the sum of squares by n, not by n - 1 "
        "(in torch: correction=0)."
    )
    assert not report
    assert report.behaves_like is version
    assert report.failed[0] == Result(
        "values",
        "At width 5, with eps = 0.1 and random weights, the values in float64 are torch's.",
        False,
        lines[2].removeprefix("failed  values: "),
    )


def test_parameters_are_matched_by_order_where_no_name_agrees() -> None:
    report = check("LayerNorm", WithGammaAndBeta)
    assert report.behaves_like is wrong_version("LayerNorm", "variance not biased")
    assert repr(report.failed[0]) == (
        "failed  parameters: no weight, no bias, unknown gamma, unknown beta"
    )


def test_a_mistake_is_named_next_to_another_of_form() -> None:
    # The names are wrong too, so that the failed checks differ from the known version's.
    class Renamed(WithGammaAndBeta):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x).float() if x.dtype == torch.half else super().forward(x)

    report = check("LayerNorm", Renamed)
    assert "half precision" in failed(report)
    assert report.behaves_like.name == "variance not biased"


def test_a_default_is_no_mistake_of_rounding() -> None:
    class AnotherDefault(LayerNorm):
        def __init__(self, d_model: int, eps: float = 1e-3, bias: bool = True) -> None:
            super().__init__(d_model, eps, bias)

    report = check("LayerNorm", AnotherDefault)
    assert failed(report) == ["default eps"]
    assert report.behaves_like is wrong_version("LayerNorm", "another default eps")


def test_two_mistakes_at_once_are_named() -> None:
    biased = wrong_version("LayerNorm", "variance not biased")

    class Two(biased.layer):
        def forward(self, x: Tensor) -> Tensor:
            self.last = super().forward(x)
            return self.last

    report = check("LayerNorm", Two)
    assert report.behaves_like is biased
    assert [version.name for version in report.fails_like] == ["result kept"]
    assert "\nfails the same checks as: result kept - keep no result" in repr(report)


def test_a_mistake_that_shows_in_some_checks_is_told_by_them() -> None:
    class Kept(LayerNorm):
        def forward(self, x: Tensor) -> Tensor:
            self.last = super().forward(x)
            return self.last.squeeze()

    report = check("LayerNorm", Kept)
    assert report.behaves_like is None
    assert [version.name for version in report.fails_like] == [
        "axes of one squeezed",
        "result kept",
    ]


def test_an_error_without_a_message_is_like_nothing() -> None:
    class Asserts(LayerNorm):
        def forward(self, x: Tensor) -> Tensor:
            raise AssertionError

    report = check("LayerNorm", Asserts)
    assert (report.behaves_like, report.fails_like) == (None, ())


def test_float32_is_no_other_mistake() -> None:
    report = check("LayerNorm", OtherDtype)
    assert report.behaves_like is wrong_version("LayerNorm", "always float32")


def test_an_unknown_mistake_is_like_nothing() -> None:
    class Doubled(LayerNorm):
        def forward(self, x: Tensor) -> Tensor:
            return 2 * super().forward(x)

    report = check("LayerNorm", Doubled)
    assert "values" in failed(report)
    assert report.behaves_like is None
    assert "behaves like" not in repr(report)


@pytest.mark.parametrize(
    ("layer", "check_of_names"),
    [
        ("LayerNorm", "parameters"),
        ("RMSNorm", "parameters"),
        ("Conv1D", "parameters"),
        ("MultiHeadAttention", "parameters"),
        ("CausalSelfAttention", "state"),
        ("PositionwiseFeedForward", "parameters"),
        ("FeedForward", "parameters"),
        ("TransformerEncoderLayer", "parameters"),
        ("PreNormTransformerEncoderLayer", "parameters"),
    ],
)
def test_other_parameter_names_are_no_other_mistake(layer: str, check_of_names: str) -> None:
    class Renamed(nn.Module):
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__()
            self.inner = getattr(transformer_layers, layer)(*args, **kwargs)

        def forward(self, *args: object, **kwargs: object) -> Tensor:
            return self.inner(*args, **kwargs)

    report = check(layer, Renamed)
    assert failed(report) == [check_of_names]
    assert report.behaves_like is None


class NoEps(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()


class OtherShape(LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)[..., :1]


class OtherDtype(LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).float()


class ScalarWeight(LayerNorm):
    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__(d_model, eps, bias)
        self.weight = nn.Parameter(torch.ones(1))


class NoForward(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()


class ReturnsNothing(LayerNorm):
    def forward(self, x: Tensor) -> None:
        pass


class Pair(LayerNorm):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return super().forward(x), x


class Interrupted(LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError("line one\nline two")


@pytest.mark.parametrize(
    ("candidate", "line"),
    [
        (
            NoEps,
            "failed  LayerNorm(d_model, eps=1e-5, bias=True): TypeError: NoEps.__init__() got an "
            "unexpected keyword argument 'eps'\n"
            "not run 19 checks, which need this first",
        ),
        (lambda *args, **kwargs: 3, "bias=True): not a torch.nn.Module but int"),
        (7, "TypeError: 'int' object is not callable"),
        (OtherShape, "failed  values: shape (3, 2, 1) against (3, 2, 5)"),
        (OtherDtype, "failed  values: dtype torch.float32 against torch.float64"),
        (ScalarWeight, "failed  values: shape of weight: (1,) against (5,)"),
        (ScalarWeight, "failed  parameters: weight (1,) against (5,)"),
        (NoForward, "failed  values: NotImplementedError: Module [NoForward] is missing the requ"),
        (ReturnsNothing, "failed  gradients: the output of ours is not a tensor but NoneType"),
        (Pair, "failed  values: "),
        (Interrupted, "failed  values: RuntimeError: line one\n"),
    ],
)
def test_a_layer_that_does_not_fit_gets_a_line(candidate: Callable, line: str) -> None:
    report = check("LayerNorm", candidate)
    assert not report
    assert line in unfolded(report) + "\n"


def test_a_function_with_other_arguments_gets_a_line() -> None:
    report = check("dropout", lambda x, p: x)
    assert unfolded(report).startswith(
        "dropout: 0 of 19 checks hold\nfailed  dropout(x, p=0.5, training=True): TypeError: "
    )


def test_a_report_fits_a_column_of_a_page() -> None:
    report = check("LayerNorm", wrong_version("LayerNorm", "variance not biased").layer)
    assert (
        max(map(len, repr(report).splitlines())) <= 76 < max(map(len, unfolded(report).split("\n")))
    )


def test_the_default_dtype_changes_nothing() -> None:
    candidate = wrong_version("LayerNorm", "E[x²] - E[x]²").layer
    expected = repr(check("LayerNorm", candidate))
    torch.set_default_dtype(torch.float64)
    try:
        assert repr(check("LayerNorm", candidate)) == expected
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_checks_leave_the_random_state_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    check("LayerNorm", WithGammaAndBeta)
    assert torch.equal(torch.rand(2), expected)


def test_a_report_can_be_repeated() -> None:
    for layer, name in (("LayerNorm", "E[x²] - E[x]²"), ("dropout", "p is the share kept")):
        candidate = wrong_version(layer, name).layer
        first = repr(check(layer, candidate))
        torch.rand(1)
        assert repr(check(layer, candidate)) == first
        assert repr(check(layer, candidate, seed=1)) != first


def test_the_inputs_do_not_depend_on_what_a_layer_draws_at_first() -> None:
    no_gain = wrong_version("LayerNorm", "no gain").layer

    class Draws(no_gain):
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, **kwargs)
            torch.rand(7)

    assert repr(check("LayerNorm", Draws)) == repr(check("LayerNorm", no_gain))
