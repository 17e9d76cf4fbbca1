"""What an expected text agrees with, by hand and searched."""

from decimal import Decimal

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from verified_book.matching import agree, half_unit, is_vacuous

# Texts as cells print them: numbers, brackets, words, dots and white space, in any order.
PIECES = st.sampled_from(
    [
        *"1.5 -0.25 .5 3. 2e-07 1.e+03 7 42 ... .. . , [ ] ( ) - + e x = tensor nan inf".split(),
        *["1.2.3", "0x1f", "12e3456789", " ", "  ", "\n"],
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=20)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        # Floats agree to the digits written, with a half unit of the last one to spare.
        ("1.23", "1.2349"),
        ("1.23", "1.235"),
        ("0.5", "0.4999999"),
        ("3.", "3.0000"),
        ("1e-07", "1.4e-07"),
        ("1.5e3", "1540.0"),
        ("-0.00", "0.0000"),
        ("+1.5", "1.5"),
        ("123456789012.5", "123456789012.46"),
        # Inside text, at its ends, and next to signs and full stops.
        ("tensor([1.23, -0.5])", "tensor([1.2345, -0.5000])"),
        ("It is 0.5.", "It is 0.52."),
        ("x-1.5", "x-1.52"),
        ("1.0-1.5", "1.01-1.52"),
        ("(0.1)", "(0.10)"),
        # White space: any run equals any other; before a number torch pads, or does not.
        ("a b", "a \n  b"),
        (" a ", "a"),
        ("[1.5, 10.25]", "[ 1.50, 10.25]"),
        ("[ 1.5,  10.25]", "[1.50, 10.25]"),
        # An ellipsis stands for any text, and for none.
        ("...", ""),
        ("tensor(...)", "tensor([1, 2])"),
        ("a ... z", "a b\nc z"),
        ("[...]", "[]"),
        ("... 0.5", "some text 0.50"),
        ("[..., 0.5, ...]", "[0.1, 0.2, 0.5, 0.9]"),
        (
            "equal: largest difference ..., tolerance 1e-06",
            "equal: largest difference 0, tolerance 1e-06",
        ),
        ("a...b...c...", "aXbYcZ"),
        ("1...", "1 and more"),
        ("1.5...", "1.5432"),
        # No number: a version, a word, a digest, an address.
        ("1.2.3", "1.2.3"),
        ("v1.5", "v1.5"),
        ("12e3456789", "12e3456789"),
        ("0x7f00", "0x7f00"),
    ],
)
def test_agrees(want, got):
    assert agree(want, got)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("1.23", "1.2351"),
        ("1.23", "1.24"),
        ("1.23", "-1.23"),
        ("3.", "3.6"),
        ("1e-07", "2e-07"),
        ("1e-07", "1e-08"),
        ("123456789012.5", "123456789013.4"),
        # A float is no integer: the dtype of a tensor shows by its points.
        ("[3., 4.]", "[3, 4]"),
        ("[3, 4]", "[3., 4.]"),
        ("3", "3.0"),
        ("42", "43"),
        ("torch.Size([2, 4])", "torch.Size([2, 5])"),
        ("0.5", "nan"),
        ("nan", "0.5"),
        ("0.5", "inf"),
        ("0.5", "0.5x"),
        ("0.5", "0.5.1"),
        ("0.5", "0.5e10"),
        # Ellipses take no part of a number, and neither its sign.
        ("... 0.5", "10.5"),
        ("... 0.5", "x -0.5"),
        ("... 0.5", "x 10.5"),
        ("[..., 0.5, ...]", "[0.1, -0.5, 10.5, 0.51x]"),
        ("x-1.5", "x+1.5"),
        ("a 1.5", "a1.5"),
        ("a b", "ab"),
        ("ab", "a b"),
        ("a", "a b"),
        ("a b", "a"),
        ("a", ""),
        ("", "a"),
        ("1.2.3", "1.2.4"),
        ("1.2.3", "1.24.3"),
        ("1.5...", "1.49"),
        ("v1.5", "v1.52"),
        ("12e3456789", "12e3456788"),
        ("a...b...c", "aXcYb"),
        ("[[1.19, ..., 0.58]]", "[[1.1918, -0.1481, 0.4814]]"),
    ],
)
def test_does_not_agree(want, got):
    assert not agree(want, got)


@given(TEXTS)
@example("1e9999")
@example(".5.5")
@example("1.5....")
@example("\u0663.\u0665")  # digits of another script
def test_a_text_agrees_with_itself(text):
    assert agree(text, text)


@given(TEXTS, st.data())
def test_a_text_with_one_digit_changed_does_not_agree(text, data):
    assume("..." not in text)
    digits = [place for place, char in enumerate(text) if char in "0123456789"]
    assume(digits)
    place = data.draw(st.sampled_from(digits))
    digit = data.draw(st.sampled_from("0123456789"))
    assume(digit != text[place])
    # The exponent of a zero, and no other digit, may change without a change of value.
    assume(not text[:place].rstrip("0123456789+-").endswith("e"))
    assert not agree(text, text[:place] + digit + text[place + 1 :])


@given(st.integers(-(10**6), 10**6), st.integers(0, 6), st.integers(0, 6))
def test_rounding_to_fewer_digits_agrees(units, digits, dropped):
    got = f"{Decimal(units).scaleb(-digits - dropped):.{digits + dropped}f}"
    if "." not in got:
        got += "."
    want = f"{Decimal(got):.{digits}f}"
    assert agree(want if "." in want else f"{want}.", got)


@given(st.integers(-(10**6), 10**6), st.integers(1, 6), st.integers(1, 9))
def test_another_last_digit_does_not_agree(units, digits, step):
    got = f"{Decimal(units).scaleb(-digits):.{digits}f}"
    want = f"{Decimal(units + step).scaleb(-digits):.{digits}f}"
    assert not agree(want, got)


@given(TEXTS, TEXTS, TEXTS)
def test_an_ellipsis_stands_for_any_text_between_two_others(before, between, after):
    assume("." not in before[-3:] + after[:3])
    head, tail = f"{before}|", f"|{after}"
    assert agree(f"{head}...{tail}", f"{head}{between}{tail}")


@given(TEXTS)
def test_runs_of_white_space_are_equal(text):
    assert agree(text, text.replace(" ", " \n\t "))


def test_many_ellipses_take_no_exponential_time():
    assert not agree("a..." * 30 + "b", "a" * 400)


@pytest.mark.parametrize(
    ("literal", "half"),
    [("1.25", "0.005"), ("3.", "0.5"), ("1e3", "500"), ("1.5e-3", "0.00005"), ("-.5E+2", "5")],
)
def test_half_a_unit_in_the_last_place(literal, half):
    assert half_unit(literal) == Decimal(half)


@pytest.mark.parametrize("want", ["...", "... ...", "\n...\n", "", "  ", "......"])
def test_a_text_that_agrees_with_everything_is_vacuous(want):
    assert is_vacuous(want)


@pytest.mark.parametrize("want", ["tensor(...)", "0", "...,", ". . ."])
def test_a_text_that_can_be_refuted_is_not_vacuous(want):
    assert not is_vacuous(want)
