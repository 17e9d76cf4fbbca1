"""The source of the page that is being read, as it was when it was parsed."""

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from verified_book.records import Failure, record_of

_KEY = "verified_book_source"
# What Python takes for line breaks and Markdown, reStructuredText and editors do not.
_ODD_BREAKS = re.compile("[\v\f\x1c\x1d\x1e\x85\u2028\u2029]")


@dataclass(frozen=True)
class Source:
    """A page as it was read.

    Attributes:
        text: What was parsed; line breaks are those of Python.
        as_in_file: Whether that is what the file says: another extension may have rewritten it.
    """

    text: str
    as_in_file: bool


def digest_of(path: str | Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def remember(app: Sphinx, docname: str, content: list[str]) -> None:
    """Keeps the text that will be parsed, and the digest of the file that it comes from."""
    path = Path(app.env.doc2path(docname))
    data = path.read_bytes()
    try:
        in_file = data.decode(app.config.source_encoding, app.config.source_encoding_errors)
    except (AttributeError, LookupError):  # Sphinx has no such setting for errors
        in_file = data.decode(app.config.source_encoding, "replace")
    in_file = re.sub("\r\n?", "\n", in_file)
    app.env.temp_data[_KEY] = Source(content[0], in_file == content[0])
    record_of(app.env, docname).digests[str(path)] = hashlib.sha256(data).hexdigest()


def page_in(env: BuildEnvironment) -> Source | None:
    """The source of the page that is being read."""
    found: Source | None = env.temp_data.get(_KEY)
    return found


def of_page(app: Sphinx) -> Source | None:
    """The same, by the application."""
    return page_in(app.env)


def odd_line_breaks(app: Sphinx) -> list[Failure]:
    """Refuses characters at which MyST-NB ends a line and others do not: its cells would shift."""
    source = of_page(app)
    failures = []
    for match in _ODD_BREAKS.finditer(source.text if source else ""):
        line = source.text.count("\n", 0, match.start()) + 1 if source else 1
        name = unicodedata.name(match[0], "a control character")
        message = f"the page has a character U+{ord(match[0]):04X} ({name.lower()})"
        remedy = "Take it out, or write it as an escape: tools disagree whether it ends a line."
        failures.append(Failure(app.env.doc2path(app.env.docname), line, message, remedy))
    return failures


def setup(app: Sphinx) -> None:
    """Reads along, after every other extension."""
    app.connect("source-read", remember, priority=999)
