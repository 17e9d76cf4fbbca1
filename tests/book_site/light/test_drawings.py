"""Drawings in fewer bytes paint the same: every point, every style, every clip."""

import re
from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from book_site.light import drawings

COUNTS = {"M": 2, "L": 2, "H": 1, "V": 1, "Q": 4, "C": 6, "Z": 0}
places = st.integers(-99999, 99999).map(lambda hundredths: f"{hundredths / 100:.6f}")
pieces = st.sampled_from("LLLQCZ").flatmap(
    lambda command: st.tuples(
        st.just(command), st.lists(places, min_size=COUNTS[command], max_size=COUNTS[command])
    )
)


def points(data: str) -> list[tuple[str, list[float]]]:
    """What a path draws, as absolute curves and lines, read by the letter of the standard."""
    tokens = re.findall(r"[A-Za-z]|-?(?:\d+(?:\.\d+)?|\.\d+)", data)
    drawn: list[tuple[str, list[float]]] = []
    at, start, command = [0.0, 0.0], [0.0, 0.0], ""
    while tokens:
        if tokens[0].isalpha():
            command = tokens.pop(0)
        kind = command.upper()
        numbers = [float(tokens.pop(0)) for _ in range(COUNTS[kind])]
        moved = at if command.islower() else [0.0, 0.0]
        if kind == "Z":
            at = start
            drawn.append(("Z", []))
            command = ""
            continue
        if kind == "H":
            numbers, kind = [numbers[0] + moved[0], at[1]], "L"
        elif kind == "V":
            numbers, kind = [at[0], numbers[0] + moved[1]], "L"
        else:
            numbers = [number + moved[place % 2] for place, number in enumerate(numbers)]
        at = numbers[-2:]
        if kind == "M":
            start, command = at, "l" if command.islower() else "L"
        drawn.append((kind, numbers))
    return drawn


def without_closing_lines(drawn):
    """A line back to the start says what closing the path says."""
    kept, start = [], None
    for place, (kind, numbers) in enumerate(drawn):
        start = numbers if kind == "M" else start
        closes = place + 1 < len(drawn) and drawn[place + 1][0] == "Z"
        if kind == "L" and closes and numbers == pytest.approx(start, abs=1e-6):
            continue
        kept.append((kind, numbers))
    return kept


@given(st.lists(st.tuples(places, places, st.lists(pieces, max_size=6)), min_size=1, max_size=3))
@settings(max_examples=150, deadline=None)
def test_a_path_has_the_same_points(parts):
    data = ""
    for x, y, rest in parts:
        data += f"M {x} {y} "
        for command, numbers in rest:
            data += " ".join([command.lower() if command == "Z" else command, *numbers, ""])
            if command == "Z":
                break
    short = drawings.path(data)
    assert len(short) <= len(data)
    expected, found = without_closing_lines(points(data)), without_closing_lines(points(short))
    assert [kind for kind, _ in found] == [kind for kind, _ in expected]
    for (_, ours), (_, theirs) in zip(found, expected, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("data", ["m 1 2 l 3 4", "M 1 2 A 3 3 0 0 1 4 5", "M 1 2 z 3 4"])
def test_what_matplotlib_does_not_write_stays(data):
    assert drawings.path(data) == data


def test_what_paints_nothing_goes():
    drawing = (
        '<svg><!-- words --><g><g id="a"><path d="M 0 0 L 1 0 z" style="fill: none"/></g></g>'
        '<defs><path id="m0123456789" d="M 0 0 L 0 1" style="fill: none"/></defs></svg>'
    )
    assert drawings.shortened(drawing) == (
        '<svg><g id="a"></g>'
        '<defs><path id="m0123456789" d="M0 0V1" style="fill:none"/></defs></svg>'
    )


def test_a_line_of_the_group_around_a_path_is_painted():
    drawing = '<svg><g style="stroke:red"><path d="M0 0V1" style="fill:none"/></g></svg>'
    assert 'd="M0 0V1"' in drawings.shortened(drawing)


def test_what_a_group_is_called_stays_with_it():
    drawing = "<svg><g><title>one</title><text>a</text></g></svg>"
    assert drawings.shortened(drawing) == drawing


def test_neighbors_share_a_style_and_a_clip():
    cells = "".join(
        f'<path d="M0 {row}H1" clip-path="url(#c)" style="fill: red; fill-opacity: 0.{row}"/>'
        for row in (1, 2)
    )
    assert drawings.shortened(f"<svg>{cells}</svg>") == (
        '<svg><g clip-path="url(#c)" style="fill:red">'
        '<path d="M0 1H1" style="fill-opacity:.1"/>'
        '<path d="M0 2H1" style="fill-opacity:.2"/></g></svg>'
    )


def test_the_opacity_of_one_is_not_that_of_a_group():
    cells = '<path d="M0 1H1" style="opacity:.5"/>' * 2
    assert drawings.shortened(f"<svg>{cells}</svg>") == f"<svg>{cells}</svg>"


def test_a_drawing_is_shortened_once():
    figure = Figure(figsize=(3, 2))
    axes = figure.subplots(1, 2)
    axes[0].plot([0.1, 0.5, 0.9], [0.3, 0.1, 0.2])
    axes[1].pcolormesh([[1, 2], [3, 4]])
    written = StringIO()
    figure.savefig(written, format="svg")
    drawing = written.getvalue()[written.getvalue().index("<svg") :].strip()
    short = drawings.shortened(drawing)
    assert len(short) < 0.8 * len(drawing)
    assert drawings.shortened(short) == short
    names = drawings.names_in(short)
    assert names
    assert not set(names) & set(re.findall(r"[\w]+", drawings.shortened(short, names)))
