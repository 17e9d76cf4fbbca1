"""The form that filters the claims of an index; it shows only where its script runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

from verified_book.claims.claim import Claim
from verified_book.claims.domain import claims_domain
from verified_book.claims.listing import LISTED, in_claims
from verified_book.claims.measurements import STRENGTHS, claim_strength, kind_in_words
from verified_book.claims.tables import STATES, state
from verified_book.toc_order import reading_order


class claim_row(nodes.row):  # noqa: N801  # docutils names its nodes so
    """A row that tells the filter what can be chosen by; elsewhere a row like any other."""


@dataclass(frozen=True)
class Choice:
    """What the claims of an index can be chosen by.

    Attributes:
        name: Its name, which also stands in the address of the page.
        title: What the form calls it.
        options: The values that it may have, each with its words.
        values: The value of each claim.
    """

    name: str
    title: str
    options: Mapping[str, str]
    values: Sequence[str]


def form(choices: Sequence[Choice]) -> str:
    """The form as HTML, hidden until its script shows it."""
    total = len(choices[0].values)
    fields = "\n".join(_select(each) for each in choices if len(set(each.values)) > 1)
    hint = "statement, id, what was measured"
    return f"""\
<form class="claims-filter" role="search" aria-label="Filter the claims" autocomplete="off" hidden>
<label>Words <input type="search" name="text" placeholder="{hint}"></label>
{fields}
<div>
<output aria-live="polite">{in_claims(total)}</output>
<button type="reset">Show all</button>
</div>
</form>
"""


def _select(choice: Choice) -> str:
    counts = Counter(choice.values)
    options = [("", "any", len(choice.values))]
    options += [(value, words, counts[value]) for value, words in choice.options.items()]
    listed = "\n".join(
        f'<option value="{escape(value)}" data-words="{escape(words)}">'
        f"{escape(words)} ({number})</option>"
        for value, words, number in options
        if number
    )
    return f'<label>{choice.title} <select name="{choice.name}">\n{listed}\n</select></label>'


def add_form(app: Sphinx, listing: nodes.container, claims: list[Claim]) -> None:
    """Puts the form above an index, and into its rows what each can be chosen by."""
    choices = choices_of(app, claims)
    listing.insert(0, nodes.raw("", form(choices), format="html"))
    rows = [row for body in listing.findall(nodes.tbody) for row in body.children]
    for row, *values in zip(rows, *(choice.values for choice in choices), strict=True):
        data = {choice.name: value for choice, value in zip(choices, values, strict=True)}
        row.replace_self(claim_row("", *row.children, data=data))


def choices_of(app: Sphinx, claims: list[Claim]) -> list[Choice]:
    """What the claims of an index can be chosen by."""
    notes = app.config.verified_book_notes
    pages = [page for page in reading_order(app.env) if any(c.page == page for c in claims)]
    return [
        Choice("verdict", "Verdict", STATES, [state(claim) for claim in claims]),
        Choice("note", "Note", notes, [claim.note for claim in claims]),
        Choice(
            "chapter",
            "Chapter",
            {page: app.env.titles[page].astext() for page in pages},
            [claim.page for claim in claims],
        ),
        Choice(
            "strength",
            "Strength",
            {kind: kind_in_words(kind) for kind in STRENGTHS},
            [claim_strength(claim).kind for claim in claims],
        ),
    ]


def open_row(self: HTML5Translator, node: claim_row) -> None:
    """Begins a row, with what it can be chosen by."""
    self.visit_row(node)
    data = "".join(f' data-{name}="{self.attval(value)}"' for name, value in node["data"].items())
    self.body[-1] = self.body[-1].replace("<tr", f"<tr{data}", 1)


def close_row(self: HTML5Translator, node: claim_row) -> None:
    """Ends a row."""
    self.depart_row(node)


def add_script(
    app: Sphinx, pagename: str, templatename: str, context: object, doctree: object
) -> None:
    """Loads the script on the pages that show an index."""
    if pagename in claims_domain(app.env).indexes:
        app.add_js_file("book_site_claims_index.js", loading_method="defer")


def setup(app: Sphinx) -> None:
    """Registers the form and its script."""
    app.add_node(claim_row, html=(open_row, close_row))
    app.connect(LISTED, add_form)
    app.connect("html-page-context", add_script)
