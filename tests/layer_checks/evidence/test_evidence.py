"""The evidence functions: what they accept, what they refuse, and the words of both."""

import math

import numpy as np
import pytest
import torch

from layer_checks import Evidence, different, equivalent, holds, raises

INF, NAN = math.inf, math.nan


def test_equal_values_say_how_near_they_are() -> None:
    evidence = equivalent(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]), atol=0.75)
    assert evidence == Evidence("equal", 0.5, 0.75, "equal: largest difference 0.5, tolerance 0.75")
    assert repr(evidence) == "equal: largest difference 0.5, tolerance 0.75"


def test_a_failure_names_the_worst_element() -> None:
    actual = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    expected = torch.tensor([[1.0, 2.5, 3.0], [4.0, 5.0, 5.25]])
    with pytest.raises(AssertionError) as caught:
        equivalent(actual, expected, atol=0.25)
    assert str(caught.value) == (
        "not equal: largest difference 0.75, tolerance 0.25\n"
        "  at index (1, 2): 6 against 5.25; 2 of 6 elements differ by more than the tolerance\n"
        "  shape (2, 3), torch.float32"
    )


def test_a_relative_tolerance_names_the_element_that_exceeds_it_most() -> None:
    with pytest.raises(AssertionError) as caught:
        equivalent(torch.tensor([1000.5, 1.25]), torch.tensor([1000.0, 1.0]), rtol=1e-3, atol=0.125)
    assert str(caught.value) == (
        "not equal: worst difference 0.25, tolerance 0.125 + 0.001 * |expected|\n"
        "  at index (1,): 1.25 against 1; 1 of 2 elements differ by more than the tolerance\n"
        "  shape (2,), torch.float32"
    )


def test_a_relative_tolerance_alone_leaves_no_absolute_one() -> None:
    assert "tolerance 0.001 * |expected|" in equivalent(1000.0, 1000.5, rtol=1e-3).text
    with pytest.raises(AssertionError):
        equivalent(0.0, 1e-30, rtol=0.5)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [
        (torch.float64, 1e-12),
        (torch.float32, 1e-6),
        (torch.float16, 2e-3),
        (torch.bfloat16, 1.6e-2),
        (torch.complex128, 1e-12),
        (torch.int64, 0.0),
    ],
)
def test_the_default_tolerance_depends_on_the_dtype(dtype: torch.dtype, tolerance: float) -> None:
    ones = torch.ones(3, dtype=dtype)
    assert equivalent(ones, ones).tolerance == tolerance


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (3, 3),
        (0.1 + 0.2, 0.3),
        (torch.tensor([1, 2]), [1, 2]),
        ([[1, 2], [3, 4]], torch.tensor([[1.0, 2.0], [3.0, 4.0]])),
        (torch.tensor([0.1]).half(), [0.1]),
        (np.array([1.0, 2.0]), torch.tensor([1.0, 2.0]).double()),
        (np.float32(2), 2),
        (torch.zeros(3, 4), 0),
        (torch.tensor([True, False]), [True, False]),
        (torch.tensor([INF, -INF, 1.0]), [INF, -INF, 1.0]),
        (torch.ones(2, requires_grad=True), torch.ones(2)),
        (torch.tensor([1 + 2j]), [1 + 2j]),
        ([], []),
    ],
)
def test_numbers_arrays_and_lists_compare(actual: object, expected: object) -> None:
    assert equivalent(actual, expected).kind == "equal"


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        (torch.zeros(3, 4), torch.zeros(4), r"not equal: shape \(3, 4\) against \(4,\)"),
        (torch.zeros(1), torch.zeros(()), r"not equal: shape \(1,\) against \(\)"),
        (torch.zeros(2), torch.zeros(2).double(), "dtype torch.float32 against torch.float64"),
        (torch.tensor([1, 2]), [1, 2.5], "largest difference 0.5"),
        (torch.tensor([1.0]), [1 + 0.5j], "largest difference 0.5"),
        (True, False, "True against False"),
        (torch.tensor([1, 2**62]), [1, 2**62 + 1], "largest difference 1, tolerance 0"),
        (torch.tensor([2.0]), [INF], "2 against inf"),
        (torch.tensor([2e-6]), [0.0], "largest difference 2e-06, tolerance 1e-06"),
        (torch.tensor([1.0, NAN]), [1.0, 2.0], r"not equal: NaN in actual\n  at index \(1,\)"),
        (torch.tensor([NAN]), torch.tensor([NAN]), "not equal: NaN in actual and expected"),
    ],
)
def test_what_differs_is_named(actual: object, expected: object, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        equivalent(actual, expected)


def test_values_are_printed_to_the_digits_that_tell_them_apart() -> None:
    below = torch.tensor(1.0).nextafter(torch.tensor(0.0))
    with pytest.raises(AssertionError, match=r"0.99999994 against 1;"):
        equivalent(below, 1.0, atol=0.0)
    below = torch.tensor(1.0).double().nextafter(torch.tensor(0.0).double())
    with pytest.raises(AssertionError, match=r"0.99999999999999989 against 1;"):
        equivalent(below, 1.0, atol=0.0)


def test_no_elements_are_evidence_of_the_shape_alone() -> None:
    evidence = equivalent(torch.zeros(0, 4), torch.zeros(0, 4))
    assert (evidence.text, evidence.error) == ("equal: no elements, shape (0, 4)", None)
    assert evidence.pattern == evidence.text


@pytest.mark.parametrize("tolerance", [-1e-9, NAN])
def test_a_tolerance_that_nothing_or_everything_passes_is_refused(tolerance: float) -> None:
    with pytest.raises(
        ValueError, match=f"atol must be a finite number of at least 0, got {tolerance}"
    ):
        equivalent(1.0, 1.0, atol=tolerance)
    with pytest.raises(ValueError, match="rtol must be a finite number of at least 0"):
        equivalent(1.0, 1.0, rtol=tolerance)


def test_different_says_by_how_much() -> None:
    evidence = different(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.96]), at_least=0.1)
    assert evidence.text == "different: largest difference 0.96, at least 0.1"
    assert (evidence.kind, evidence.tolerance) == ("different", 0.1)
    assert evidence.pattern == "different: largest difference ..., at least 0.1"


