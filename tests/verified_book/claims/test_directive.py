"""What a claim is called, and what it says in words."""

from docutils import nodes

from verified_book.claims.claim import Claim
from verified_book.claims.directive import plain_text


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


def test_the_anchor_and_the_title_of_a_claim():
    claim = Claim("A1", "book", "holds", "So.", [], "page", "page.md", 1)
    assert (claim.anchor, claim.title) == ("claim-a1", "claim A1")
