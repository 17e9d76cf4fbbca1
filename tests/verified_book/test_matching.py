"""What an expected text agrees with: by hand, searched, and against a slow matcher of its own."""

import random
from decimal import Decimal
from functools import cache

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from verified_book.literals import Literal, stands_for
from verified_book.matching import agree, escape, is_vacuous

# Texts as cells print them: numbers, brackets, words, dots and white space, in any order.
WORDS = [
    *"1.5 -0.25 .5 3. 2e-07 1.e+03 7 42 ... .. . , [ ] ( ) - + e x = tensor nan inf j".split(),
    *["1.2.3", "0x1f", "12e3456789", "1.5j", "\N{MINUS SIGN}", "{", "}", " ", "  ", "\n"],
]
PIECES = st.sampled_from(WORDS)
ODD_PIECES = st.sampled_from([*WORDS, "\\", "\\...", "\\\\...", "\t", "\n\n  ", "\u2028", "\r\n"])
TEXTS = st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=20)
ODD_TEXTS = st.lists(ODD_PIECES, max_size=12).map("".join) | st.text(max_size=20)


def has_escapes(text):
    return "\\..." in text


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
        ("[1.e+03 0.e+00]", "[1.0e+03 0.0e+00]"),
        # A full stop is text; in doubt, what is written the same agrees.
        ("It is 7. So", "It is 7.\nSo"),
        ("It is 0.5.", "It is 0.52."),
        ("1. One\n2. Two", "1. One\n2. Two"),
        # White space: any run equals any other; before a float torch pads, or does not.
        ("a b", "a\u00a0\u2028\u3000\x0c\x1cb"),
        ("\n a", "a \t\n"),
        ("[1.5, 10.25]", "[ 1.50,  10.25]"),
        ("[ 1.5,  10.25]", "[1.50,10.25]"),
        # An ellipsis stands for any text, and for none.
        ("...", ""),
        ("a ... z", "a b\nc z"),
        ("[...]", "[]"),
        ("[ ..., 0.5]", "[ 0.1, 0.5]"),
        ("[..., 0.5, ...]", "[0.1, 0.2, 0.5, 0.9]"),
        # It may begin inside a number, but ends in none.
        ("1.5...", "1.5.2+cpu"),
        ("loss 1.5... 2", "loss 1.5432 and 2"),
        ("...-0.5", "= -0.5"),
        ("...f00>", "<object at 0x7f00>"),
        ("(about ....)", "(about 7.)"),
        ("...-05-01", "2024-05-01"),
        # An escape.
        (r"[0 1 \... 8 9]", "[0 1 ... 8 9]"),
        (r"\\...", r"\abc"),
        (r"a\b\.c\..", r"a\b\.c\.."),
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
        ("1.23", "-1.23"),
        ("1,234.5", "2,234.5"),
        ("(1.5+2.25j)", "(1.5-2.25j)"),
        # A float is no integer: the dtype of a tensor shows by its points.
        ("[3., 4.]", "[3, 4]"),
        ("3", "3.0"),
        ("torch.Size([2, 4])", "torch.Size([2, 5])"),
        ("nan", "0.5"),
        ("0.5", "0.5.1"),
        # A full stop is text.
        ("It is 7.", "It is 7.0"),
        ("It is 7.0", "It is 7."),
        ("(a) It is 7.", "(a) It is 7.0"),
        # White space that must stand, or must not.
        ("a b", "ab"),
        ("a 1.5", "a1.5"),
        ("1.5 -2.5", "1.5-2.5"),
        ("[ 3]", "[3]"),
        ("0.5", "0.5 0.5"),
        ("", "a"),
        # Ellipses: what stands between them stands there in this order, and once each.
        ("a ... z", "a z"),
        ("a...b...c", "aXcYb"),
        ("ab...bc", "abc"),
        ("...0.5 0.6...", "0.5 0.7 0.6"),
        # They end neither inside a number nor behind its sign.
        ("... 0.5", "10.5"),
        ("[..., 0.5, ...]", "[0.1, -0.5, 10.5, 0.51x]"),
        ("...5", "1.e5"),
        ("...234", "1,234"),
        ("...inf...", "-inf"),
        # An escape.
        (r"\...", "abc"),
        (r"\\\...", r"\abc"),
        # No number.
        ("1.2.3", "1.24.3"),
        ("3.5ms", "3.52ms"),
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
        ("a\tb\n\tc", "a       b\n        c"),
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
        ("a 0.5", "a 0.6"),
    ],
)
def test_does_not_agree_exactly(want, got):
    assert not agree(want, got, exact=True)


