"""The source of the page that is being read, as it was when it was parsed."""

import codecs
import re
import unicodedata
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import SphinxError

from verified_book.records import Failure
from verified_book.regular import read_regular

#: Bytes of a page at most: more than any that its authors can push to a usual host.
MOST = 2**28
_WIDE = ("utf-16", "utf-32")  # in which most characters have a byte that is 0
_KEY = "verified_book_source"
#: What Python takes for line breaks and Markdown, reStructuredText and editors do not.
ODD_BREAKS = re.compile("[\v\f\x1c\x1d\x1e\x85\u2028\u2029]")


def remember(app: Sphinx, docname: str, content: list[str]) -> None:
    """Keeps the text that will be parsed."""
    app.env.temp_data[_KEY] = content[0]


def as_parsed(app: Sphinx, data: bytes) -> str:
    """What Sphinx makes of the bytes of a file."""
    text = data.decode(app.config.source_encoding, "replace")
    return re.sub("\r\n?", "\n", text)


def text_of_page(env: BuildEnvironment) -> str | None:
    """The text of the page that is being read; its line breaks are those of Python."""
    found: str | None = env.temp_data.get(_KEY)
    return found


def odd_line_breaks(app: Sphinx) -> list[Failure]:
    """Refuses characters at which MyST-NB ends a line and others do not: its cells would shift."""
    text, page = text_of_page(app.env) or "", str(app.env.doc2path(app.env.docname))
    failures = []
    for match in ODD_BREAKS.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        name = unicodedata.name(match[0], "a control character")
        message = f"the page has a character U+{ord(match[0]):04X} ({name.lower()})"
        remedy = "Take it out, or write it as an escape: tools disagree whether it ends a line."
        failures.append(Failure(page, line, message, remedy))
    return failures


class PageFileError(SphinxError):
    """A page is no text that could be read."""

    category = "Page"


def check_files(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Refuses pages that are no texts, before Sphinx waits for what a pipe never says."""
    paths = [Path(env.doc2path(docname)) for docname in docnames]
    reasons = [reason for path in paths if (reason := _why_no_text(app, path))]
    if reasons:
        raise PageFileError("\n".join(reasons))


def _why_no_text(app: Sphinx, path: Path) -> str | None:
    try:
        data = read_regular(path, most=MOST)
    except OSError as error:
        remedy = "put a page in its place, or exclude it in the configuration"
        return f"{path}: {error.strerror}. Remedy: {remedy}"
    place = data.find(b"\0")
    if place < 0 or codecs.lookup(app.config.source_encoding).name.startswith(_WIDE):
        return None
    line = data.count(b"\n", 0, place) + 1
    return f"{path}:{line}: this is no text, it has a NUL character. Remedy: mend or exclude it"


def setup(app: Sphinx) -> None:
    """Reads along, after every other extension."""
    # Once it is known which pages are read.
    app.connect("env-before-read-docs", check_files, priority=1100)
    app.connect("source-read", remember, priority=999)
