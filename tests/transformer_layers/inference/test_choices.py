"""The choice of kernels: the fastest of what was timed, by clocks that are made up."""

import pytest
import torch
from torch import nn

from tests.transformer_layers.comparisons import relative_error, unit_roundoff
from transformer_layers.inference import choices, products
from transformer_layers.inference.choices import RowKernel
from transformer_layers.inference.fastest import ROUNDS, fastest
from transformer_layers.inference.products import Float32Product


class Clock:
    """Goes on by what each way takes, and by its own slowness in rounds."""

    def __init__(self, rounds):
        self.now = 0.0
        self.calls = []
        self.rounds = {name: iter([0.0, *times]) for name, times in rounds.items()}

    def ways(self):
        return {name: lambda name=name: self._take(name) for name in self.rounds}

    def _take(self, name):
        self.calls.append(name)
        self.now += next(self.rounds[name])

    def __call__(self):
        return self.now


@pytest.mark.parametrize("names", ["abc", "bca"])
def test_the_fastest_wins_wherever_it_stands(names):
    seconds = {"a": 3.0, "b": 1.0, "c": 2.0}
    clock = Clock({name: ROUNDS * [seconds[name]] for name in names})
    assert fastest(clock.ways(), clock) == "b"


def test_the_first_call_is_not_timed():
    clock = Clock({"a": ROUNDS * [2.0], "b": ROUNDS * [3.0]})
    clock.rounds["a"] = iter([100.0, *ROUNDS * [2.0]])
    assert fastest(clock.ways(), clock) == "a"


@pytest.mark.parametrize(("second", "winner"), [(0.96, "a"), (0.94, "b"), (1.0, "a")])
def test_one_that_hardly_wins_does_not(second, winner):
    clock = Clock({"a": ROUNDS * [1.0], "b": ROUNDS * [second]})
    assert fastest(clock.ways(), clock) == winner


@pytest.fixture
def forgotten():
    for choice in (choices.row_kernel, choices.onednn_is_faster):
        choice.cache_clear()
    yield
    for choice in (choices.row_kernel, choices.onednn_is_faster):
        choice.cache_clear()


@pytest.fixture
def small(monkeypatch, forgotten):
    monkeypatch.setattr(choices, "SIDES", (5, 7))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("threads", [1, 3])
def test_every_kernel_is_timed_once_and_the_choice_remembered(threads, monkeypatch):
    wide = True
    asked = []

    def last(ways):
        for way in ways.values():
            way()
        asked.append(list(ways))
        return asked[-1][-1]

    monkeypatch.setattr(choices, "fastest", last)
    kernels = {RowKernel(by_rows, sliced) for by_rows in (True, False) for sliced in (True, False)}
    chosen = [choices.row_kernel(wide, threads) for _ in range(2)]
    assert len(asked) == 1
    assert set(asked[0]) == kernels
    assert chosen == 2 * [asked[0][-1]]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("winner", [True, False])
def test_onednn_is_taken_where_it_wins(winner, monkeypatch):
    seen = []

    def pick(ways):
        seen.extend(way() for way in ways.values())
        return winner

    monkeypatch.setattr(choices, "fastest", pick)
    assert choices.onednn_is_faster(2) == winner
    torch.testing.assert_close(*seen)


@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize("sliced", [True, False])
@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize(("sizes", "bias"), [((5, 11), True), ((11, 5), False)])
def test_every_choice_gives_the_same_values(by_rows, sliced, onednn, bias, sizes, monkeypatch):
    asked = []
    monkeypatch.setattr(
        products, "row_kernel", lambda *key: asked.append(key) or RowKernel(by_rows, sliced)
    )
    monkeypatch.setattr(products, "onednn_is_faster", lambda _: onednn)
    linear = nn.Linear(*sizes, bias=bias)
    product = Float32Product(linear.weight.T, linear.bias)
    assert asked == [(sizes[0] <= sizes[1], torch.get_num_threads())]
    assert product.weight.stride(0 if by_rows else 1) == 1
    assert (product.packed is None) != onednn
    assert (product.slices is None) != sliced
    exact = linear.double()
    for shape in [(1,), (3,), (1, 1, 1), (2, 1), (0,), ()]:
        x = torch.randn(*shape, sizes[0])
        with torch.no_grad():
            y, expected = product(x), exact(x.double())
        assert y.shape == expected.shape
        assert relative_error(y, expected) <= 16 * unit_roundoff(torch.float32)
