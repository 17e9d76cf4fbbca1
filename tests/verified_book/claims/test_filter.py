"""The form that filters an index, as it is written."""

from verified_book.claims.filter import Choice, form


def test_the_form_offers_what_differs_with_its_number():
    options = {"a": 'words & "more"', "b": "other words", "c": "of no claim"}
    choices = [
        Choice("note", "Note", options, ["b", "a", "b"]),
        Choice("verdict", "Verdict", {"holds": "holds"}, ["holds"] * 3),
    ]
    escaped = "words &amp; &quot;more&quot;"
    assert form(choices).split("\n") == [
        '<form class="claims-filter" role="search" aria-label="Filter the claims" '
        'autocomplete="off" hidden>',
        '<label>Words <input type="search" name="text" '
        'placeholder="statement, id, what was measured"></label>',
        '<label>Note <select name="note">',
        '<option value="" data-words="any">any (3)</option>',
        f'<option value="a" data-words="{escaped}">{escaped} (1)</option>',
        '<option value="b" data-words="other words">other words (2)</option>',
        "</select></label>",
        "<div>",
        '<output aria-live="polite">3 claims</output>',
        '<button type="reset">Show all</button>',
        "</div>",
        "</form>",
        "",
    ]