@given(ODD_TEXTS, st.booleans())
@example("1e9999", False)
@example("...5", False)
@example("x ... 0.5", False)
@example("-...inf", False)
@example("1.5....5", False)
@example("(... 3. ...)", False)
@example("...\tx", True)
@example("\u0663.\u0665", False)  # digits of another script
def test_a_text_agrees_with_itself(text, exact):
    assume(not has_escapes(text))
    assert agree(text, text, exact)


@given(ODD_TEXTS, st.booleans())
@example("\\......", False)
@example(".....\\\\....5", False)
@example("...\tx", True)
@example("  ...\n  \\...", True)
def test_an_escaped_text_agrees_with_its_text(text, exact):
    assert agree(escape(text), text, exact)


@given(ODD_TEXTS, st.data())
def test_a_text_with_one_digit_changed_does_not_agree(text, data):
    digits = [place for place, char in enumerate(text) if char in "0123456789"]
    assume(digits)
    place = data.draw(st.sampled_from(digits))
    digit = data.draw(st.sampled_from("0123456789"))
    assume(digit != text[place])
    # The exponent of a zero, and no other digit, may change without a change of value.
    assume(not text[:place].rstrip("0123456789+-").endswith("e"))
    assert not agree(escape(text), text[:place] + digit + text[place + 1 :])


@given(st.integers(-(10**6), 10**6), st.integers(1, 6), st.integers(0, 6))
def test_rounding_to_fewer_digits_agrees(units, digits, dropped):
    got = f"{Decimal(units).scaleb(-digits - dropped):.{digits + dropped}f}"
    assert agree(f"{Decimal(got):.{digits}f}", got)


@given(st.integers(-(10**6), 10**6), st.integers(1, 6), st.integers(1, 9))
def test_another_last_digit_does_not_agree(units, digits, step):
    got = f"{Decimal(units).scaleb(-digits):.{digits}f}"
    want = f"{Decimal(units + step).scaleb(-digits):.{digits}f}"
    assert not agree(want, got)


@given(st.integers(-(10**9), 10**9), st.integers(1, 6), st.integers(1, 10**6))
def test_a_whole_float_agrees_with_whole_ones_alone(whole, digits, units):
    off = Decimal(units).scaleb(-digits)
    near = abs(off) <= min(Decimal("1e-6") * max(1, abs(whole)), Decimal("0.01"))
    assert agree(f"[{whole}.]", f"[{whole}.{'0' * digits}]")
    assert agree(f"[{whole}.]", f"[{whole + off:f}]") == near
    assert not agree(f"It is {whole}.", f"It is {whole}.{'0' * digits}")


@given(ODD_TEXTS, ODD_TEXTS, ODD_TEXTS, st.booleans())
def test_an_ellipsis_stands_for_any_text_between_two_others(before, between, after, exact):
    assume("." not in before[-3:] + after[:3])
    assume(not has_escapes(before + after))
    got = f".|{before}|{between}|{after}|"
    assume(not exact or "\t" not in got)
    assert agree(f".|{before}|...|{after}|", got, exact)


@given(st.lists(ODD_TEXTS, max_size=4), st.integers(0, 9))
def test_an_indentation_of_all_lines_is_free(lines, indent):
    text = "\n".join(lines).expandtabs(8)
    moved = "\n".join(" " * indent + line + "  " for line in escape(text).split("\n"))
    assert agree(moved, text, exact=True)


# --- A slow matcher, written apart: it reads character by character and tries every place. ---


def slow_agree(want, got):
    text, ellipses = slow_unescape(" ".join(want.split()))
    got = " ".join(got.split())
    wanted, found = slow_floats(text), slow_floats(got)

    def is_word(place):
        return place >= 0 and (text[place] in "._" or text[place].isalnum())

    @cache
    def matches(i, j):
        if i == len(text):
            return j == len(got)
        if i in ellipses:
            ends = i + 3 in ellipses or i + 3 == len(text)  # and it does not matter where
            places = [k for k in range(j, len(got) + 1) if ends or not slow_inside(got, k)]
            return any(matches(i + 3, k) for k in places)
        if i in wanted:
            literal = wanted[i]
            places = [j]
            if i == 0 or not is_word(i - 1) or i - 3 in ellipses:
                places += [j + 1] if got[j : j + 1] == " " and text[i - 1] != " " else []
            return any(
                k in found and stands_for(literal, found[k]) and matches(literal.end, found[k].end)
                for k in places
            )
        if j < len(got) and got[j] == text[i] and matches(i + 1, j + 1):
            return True
        # A blank before a float may be missing, or may be there all the same.
        padding = text[i] == " " and i + 1 in wanted and (not is_word(i - 1) or i - 3 in ellipses)
        return padding and matches(i + 1, j)

    return matches(0, 0)


