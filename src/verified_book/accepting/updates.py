"""Carries out the pending edits of a build, file by file."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from myst_nb.core.read import create_nb_reader
from sphinx.application import Sphinx
from sphinx.util import logging

from verified_book.accepting import files, is_twice, nondeterminism
from verified_book.accepting.changes import Change, SureOf, apply, change_for, locate, moves
from verified_book.accepting.markdown_spans import JupytextMarkdown, Markdown
from verified_book.accepting.rst_spans import Rst
from verified_book.accepting.spans import BY_HAND, Format, Refusal, Span, ending, parsed, split
from verified_book.outputs import jupytext_pages
from verified_book.records import Block, Edit, Failure, FileAsRead, PageRecord, Unchecked

logger = logging.getLogger(__name__)

DRY_RUN = Refusal("this is a dry run", "Run it again, not dry, to write the block.")

_Place = TypeVar("_Place", Failure, Unchecked, Block)
_CELL_OF_NO_TEXT = re.compile(r"(.*):cell \d+")


@dataclass(frozen=True)
class _Request:
    """An edit, and the page that asks for it."""

    page: str
    record: PageRecord
    edit: Edit


@dataclass(frozen=True)
class _Refused:
    """An edit that is not carried out."""

    request: _Request
    refusal: Refusal


def carry_out(app: Sphinx, pages: dict[str, PageRecord], dry: bool) -> None:
    """Writes the pending edits of all pages, or shows them; what is refused stays a failure."""
    by_file: dict[Path, list[_Request]] = {}
    for page, record in pages.items():
        for edit in record.edits:
            by_file.setdefault(_file_of(edit), []).append(_Request(page, record, edit))
    if not dry:
        folders = {Path(app.env.doc2path(page)).resolve().parent for page in app.env.found_docs}
        for folder in folders | {path.parent for path in by_file}:
            files.remove_leftovers(folder)
    warnings: list[tuple[str, str]] = []
    for path, requests in sorted(by_file.items()):
        work = _File(app, pages, path, requests)
        work.carry_out(dry)
        for record in pages.values():
            work.move(record)
        warnings += work.warnings
        for refused in work.refused:
            _refuse(app, work, refused)
    for record in pages.values():
        record.edits, record.files = [], {}
    for location, message in warnings:  # only now: a warning may end the build
        logger.warning(message, location=location, type="verified_book", subtype="volatile")


def _file_of(edit: Edit) -> Path:
    found = _CELL_OF_NO_TEXT.fullmatch(edit.source)
    return Path(found[1] if found else edit.source).resolve()


def _refuse(app: Sphinx, work: "_File", refused: _Refused) -> None:
    """Lets the failure stay that an edit should have mended."""
    mends, refusal = work.moved(refused.request.edit.mends), refused.refusal
    name = mends.source.removeprefix(f"{Path(app.srcdir).as_posix()}/")
    said = f"{mends.message}\nnot accepted: {name}, line {mends.line}: {refusal.reason}"
    failure = replace(mends, message=said, remedy=refusal.remedy)
    refused.request.record.failures.append(failure)


class _File:
    """The edits of one file.

    Attributes:
        refused: Those that are not carried out.
        warnings: Places of what was written and will differ next time.
        moves: Lines of the file as it was, and by how much what is below them has moved.
    """

    def __init__(
        self, app: Sphinx, pages: dict[str, PageRecord], path: Path, requests: list[_Request]
    ) -> None:
        self.app, self.pages, self.path, self.requests = app, pages, path, requests
        self.refused: list[_Refused] = []
        self.warnings: list[tuple[str, str]] = []
        self.moves: list[tuple[int, int]] = []

    def carry_out(self, dry: bool) -> None:
        """Writes all edits at once, or shows them."""
        try:
            as_read = self._as_read()
            page = files.decode(as_read.data, self.app.config.source_encoding)
            language, sure_of = self._language(page.text)
            spans = language.spans(page.text)
            groups = self._groups(page.text, spans, sure_of)
            changes = self._changes(groups, language)
            new, changes = self._applied(page, spans, changes, groups, language)
        except Exception as error:  # of a parser too: where it fails, nothing is certain
            self._refuse(self._left(), error)
            return
        if dry:
            self._show(page.text, new)
            self._refuse(self._left(), DRY_RUN)
            return
        if not changes:
            return
        try:
            written = files.replace(self.path, as_read.data, page.encode(new))
        except Refusal as refusal:
            self._refuse(self._left(), refusal)
            return
        if written:
            count = len(changes)
            logger.info("verified_book: rewrote %d expected block(s) in %s", count, self.path)
            self.moves = moves(spans, changes, language.spans(new))
            self._warn(changes, groups)

    def moved(self, place: _Place) -> _Place:
        """Something with a place, where it stands now."""
        if not self.moves or Path(place.source).resolve() != self.path:
            return place
        below = sum(lines for line, lines in self.moves if place.line > line)
        return replace(place, line=place.line + below)

    def move(self, record: PageRecord) -> None:
        """Gives what is known of a page the lines at which it stands now."""
        if self.moves:
            record.failures[:] = map(self.moved, record.failures)
            record.unchecked[:] = map(self.moved, record.unchecked)
            record.blocks[:] = map(self.moved, record.blocks)

    def _as_read(self) -> FileAsRead:
        """What all pages have read in it."""
        read = [request.record.files.get(str(self.path)) for request in self.requests]
        first = read[0]
        if first is None or None in read:
            where = "a docstring" if ":docstring of " in self.path.name else "no file of the book"
            raise Refusal(f"it stands in {where}, and accept writes pages alone", BY_HAND)
        if any(found and found.data != first.data for found in read):
            reason = "it has been changed while the book was read"
            raise Refusal(reason, "Run the command again.")
        if not all(found and found.as_in_file for found in read):
            raise Refusal("an extension has rewritten the page before it was parsed", BY_HAND)
        return first

    def _language(self, text: str) -> tuple[Format, SureOf]:
        """The language of the pages that it is a part of, and what is sure of it."""
        pages = {request.page: request for request in self.requests}
        found = [self._language_of(request, text) for request in pages.values()]
        if len({(type(language), sure_of) for language, sure_of in found}) > 1:
            raise Refusal("pages of different languages include it", BY_HAND)
        return found[0]

    def _language_of(self, request: _Request, text: str) -> tuple[Format, SureOf]:
        app, page = self.app, Path(self.app.env.doc2path(request.page))
        kinds = [kind for end, kind in app.config.source_suffix.items() if page.name.endswith(end)]
        if kinds[:1] == ["restructuredtext"]:  # as Sphinx chooses
            return Rst(), "lines"
        config = app.env.myst_config  # type: ignore[attr-defined]  # MyST adds it
        nb_config = app.env.mystnb_config  # type: ignore[attr-defined]  # MyST-NB adds it
        is_page = page.resolve() == self.path
        if not is_page:
            read = request.record.files[str(page.resolve())]
            text = files.decode(read.data, app.config.source_encoding).text
        reader = create_nb_reader(str(page), config, nb_config, text)
        sure_of: SureOf = "cells" if is_page else "texts"
        if reader is not None and reader.read_fmt is None:
            plain = parsed(text)
            if "{code-cell}" in plain and jupytext_pages.is_read_so(reader.read(plain), plain):
                return JupytextMarkdown.of_page(text, reader.md_config, page), sure_of
        if reader is None or reader.read_fmt is None:
            raise Refusal(
                f"accept writes MyST Markdown and reStructuredText, and this is {page.suffix}",
                f"Convert the page with `jupytext --to md:myst {page.name}`, or write it by hand.",
            )
        language = Markdown.of_page(text, reader.md_config, page)
        return language, sure_of

    def _groups(self, text: str, spans: list[Span], sure_of: SureOf) -> dict[int, list[_Request]]:
        """The edits by the span that they are about; those that are about none are refused."""
        lines, groups = split(text), dict[int, list[_Request]]()
        for request in self.requests:
            as_read = request.record.files[str(self.path)]
            try:
                index = locate(request.edit, lines, spans, as_read, sure_of)
                self._check_elsewhere(request.edit)
            except Refusal as refusal:
                self._refuse([request], refusal)
            else:
                groups.setdefault(index, []).append(request)
        return groups

    def _check_elsewhere(self, edit: Edit) -> None:
        """Refuses an edit of what is included somewhere else too, and agrees there."""
        for page, record in self.pages.items():
            for source, old, code in record.settled:
                if (old, code) == (edit.old, edit.code) and Path(source) == self.path:
                    reason = f"page {page} includes it too, and agrees with it as it is"
                    raise Refusal(reason, "Let the cell print the same everywhere.")

    def _changes(self, groups: dict[int, list[_Request]], language: Format) -> dict[int, Change]:
        changes = {}
        for index, requests in groups.items():
            try:
                changes[index] = change_for(index, [r.edit for r in requests], language)
            except Refusal as refusal:
                names = " and ".join(sorted({request.page for request in requests}))
                if len(requests) > 1:
                    refusal = Refusal(f"{refusal.reason} (in {names})", refusal.remedy)
                self._refuse(requests, refusal)
        return changes

    def _applied(
        self,
        page: files.Encoded,
        spans: list[Span],
        changes: dict[int, Change],
        groups: dict[int, list[_Request]],
        language: Format,
    ) -> tuple[str, dict[int, Change]]:
        """The new text, with all changes that leave the rest of the page as it was."""

        def attempt(some: dict[int, Change]) -> str:
            text = apply(page.text, spans, some, language)
            page.encode(text)
            return text

        try:
            return attempt(changes), changes
        except Refusal:
            good = {}
            for index, change in changes.items():
                try:
                    attempt({index: change})
                except Refusal as refusal:
                    self._refuse(groups[index], refusal)
                else:
                    good[index] = change
            return attempt(good), good

    def _refuse(self, requests: Iterable[_Request], error: Exception) -> None:
        if not isinstance(error, Refusal):
            logger.debug("verified_book: %s", error, exc_info=True)
            said = f"{type(error).__name__}: {error}".partition("\n")[0]
            error = Refusal(f"it could not be read as it was parsed ({said})", BY_HAND)
        self.refused += [_Refused(request, error) for request in requests]

    def _left(self) -> list[_Request]:
        """The edits that have not been refused."""
        gone = {id(refused.request) for refused in self.refused}
        return [request for request in self.requests if id(request) not in gone]

    def _show(self, old: str, new: str) -> None:
        """Prints what would be written, as a patch."""
        name = str(self.path)
        before, after = (
            [line[: len(line) - len(ending(line))] for line in split(text)] for text in (old, new)
        )
        for line in difflib.unified_diff(before, after, name, name, lineterm=""):
            logger.info("%s", line, color=None)

    def _warn(self, changes: dict[int, Change], groups: dict[int, list[_Request]]) -> None:
        names, remedy = nondeterminism.folders(self.app.srcdir), ""
        if not is_twice():
            command = f"{self.app.config.verified_book_accept_command} --twice"
            remedy = f"\n  Remedy: Write `...` for it, as `{command}` does for what moves."
        for index, change in changes.items():
            mends = self.moved(groups[index][0].edit.mends)
            for line in change.new_lines:
                for kind in nondeterminism.kinds_in(line, names):
                    text = f"verified_book: {kind} was accepted, and will differ next time: {line}"
                    self.warnings.append((f"{mends.source}:{mends.line}", text + remedy))
