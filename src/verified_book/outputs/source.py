"""The source of the page that is being read, as it was when it was parsed."""

import codecs
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.directives.other import Include
from sphinx.environment import BuildEnvironment
from sphinx.errors import SphinxError

from verified_book import accepting
from verified_book.records import Failure, FileAsRead, record_of
from verified_book.regular import read_regular

#: Bytes of a page at most: more than any that its authors can push to a usual host.
MOST = 2**28
_WIDE = ("utf-16", "utf-32")  # in which most characters have a byte that is 0
_KEY = "verified_book_source"
_PART = "verified_book_included_part"
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


def remember(app: Sphinx, docname: str, content: list[str]) -> None:
    """Keeps the text that will be parsed; in a build that accepts, the file that it comes from."""
    path = Path(app.env.doc2path(docname))
    data = path.read_bytes()
    as_in_file = _decoded(app, data) == content[0]
    app.env.temp_data[_KEY] = Source(content[0], as_in_file)
    if accepting.is_on():
        record = record_of(app.env, docname)
        record.files[str(path.resolve())] = FileAsRead(data, as_in_file=as_in_file)


class TracedInclude(Include):
    """Sphinx's own, which lets it be known which part of a file it includes."""

    def run(self) -> Sequence[nodes.Node]:
        """Reads the part while its options are known."""
        self.env.temp_data[_PART] = self.options
        try:
            return super().run()
        finally:
            self.env.temp_data.pop(_PART, None)


def remember_included(app: Sphinx, relative: Path, parent: str, content: list[str]) -> None:
    """Keeps a file of which the page that is being read includes a part."""
    path = Path(app.srcdir, relative).resolve()
    if not path.is_file():
        return
    data, files = path.read_bytes(), record_of(app.env).files
    text = _decoded(app, data)
    start = _start(text, app.env.temp_data.get(_PART, {}))
    known = files.get(str(path), FileAsRead(data, frozenset()))
    as_in_file = known.as_in_file and known.data == data and _is_part(content[0], text, start)
    files[str(path)] = FileAsRead(data, known.starts | {start}, as_in_file)


def _start(text: str, options: dict[str, Any]) -> int:
    """The line, from 0, at which the part that an `include` asks for begins."""
    lines = text.splitlines(keepends=True)
    part = "".join(lines[options.get("start-line") : options.get("end-line")])
    start = len(lines[: options.get("start-line")]) if options.get("start-line") else 0
    after = options.get("start-after", "")
    return start + part[: part.find(after) + len(after)].count("\n")


def _is_part(part: str, text: str, start: int) -> bool:
    """Whether a text says from a line on what was parsed, which may begin and end within a line."""
    wanted = _as_docutils_reads(part)
    found = _as_docutils_reads(text)[start : start + len(wanted)]
    whole = wanted[1:-1] == found[1:-1] and len(wanted) == len(found)
    return whole and found[0].endswith(wanted[0]) and found[-1].startswith(wanted[-1])


def _decoded(app: Sphinx, data: bytes) -> str:
    """What Sphinx makes of the bytes of a file."""
    text = data.decode(app.config.source_encoding, "replace")
    return re.sub("\r\n?", "\n", text)


def _as_docutils_reads(text: str) -> list[str]:
    return [line.expandtabs(8).rstrip() for line in text.rstrip("\n").split("\n")]


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
        page = str(app.env.doc2path(app.env.docname))
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
    if accepting.is_on():  # since Sphinx reads included files in another way where it is used
        app.connect("include-read", remember_included, priority=999)
        app.add_directive("include", TracedInclude, override=True)
