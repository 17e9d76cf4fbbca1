"""Where the part of a file begins that a page includes."""

import pytest

from verified_book.outputs.source import _is_part, _start

TEXT = "a\n\nb START c\n\td\ne END f\nb START\nlast"


@pytest.mark.parametrize(
    ("options", "part", "start"),
    [
        ({}, TEXT, 0),
        ({"start-line": 2}, TEXT[3:], 2),
        ({"start-line": -2}, "b START\nlast", 5),
        ({"start-line": 0, "end-line": 1}, "a", 0),
        ({"start-after": "START"}, " c\n        d\ne END f\nb START\nlast", 2),
        ({"start-after": "START", "end-before": "END"}, " c\n        d\ne", 2),
        ({"start-line": 3, "start-after": "START"}, "\nlast", 5),
        ({"start-after": "c\n"}, "        d\ne END f\nb START\nlast", 3),
    ],
)
def test_a_part_begins_where_it_is_asked_for(options: dict[str, object], part: str, start: int):
    assert _start(TEXT, options) == start
    assert _is_part(part, TEXT, start)
    assert not _is_part(part.replace("last", "new").replace("d", "x"), TEXT, start) or part == "a"
    assert not _is_part(part + "\nmore\nmore", TEXT, start)
