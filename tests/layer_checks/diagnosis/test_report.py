"""`check`: the words of a report, and that no layer of a reader's makes it raise."""

import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import transformer_layers
from layer_checks import Report, check, wrong_version
from layer_checks.diagnosis.running import Result
from transformer_layers import LayerNorm


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
    number = len(report.law)
    assert report.headline == f"LayerNorm: the law holds, {number} of {number}"
    assert repr(report) == (
        f"{report.headline}\n{len(report.results)} checks hold: print(report.all) shows them"
    )
    lines = re.sub(r"\n {8}", " ", report.all).splitlines()
    assert lines[0] == report.headline
    assert "held    values: equal, tolerance 1e-12" in lines
    assert "held    bfloat16: equal, tolerance 0.0001 + 0.00395 * |expected|" in lines
    assert all(line.startswith("held    ") for line in lines[1:] if not line.startswith("the "))
    assert report
    assert (report.passed, report.failed) == (report.results, ())
    assert report.behaves_like is None


def result(name: str, kind: str, held: bool, asked: bool = True) -> Result:
    return Result(name, f"The law of {name}.", held, "text", kind, "at index (1,)", asked)


class TestKinds:
    def test_they_stand_apart_and_the_law_decides(self) -> None:
        report = Report(
            "X",
            (
                result("names", "contract", held=False),
                result("values", "law", held=True),
                result("deviation", "start", held=False),
                result("gradients", "law", held=True),
            ),
        )
        assert report
        assert [each.name for each in report.law] == ["values", "gradients"]
        assert [each.name for each in report.contract] == ["names"]
        assert [each.name for each in report.start] == ["deviation"]
        assert [each.name for each in report.failed] == ["names", "deviation"]
        assert repr(report) == (
            "X: the law holds, 2 of 2; the contract fails, 1 of 1; the\n"
            "        initialization fails, 1 of 1\n"
            "look first at names: The law of names. It differs at index (1,).\n"
            "the contract\n"
            "failed  names: text\n"
            "the initialization\n"
            "failed  deviation: text\n"
            "2 checks hold: print(report.all) shows them"
        )
        assert "the law\nheld    values: text\nheld    gradients: text\n" in report.all

    def test_what_is_only_another_name_breaks_nothing(self) -> None:
        report = Report(
            "X", (result("values", "law", held=True), result("parameters", "names", held=False))
        )
        assert report.headline == "X: the law holds, 1 of 1; other names in 1"
        assert [each.name for each in report.names] == ["parameters"]
        assert "names only\nfailed  parameters: text" in repr(report)

    def test_where_no_weight_is_known_no_law_is_judged(self) -> None:
        held = result("values", "law", held=True)
        report = Report("X", (held,), judged=False, names_line='check("X", Mine, names={})')
        assert not report
        assert unfolded(report) == (
            "X: the law could not be judged: it is not known which weight is which\n"
            "look first at the names: say which weight is which, and check it again\n"
            'to paste:\n    check("X", Mine, names={})\n'
            "1 check holds: print(report.all) shows it"
        )

    def test_one_broken_law_is_enough(self) -> None:
        report = Report("X", (result("values", "law", True), result("sums", "law", False)))
        assert not report
        assert report.headline == "X: the law fails, 1 of 2"

    def test_what_is_not_asked_does_not_hold(self) -> None:
        unasked = result("dropout", "law", held=False, asked=False)
        assert Report("X", (result("values", "law", held=True), unasked))
        other = Report("X", (result("sums", "law", held=True), unasked))
        assert not other
        assert other.headline == ("X: the law is not settled, 1 of 2 hold, 1 could not be asked")

    def test_a_law_that_was_not_judged_is_not_true(self) -> None:
        assert not Report("X", ())
        report = Report("X", (result("X(d)", "law", held=False),), not_run=3)
        assert report.headline == "X: the law could not be judged"
        assert not report


