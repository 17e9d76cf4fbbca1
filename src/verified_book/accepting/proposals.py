"""Takes the edits that a page which was read asks for, in place of the failures that they mend."""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from verified_book.accepting import mode, reruns
from verified_book.outputs.pages import PageCheck
from verified_book.outputs.source import as_parsed
from verified_book.records import FileAsRead, record_of

_FILE = "verified_book_file"


def remember(app: Sphinx, docname: str, content: list[str]) -> None:
    """Keeps the file that a page is parsed from."""
    data = Path(app.env.doc2path(docname)).read_bytes()
    as_in_file = as_parsed(app, data) == content[0]  # another extension may have rewritten it
    app.env.temp_data[_FILE] = FileAsRead(data, as_in_file)


def take(app: Sphinx, doctree: nodes.document, check: PageCheck) -> None:
    """Makes the edits of a page pending; a block that will be written counts as one that holds."""
    edits = check.edits
    if mode.is_twice() and (edits or check.checked):
        edits = reruns.masked(app, check.cells, edits, lambda again: check.compare(again).edits)
    for edit in edits:
        if edit.mends in check.failures:
            check.failures.remove(edit.mends)
        check.checked.add(edit.cell)
        check.words[edit.cell] = edit.words
    if edits:
        record = record_of(app.env)
        record.edits, record.file = edits, app.env.temp_data[_FILE]