def slow_unescape(want):
    text, ellipses, place = "", set(), 0
    while place < len(want):
        backslashes = 0
        while want[place + backslashes : place + backslashes + 1] == "\\":
            backslashes += 1
        if want[place + backslashes :].startswith("..."):
            text += "\\" * (backslashes // 2)
            if backslashes % 2 == 0:
                ellipses.add(len(text))
            text += "..."
            place += backslashes + 3
        else:
            text += want[place : place + backslashes + 1]
            place += backslashes + 1
    return text, ellipses


def slow_floats(text):
    found, place = {}, 0
    while place < len(text):
        end = slow_float_end(text, place)
        if end is None:
            place += 1
            continue
        literal = text[place:end]
        stop = literal[-1] == "." and text[end : end + 1] in ("", " ")
        found[place] = Literal(place, end, literal, stop and not slow_in_brackets(text, place))
        place = end
    return found


def slow_float_end(text, start):
    def run(place, chars="0123456789"):
        end = place
        while end < len(text) and text[end] in chars:
            end += 1
        return end

    place = start
    if text[place] in "+-\N{MINUS SIGN}":
        place += 1
    elif start and (text[start - 1].isalnum() or text[start - 1] in "._"):
        if text[max(start - 3, 0) : start] != "..." or text[start] == ".":
            return None
    if text.startswith(("nan", "inf"), place):
        place += 3
    else:
        digits = run(place)
        whole = digits > place
        point = text[digits : digits + 1] == "."
        end = run(digits + 1) if point else digits
        if not whole and end <= digits + 1:
            return None
        place = end
        if text[place : place + 1] in ("e", "E"):
            power = place + 1 + (text[place + 1 : place + 2] in ("+", "-"))
            if run(power) == power or run(power) > power + 4:
                return None
            place = run(power)
        elif not point:
            return None
    place += text[place : place + 1] == "j"
    rest = text[place : place + 2]
    if (
        rest[:1].isalnum()
        or rest[:1] == "_"
        or rest == ".."
        or (rest[:1] == "." and rest[1:].isdigit())
    ):
        return None
    return place


def slow_in_brackets(text, place):
    for start in range(place):
        depth = 0
        for end in range(start, len(text)):
            depth += (text[end] in "([{") - (text[end] in ")]}")
            if depth <= 0:
                break
        else:
            continue
        if end > place and text[start] in "([{":
            return True
    return False


def slow_inside(text, place):
    before, here = text[:place], text[place:]
    for literal in slow_floats(text).values():
        if literal.start < place < literal.end and (place, here[0]) != (literal.end - 1, "."):
            return True
    if before.endswith("...") or not before:
        return False
    if here[:1] == "." and here[1:2].isdigit():
        return before[-1].isdigit()
    if not here[:1].isdigit():
        return False
    thousands = before[-1] == "," and before[-2:-1].isdigit()
    if thousands and here[:3].isdigit() and len(here[:3]) == 3 and not here[3:4].isdigit():
        return True
    return before[-1].isdigit() or before[-1] in ".+-\N{MINUS SIGN}"


@st.composite
def wants_and_gots(draw):
    """An expected text, and one made from it: parts changed, and something for each ellipsis."""
    pieces = st.sampled_from(
        "... ... ... a 5 0.5 0.5 -0.5 0.52 1.5 3. nan ( ) [ . , - \\ e \n".split(" ") + [" "] * 4
    )
    want = draw(st.lists(pieces, max_size=10))
    got = []
    for piece in want:
        change = draw(st.integers(0, 9))
        if piece == "...":
            got += draw(st.lists(pieces, max_size=3))
        elif change == 0:
            got.append(draw(pieces))
        elif change == 1 and piece == " ":
            got += ["", "  "][draw(st.integers(0, 1)) :][:1]
        else:
            got.append({"0.5": "0.52", "3.": "3.0"}.get(piece, piece) if change == 2 else piece)
    return "".join(want), "".join(got)


@settings(max_examples=500)
@given(wants_and_gots())
@example(("... 0.5...", "0.5 0.5 0.5"))
@example(("... 3. ...)", "(3. 3.0 )"))
def test_the_slow_matcher_says_the_same(texts):
    want, got = texts
    assert agree(want, got) == slow_agree(want, got)


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
        ("..." * 10_000 + "x", "." * 30_000),
        ("(" * 100_000 + "7.", "(" * 100_000 + "7.0"),
        ("1" * 200_000 + ".5", "1" * 200_000 + "x"),
        (r"\..." * 20_000, "..." * 20_000 + "x"),
    ],
    ids=range(6),
)
def test_what_repeats_itself_takes_no_longer(want, got):
    assert not agree(want, got)


def test_a_text_that_agrees_with_everything_is_vacuous():
    assert all(map(is_vacuous, ["...", "\n...\n", "", "......"]))
    assert not any(map(is_vacuous, ["tensor(...)", "...,", "....", r"\...", r"\\..."]))