def test_the_report_of_a_wrong_version() -> None:
    version = wrong_version("LayerNorm", "variance not biased")
    report = check("LayerNorm", version.layer)
    lines = unfolded(report).splitlines()
    assert lines[0].startswith("LayerNorm: the law fails, ")
    values, gradients = (
        next(line for line in lines if line.startswith(f"failed  {name}: "))
        for name in ("values", "gradients")
    )
    assert re.fullmatch(r"failed  values: largest difference 0\.\d\d, tolerance 1e-12", values)
    assert re.fullmatch(
        r"failed  gradients: gradient of (input 0|parameter weight): largest difference "
        r"\d\.?\d*, tolerance 1e-11",
        gradients,
    )
    assert re.fullmatch(
        r"look first at values: At width 5, .* It differs at index \(\d, \d, \d\): \S+ against "
        r"\S+, shape \(3, 2, 5\)\.",
        lines[2],
    )
    assert lines[1] == (
        "behaves like: variance not biased - divide the sum of squares by n, not by n - 1 "
        "(in torch: correction=0)."
    )
    assert not report
    assert report.behaves_like is version
    assert report.failed[0] == Result(
        "values",
        "At width 5, with eps = 0.1 and random weights, the values in float64 are torch's.",
        False,
        values.removeprefix("failed  values: "),
    )


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
        ("CausalSelfAttention", "state"),
        ("PreNormTransformerDecoderLayer", "parameters"),
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


class NeedsMore(nn.Module):
    def __init__(self, d_model: int, groups: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()


class OtherShape(LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)[..., :1]


class ScalarWeight(LayerNorm):
    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__(d_model, eps, bias)
        self.weight = nn.Parameter(torch.ones(1))


class NoForward(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()


class Interrupted(LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError("line one\nline two")


@pytest.mark.parametrize(
    ("candidate", "line"),
    [
        (
            NoEps,
            "unasked large mean: it takes no eps, so that eps=1e-05 cannot be asked for\n",
        ),
        (
            NeedsMore,
            "failed  LayerNorm(d_model, eps=1e-5, bias=True): TypeError: NeedsMore.__init__() "
            "missing 1 required positional argument: 'groups'\n"
            "not run ",
        ),
        (lambda *args, **kwargs: 3, "bias=True): not a torch.nn.Module but int"),
        (7, "TypeError: 'int' object is not callable"),
        (OtherShape, "failed  values: shape (3, 2, 1) against (3, 2, 5)"),
        (ScalarWeight, "failed  parameters: weight (1,) against (5,)"),
        (NoForward, ": NotImplementedError: Module [NoForward] is missing the requ"),
        (Interrupted, ": RuntimeError: line one\n"),
    ],
)
def test_a_layer_that_does_not_fit_gets_a_line(candidate: Callable, line: str) -> None:
    report = check("LayerNorm", candidate)
    assert not report
    assert line in unfolded(report) + "\n"


def test_what_says_the_same_is_one_line_and_each_is_found_by_its_name() -> None:
    report = check("LayerNorm", Interrupted)
    assert unfolded(report).count("RuntimeError: line one") == 4  # to paste, and of each kind
    assert report["values"].text == report["gradients"].text == "RuntimeError: line one"
    with pytest.raises(KeyError, match="no check 'value'; there are "):
        report["value"]


def test_what_cannot_be_asked_is_no_law_that_holds() -> None:
    report = check("dropout", lambda x, p: x)
    assert not report
    assert re.search(r"unasked kept share, .*: its call takes no training", unfolded(report))
    assert "could not be asked" in report.headline


def test_a_report_fits_a_column_of_a_page() -> None:
    report = check("LayerNorm", wrong_version("LayerNorm", "variance not biased").layer)
    assert (
        max(map(len, repr(report).splitlines())) <= 76 < max(map(len, unfolded(report).split("\n")))
    )


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

    assert repr(check("LayerNorm", Draws)) == repr(check("LayerNorm", no_gain)).replace(
        "NoGain", "Draws"
    )
