"""What a claim is called, and what it says in words."""

import pytest
from docutils import nodes

from verified_book.claims.directive import _fields, plain_text


def test_a_statement_as_plain_text():
    body = nodes.container("")
    body += nodes.paragraph(
        "",
        "",
        nodes.Text("The\n sum "),
        nodes.math("", "1 + 1"),
        nodes.strong("", "", nodes.Text(" is")),
    )
    body += nodes.math_block("", "a = b")
    assert plain_text(body) == "The sum $1 + 1$ is $a = b$"


@pytest.mark.parametrize(
    ("content", "end", "expected"),
    [
        (["So.", ":stated: Not so."], 1, [("stated", "Not so.", 1)]),
        (
            ["So.", "", ":with  a bias: one", "  and two", "", ""],
            2,
            [("with a bias", "one and two", 2)],
        ),
        (["```{note}", ":class: wide", "So.", "```"], 4, []),
        (["```{note}", ":class: wide", "```", ":stated: No."], 3, [("stated", "No.", 3)]),
    ],
)
def test_fields_stand_at_the_end_of_a_claim(content, end, expected):
    place, fields = _fields(content)
    assert place == end
    assert [(field.name, field.text, field.first) for field in fields] == expected


def test_what_happens_otherwise_belongs_to_the_condition_before_it():
    _, (first, second) = _fields([":with a:", ":otherwise: no,", "never.", ":without b: c", "", ""])
    assert (first.name, first.text, second.otherwise) == ("with a", "", None)
    assert (first.otherwise.text, first.otherwise.first) == ("no, never.", 1)
    _, (first, again) = _fields([":with a: x", ":otherwise: y", ":otherwise: z"])
    assert (first.otherwise.text, again.name) == ("y", "otherwise")
