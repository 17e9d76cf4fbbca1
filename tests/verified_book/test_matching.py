"""What an expected text agrees with."""

import random

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from verified_book.matching import agree, escape, is_vacuous

# Texts as cells print them: numbers, brackets, words, dots and white space, in any order.
WORDS = [
    *"1.5 -0.25 .5 3. 2e-07 1.e+03 7 42 ... .. . , [ ] ( ) - + e x = tensor nan inf j".split(),
    *["1.2.3", "0x1f", "12e3456789", "1.5j", "\N{MINUS SIGN}", "{", "}", " ", "  ", "\n"],
]
TEXTS = st.lists(st.sampled_from([*WORDS, "\\", "\\...", "\t", "\u2028", "\r\n"]), max_size=12).map(
    "".join
)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        # Floats agree to the digits written, inside text, at its ends, next to signs and points.
        ("1.23", "1.235"),
        ("tensor([1.23, -0.5])", "tensor([1.2345, -0.5000])"),
        ("1.0-1.5", "1.01-1.52"),
        ("np.float64(0.3)", "np.float64(0.30000000000000004)"),
        ("1,234.5 12.5% 12:30.5", "1,234.52 12.52% 12:30.52"),
        ("(1.5+2.25j)", "(1.52+2.252j)"),
        ("[nan, -inf]", "[nan, -inf]"),
        # Floats without decimals are whole.
        ("tensor([0., 3.])", "tensor([-0.0000, 2.9999998])"),
        # A full stop is text; in doubt, what is written the same agrees.
        ("It is 7. So", "It is 7.\nSo"),
        ("1. One\n2. Two", "1. One\n2. Two"),
        # White space: any run equals any other; before a float torch pads, or does not.
        ("a b", "a\u00a0\u2028\u3000\x0c\x1cb"),
        ("[1.5, 10.25]", "[ 1.50,  10.25]"),
        # An ellipsis stands for any text, and for none.
        ("...", ""),
        ("a ... z", "a b\nc z"),
        ("[ ..., 0.5]", "[ 0.1, 0.5]"),
        ("[..., 0.5, ...]", "[0.1, 0.2, 0.5, 0.9]"),
        # It may begin inside a number, but ends in none.
        ("1.5...", "1.5.2+cpu"),
        ("...f00>", "<object at 0x7f00>"),
        ("...-05-01", "2024-05-01"),
        # An escape.
        (r"[0 1 \... 8 9]", "[0 1 ... 8 9]"),
        (r"\\...", r"\abc"),
        # No number: a version, a word, a digest, an address, a date.
        ("1.2.3 v1.5 3.5ms 0x7f00", "1.2.3 v1.5 3.5ms 0x7f00"),
    ],
)
def test_agrees(want, got):
    assert agree(want, got)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("1.23", "1.2351"),
        ("(1.5+2.25j)", "(1.5-2.25j)"),
        # A float is no integer: the dtype of a tensor shows by its points.
        ("[3., 4.]", "[3, 4]"),
        ("3", "3.0"),
        ("0.5", "0.5.1"),
        # A full stop is text.
        ("It is 7.", "It is 7.0"),
        # White space that must stand, or must not.
        ("a b", "ab"),
        ("a 1.5", "a1.5"),
        ("[ 3]", "[3]"),
        ("", "a"),
        # Ellipses: what stands between them stands there in this order, and once each.
        ("ab...bc", "abc"),
        ("...0.5 0.6...", "0.5 0.7 0.6"),
        # They end neither inside a number nor behind its sign.
        ("... 0.5", "10.5"),
        ("[..., 0.5, ...]", "[0.1, -0.5, 10.5, 0.51x]"),
        ("...5", "1.e5"),
        ("...234", "1,234"),
        # An escape.
        (r"\...", "abc"),
        # No number.
        ("1.2.3", "1.24.3"),
        ("12e3456789", "12e3456788"),
    ],
)
def test_does_not_agree(want, got):
    assert not agree(want, got)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("  a\n\n    b", "a\n\n  b"),
        ("[ 0.5,\n  1.5]", "[ 0.52,\n  1.52]"),
        ("...\tb", "abc     b"),
        ("a\n...\nd", "a\n b\nc\nd"),
        ("a\nb", "a\r\nb\r\n"),
    ],
)
def test_agrees_exactly(want, got):
    assert agree(want, got, exact=True)
    assert agree(want, got)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("a b", "a  b"),
        ("a b", "a\nb"),
        ("a\nb", "a\n b"),
        ("[0.5, 1.5]", "[ 0.5, 1.5]"),
        ("... 0.5", "0.5"),
        ("a\u2028b", "a\nb"),
    ],
)
def test_does_not_agree_exactly(want, got):
    assert not agree(want, got, exact=True)


@given(TEXTS, st.booleans())
@example("\\......", False)
@example("...\tx", True)
@example("  ...\n  \\...", True)
def test_an_escaped_text_agrees_with_its_text(text, exact):
    assert agree(escape(text), text, exact)


@given(TEXTS, st.data())
def test_a_text_with_one_digit_changed_does_not_agree(text, data):
    digits = [place for place, char in enumerate(text) if char in "0123456789"]
    assume(digits)
    place = data.draw(st.sampled_from(digits))
    digit = data.draw(st.sampled_from("0123456789"))
    assume(digit != text[place])
    # The exponent of a zero, and no other digit, may change without a change of value.
    assume(not text[:place].rstrip("0123456789+-").endswith("e"))
    assert not agree(escape(text), text[:place] + digit + text[place + 1 :])


# --- Sizes that never end, or that end in a RecursionError, where time grows faster than texts. ---


def tensor(rows):
    numbers = random.Random(0)
    row = [", ".join(f"{numbers.uniform(-9, 9):7.4f}" for _ in range(10)) for _ in range(rows)]
    return "tensor([[" + "],\n        [".join(row) + "]])"


def test_a_large_tensor():
    got = tensor(rows=1000)
    want = got.split(", ")
    want[16::33] = ["..."] * len(want[16::33])
    assert agree(", ".join(want), got)
    assert not agree(", ".join([*want[:-1], "99.5]])"]), got)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ("a 0.5..." * 300 + "b", "a 0.5" * 20_000),
        ("..." + "ab" * 20_000 + "c...", "ab" * 100_000),
        ("(" * 100_000 + "7.", "(" * 100_000 + "7.0"),
    ],
    ids=range(3),
)
def test_what_repeats_itself_takes_no_longer(want, got):
    assert not agree(want, got)


def test_a_text_that_agrees_with_everything_is_vacuous():
    assert all(map(is_vacuous, ["...", "\n...\n", "", "......"]))
    assert not any(map(is_vacuous, ["tensor(...)", "...,", "....", r"\...", r"\\..."]))
