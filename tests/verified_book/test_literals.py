"""Which words of a text are floats, and what they stand for."""

import pytest

from verified_book.literals import floats, stands_for


def in_brackets(literal):
    (found,) = floats(f"({literal})")
    assert found.text == literal
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "1.5 -0.25 +.5 3. 2e-07 1.e+03 1E5",
            ["1.5", "-0.25", "+.5", "3.", "2e-07", "1.e+03", "1E5"],
        ),
        ("7 42 -3 1,000", []),
        ("nan -inf +inf (nan)", ["nan", "-inf", "+inf", "nan"]),
        ("1.5+2.25j 1e-3j -2.j nan+nanj", ["1.5", "+2.25j", "1e-3j", "-2.j", "nan", "+nanj"]),
        ("1.2.3 1.2.3. 2024.05.01 127.0.0.1", []),
        ("1,234.56 12.5% 12:30.5 x=1.5", ["234.56", "12.5", "30.5", "1.5"]),
        ("np.float64(0.30000000000000004)", ["0.30000000000000004"]),
        ("\N{MINUS SIGN}1.5 1\N{EN DASH}2.5", ["\N{MINUS SIGN}1.5", "2.5"]),
        ("1.5... 1.5.. 3.... inf...", []),
        ("\u0663.\u0665", ["\u0663.\u0665"]),  # digits of another script
    ],
)
def test_floats(text, expected):
    found = floats(text)
    assert [literal.text for literal in found] == expected
    assert [text[literal.start : literal.end] for literal in found] == expected


@pytest.mark.parametrize(
    ("text", "stops"),
    [
        ("It is -7. So", [True]),
        ("7., or 7.!", [False, False]),
        ("[1. 2.] {3. } [(4. )", [False, False, False, False]),
        ("[0., 1. ) 2. ", [False, False, True]),
    ],
)
def test_a_point_outside_brackets_before_white_space_may_be_a_full_stop(text, stops):
    assert [literal.stop for literal in floats(text)] == stops


@pytest.mark.parametrize(
    ("want", "got", "other"),
    [
        ("1.23", "1.235", "1.2351"),
        ("-0.00", "0.0000", "-0.0051"),
        ("-1.5", "\N{MINUS SIGN}1.5", "1.5"),
        ("1e9999", "1.2e9999", "1e-9999"),
        ("2.25j", "2.252j", "2.25"),
        ("nan", "nan", "0.5"),
        # Without decimals: what is whole, or nearly.
        ("0.", "-1e-06", "-0.0000011"),
        ("3.", "2.9999998", "3.0000031"),
        ("1.e+03", "1000.001", "1000.0011"),
    ],
)
def test_stands_for(want, got, other):
    assert stands_for(in_brackets(want), in_brackets(got))
    assert not stands_for(in_brackets(want), in_brackets(other))


def test_an_integer_with_a_full_stop_stands_for_what_is_written_the_same_alone():
    (stop,), whole, decimals = floats("7."), in_brackets("7."), in_brackets("7.0")
    assert stop.stop
    assert stands_for(stop, whole)
    assert stands_for(whole, stop)
    assert not stands_for(stop, decimals)
    assert not stands_for(decimals, stop)
