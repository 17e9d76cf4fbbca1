"""The form that filters the claims of an index; it shows only where its script runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from sphinx.application import Sphinx

from verified_book.claims.domain import claims_domain

SCRIPT = "verified_book_claims_filter.js"


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


def in_claims(number: int) -> str:
    """A number of claims in words.

    Examples:
        >>> in_claims(1), in_claims(20)
        ('1 claim', '20 claims')
    """
    return f"{number} claim" if number == 1 else f"{number} claims"


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


def add_script(
    app: Sphinx, pagename: str, templatename: str, context: object, doctree: object
) -> None:
    """Loads the script on the pages that show an index."""
    if pagename in claims_domain(app.env).indexes:
        app.add_js_file(SCRIPT, loading_method="defer")


def setup(app: Sphinx) -> None:
    """Registers the script."""
    app.connect("html-page-context", add_script)
