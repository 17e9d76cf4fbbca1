"""Evidence over many inputs."""

import sys

import pytest
import torch
from hypothesis import strategies

from layer_checks import (
    counted,
    different,
    equivalent,
    every_half,
    holds,
    over_all,
    over_draws,
    over_search,
    over_seeds,
)


def test_draws_differ_and_can_be_repeated():
    def drawn() -> list[float]:
        seen: list[float] = []

        def check():
            seen.append(torch.rand(()).item())
            return holds(True, "so")

        over_draws(check, draws=5)
        return seen

    first = drawn()
    assert len(set(first)) == 5
    assert drawn() == first


def test_the_weakest_draw_is_shown():
    errors = iter([1e-8, 3e-7, 2e-8])
    found = over_draws(lambda: equivalent(torch.zeros(1), next(errors)), draws=3)
    assert found.error == pytest.approx(3e-7)
    assert (found.strength, found.tried) == ("draws", 3)
    assert found.text == "equal: largest difference 3e-07, tolerance 1e-06, over 3 draws"
    assert found.pattern == "equal: largest difference ..., tolerance 1e-06, over 3 draws"
    gaps = iter([5.0, 2.0, 7.0])
    assert over_draws(lambda: different(0.0, next(gaps), at_least=1.0), draws=3).error == 2.0


def test_a_draw_that_fails_is_named():
    def check():
        return holds(torch.initial_seed() != 12, "the seed is not 12")

    with pytest.raises(AssertionError, match=r"^in draw 2 of 200: does not hold: the seed"):
        over_draws(check, seed=10)


def test_evidence_of_two_kinds_is_refused():
    kinds = iter([holds(True, "so"), equivalent(1.0, 1.0)])
    with pytest.raises(AssertionError, match="more than one kind: equal, holds"):
        over_draws(lambda: next(kinds), draws=2)


def test_every_value_of_a_list_is_tried():
    found = over_all(lambda n: equivalent(n * 2, n + n), [1, 2, 3])
    assert (found.strength, found.tried) == ("all", 3)
    assert found.text.endswith(", all 3 values")
    with pytest.raises(AssertionError, match=r"^for 3: does not hold: small"):
        over_all(lambda n: holds(n < 3, "small"), range(5))
    with pytest.raises(ValueError, match=r"^there is no value to check$"):
        over_all(lambda n: holds(True, "so"), [])


def right(share):
    return holds(share > 0.9, "right")


def test_seeds_are_counted_and_those_that_hold_too():
    found = over_seeds(right, [0.95, 1.0, 0.5], at_least=2)
    assert (found.strength, found.tried, found.held) == ("seeds", 3, 2)
    assert found.text == "holds: right, 2 of 3 seeds"
    numbers = found._repr_mimebundle_()[1]["evidence"]
    assert numbers["strength"] == {"kind": "seeds", "number": 3, "held": 2}
    assert over_seeds(right, iter([0.95, 1.0])).text == "holds: right, 2 of 2 seeds"


def test_seeds_that_fail_are_told():
    message = r"^in 2 of 3 seeds, 3 needed; run 1: does not hold: right$"
    with pytest.raises(AssertionError, match=message):
        over_seeds(right, [0.95, 0.5, 1.0])
    with pytest.raises(AssertionError, match=r"^in 0 of 2 seeds, 1 needed; run 0: does not hold"):
        over_seeds(right, [0.1, 0.2], at_least=1)
    with pytest.raises(ValueError, match=r"^seeds must be two or more, got 1$"):
        over_seeds(right, [1.0])
    with pytest.raises(ValueError, match=r"^at_least must be from 1 to 2, got 3$"):
        over_seeds(right, [1.0, 1.0], at_least=3)
    with pytest.raises(ValueError, match=r"^at_least must be from 1 to 2, got 0$"):
        over_seeds(right, [1.0, 1.0], at_least=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_every_half_is_there_once(dtype):
    values = every_half(dtype)
    assert values.dtype == dtype
    assert values.isfinite().all()
    assert values.view(torch.int16).unique().numel() == values.numel()
    # Two signs, as many exponents but the last, which is infinity and NaN, and the fractions.
    exponents, fractions = (5, 10) if dtype == torch.float16 else (8, 7)
    assert values.numel() == 2 * (2**exponents - 1) * 2**fractions


def test_a_search_finds_the_simplest_value_that_fails():
    below = strategies.integers(0, 10_000)
    with pytest.raises(AssertionError, match=r"^for 100: does not hold: small$"):
        over_search(lambda n: holds(n < 100, "small"), below)
    rows = strategies.lists(strategies.floats(allow_nan=False), min_size=1)
    with pytest.raises(AssertionError, match=r"^for \[inf\]: does not hold: finite"):
        over_search(lambda row: holds(all(abs(each) != torch.inf for each in row), "finite"), rows)


def test_a_search_tells_how_much_it_tried_and_its_weakest_evidence():
    found = over_search(
        lambda n: equivalent(n * 1e-3, 0.0, atol=1.0), strategies.integers(0, 50), tries=30
    )
    assert (found.strength, found.tried) == ("search", 30)
    assert found.text.endswith(", 30 inputs searched")
    all_there_are = over_search(
        lambda n: equivalent(n * 1e-3, 0.0, atol=1.0), strategies.integers(0, 5)
    )
    assert (all_there_are.tried, all_there_are.error) == (6, 5e-3)


def test_without_hypothesis_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ImportError, match=r"^over_search needs hypothesis: pip install hypothesis"):
        over_search(lambda n: holds(True, "so"), strategies.integers())


def test_whole_numbers_are_counted():
    assert counted(3, 3).strength == "count"
    assert counted(1200, 1200).text == "holds: 1,200 counted, 1,200 expected"
    with pytest.raises(AssertionError, match=r"^1,200 counted, 1,201 expected$"):
        counted(1200, 1201)
    for value in (3.0, True):
        with pytest.raises(TypeError, match=r"^counted takes two ints, got"):
            counted(value, 3)
