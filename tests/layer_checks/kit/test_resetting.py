"""What `reset_parameters()` leaves."""

import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from layer_checks import check
from layer_checks.evidence.evidence import Evidence
from layer_checks.kit.resetting import starts_again
from transformer_layers import BatchNorm1d, LayerNorm


def reset(build: Callable[[], nn.Module]) -> Evidence:
    """Holds it against fresh layers; it is called with four rows of five."""
    return starts_again(build, lambda layer: layer.train()(torch.randn(4, 5)))


def numbers_said(build: Callable[[], nn.Module], text: str) -> list[float]:
    """The numbers of the error, which has this text with a number in place of each `#`."""
    with pytest.raises(AssertionError) as caught:
        reset(build)
    pattern = re.escape(f"not equal: after reset_parameters(), {text}").replace(r"\#", r"(\S+)")
    found = re.fullmatch(pattern, str(caught.value))
    assert found, caught.value
    return [float(number) for number in found.groups()]


def test_a_layer_without_the_method_is_not_asked() -> None:
    assert reset(nn.Identity).text == "holds: it has no reset_parameters()"
    attention = nn.MultiheadAttention(6, 2)
    assert starts_again(lambda: attention, lambda layer: None).text.endswith("reset_parameters()")


def test_a_method_that_wants_arguments_is_not_called() -> None:
    class Wants(nn.Module):
        def reset_parameters(self, std: float) -> None:
            raise AssertionError("called")

    class Takes(nn.Linear):
        def reset_parameters(self, std: float | None = None) -> None:
            super().reset_parameters()

    assert reset(Wants).text == "holds: it has no reset_parameters()"
    assert reset(lambda: Takes(5, 3)).text == "holds: 2 parameters and buffers start again"


@pytest.mark.parametrize(
    "build",
    [
        lambda: nn.LayerNorm(5),
        lambda: nn.BatchNorm1d(5),
        lambda: nn.Linear(5, 1),
        lambda: nn.LSTM(5, 4),
    ],
)
def test_a_layer_of_torch_starts_again(build: Callable[[], nn.Module]) -> None:
    starts_again(build, lambda layer: layer(torch.randn(4, 5)))


def test_what_is_drawn_may_not_be_fixed_and_what_is_fixed_may_not_be_drawn() -> None:
    class Zeros(nn.Linear):
        def reset_parameters(self) -> None:
            if hasattr(self, "made"):
                nn.init.zeros_(self.weight)
            else:
                super().reset_parameters()
            self.made = True

    deviations = numbers_said(
        lambda: Zeros(5, 6), "weight deviates by # against #, bias deviates by # against #"
    )
    assert deviations[::2] == [0, 0]
    assert deviations[1] == pytest.approx(1 / 15**0.5, abs=0.06)  # ten standard errors
    assert deviations[3] == pytest.approx(1 / 15**0.5, abs=0.12)


def test_running_averages_and_counts_are_reset_and_tables_need_not_be() -> None:
    class WithTable(BatchNorm1d):
        def __init__(self, num_features: int) -> None:
            super().__init__(num_features)
            self.register_buffer("table", torch.arange(3.0))

    class KeepsCount(WithTable):
        def reset_parameters(self) -> None:
            count = self.num_batches_tracked.clone()
            super().reset_parameters()
            self.num_batches_tracked.copy_(count)

    assert reset(lambda: WithTable(5)).text == "holds: 5 parameters and buffers start again"
    with pytest.raises(AssertionError, match=r"\(\), num_batches_tracked not all 0$"):
        reset(lambda: KeepsCount(5))


class Parts(nn.Module):
    """A gain of its own, and a part that is left to reset itself."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.arange(1.0, 6.0))
        self.part = nn.Linear(5, 5)
        nn.init.zeros_(self.part.bias)

    def reset_parameters(self) -> None:
        self.gain.data.copy_(torch.arange(1.0, 6.0))

    def forward(self, x: Tensor) -> Tensor:
        return self.part(self.gain * x)


def test_a_part_may_be_left_to_reset_itself_and_what_is_its_own_is_never_left() -> None:
    class Leaves(Parts):
        def reset_parameters(self) -> None:
            self.part.reset_parameters()
            nn.init.zeros_(self.part.bias)

    class Drops(Parts):
        def reset_parameters(self) -> None:
            self.gain = nn.Parameter(torch.ones(4))

    assert reset(Parts).text == "holds: 1 parameters and buffers start again"
    with pytest.raises(AssertionError, match=r"\(\), gain not what it was at first$"):
        reset(Leaves)
    with pytest.raises(AssertionError, match=r"\(\), gain is gone, or of another shape$"):
        reset(Drops)


def test_the_diagnosis_names_it() -> None:
    class KeepsAverages(BatchNorm1d):
        def reset_parameters(self) -> None:
            nn.init.ones_(self.weight)
            nn.init.zeros_(self.bias)
            if not hasattr(self, "made"):
                super().reset_parameters()
            self.made = True

    class StartsFromZeros(LayerNorm):
        made = False

        def reset_parameters(self) -> None:
            super().reset_parameters()
            if self.made:
                nn.init.zeros_(self.weight)
            self.made = True

    report = check("BatchNorm1d", KeepsAverages)
    assert report
    assert report.behaves_like is not None
    assert report.behaves_like.name == "reset leaves the buffers"
    report = check("LayerNorm", StartsFromZeros)
    assert [result.name for result in report.failed] == ["reset"]
    assert report.behaves_like is None  # it starts from zeros, and the known one from other draws
    assert [version.name for version in report.fails_like] == ["reset draws another start"]