def test_an_infinite_difference_is_one() -> None:
    evidence = different(torch.tensor([INF]), [1.0], at_least=1)
    assert evidence.text == "different: largest difference inf, at least 1"
    _, metadata = evidence._repr_mimebundle_()
    assert metadata["evidence"]["error"] is None


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        (1.0, 1.25, r"^not different: largest difference 0.25, at least 0.5 asked for$"),
        (torch.zeros(2), torch.zeros(3), "shape"),
        (torch.zeros(0), torch.zeros(0), r"no elements to tell apart, shape \(0,\)"),
    ],
)
def test_what_is_not_different_is_named(actual: object, expected: object, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        different(actual, expected, at_least=0.5)


@pytest.mark.parametrize("at_least", [0, INF])
def test_a_bound_that_cannot_fail_is_refused(at_least: float) -> None:
    with pytest.raises(
        ValueError, match=f"at_least must be a finite number above 0, got {at_least}"
    ):
        different(1.0, 2.0, at_least=at_least)


def test_raises_shows_the_first_line() -> None:
    def refuse(value: int, *, why: str) -> None:
        raise ValueError(f"no {value}: {why}\nmore")

    evidence = raises(ValueError, refuse, 3, why="odd", match="odd$|more")
    assert evidence == Evidence("raises", None, None, "ValueError: no 3: odd")
    assert evidence.pattern == evidence.text


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda: torch.ones(2, 3),
            r"ValueError expected, got a result: a tensor of shape \(2, 3\)",
        ),
        (lambda: 7, "ValueError expected, got a result: 7"),
        (lambda: 1 / 0, "ValueError expected, got ZeroDivisionError: division by zero"),
        (lambda: int("x"), r"the message does not match 'of base': ValueError: invalid literal"),
    ],
)
def test_what_is_not_refused_as_asked_is_named(function: object, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        raises(ValueError, function, match="of base")


def test_holds_shows_the_statement() -> None:
    assert repr(holds(torch.tensor(True), "it is so")) == "holds: it is so"
    with pytest.raises(AssertionError, match=r"^does not hold: it is so$"):
        holds(torch.tensor(False), "it is so")


def test_evidence_carries_its_numbers_into_the_notebook() -> None:
    bundle = equivalent(torch.tensor([1.25]), [1.0], atol=0.5)._repr_mimebundle_()
    text = "equal: largest difference 0.25, tolerance 0.5"
    pattern = "equal: largest difference ..., tolerance 0.5"
    numbers = {"kind": "equal", "error": 0.25, "tolerance": 0.5, "pattern": pattern}
    strength = {"kind": "input", "number": None}
    assert bundle == ({"text/plain": text}, {"evidence": {**numbers, "strength": strength}})
