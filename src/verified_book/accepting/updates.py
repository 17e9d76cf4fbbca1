"""Carries out the pending edits of a build, page by page."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from myst_nb.core.read import create_nb_reader
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from verified_book.accepting import files, mode, nondeterminism
from verified_book.accepting.changes import Change, Language, apply, change_for, locate, moves
from verified_book.accepting.markdown_spans import Markdown
from verified_book.accepting.rst_spans import Rst
from verified_book.accepting.spans import BY_HAND, Refusal, Span, split
from verified_book.records import Block, Edit, Failure, PageRecord, Unchecked, records

logger = logging.getLogger(__name__)

DRY_RUN = Refusal("this is a dry run", "Run it again, not dry, to write the block.")

_Place = TypeVar("_Place", Failure, Unchecked, Block)
_CELL_OF_NO_TEXT = re.compile(r":cell \d+$")


def rewrite(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Writes the pending edits of all pages, or shows them; what is refused stays a failure."""
    warnings: list[tuple[str, str]] = []
    for docname, record in sorted(records(env).items()):
        if record.edits:
            update = _Update(app, Path(env.doc2path(docname)), record)
            update.carry_out()
            warnings += update.warnings
        record.edits, record.file = [], None
    for location, message in warnings:  # only now: a warning may end the build
        logger.warning(message, location=location, type="verified_book", subtype="volatile")
    return []


class _Update:
    """The edits of one page.

    Attributes:
        refused: Those that are not carried out, each with the reason.
        warnings: Places of what was written and will differ next time.
        moves: Lines of the page as it was, and by how much what is below them has moved.
    """

    def __init__(self, app: Sphinx, path: Path, record: PageRecord) -> None:
        self.app, self.path, self.record = app, path, record
        self.refused: dict[Edit, Refusal] = {}
        self.warnings: list[tuple[str, str]] = []
        self.moves: list[tuple[int, int]] = []

    def carry_out(self) -> None:
        """Writes all edits at once, or shows them."""
        try:
            self._write()
        except Exception as error:  # of a parser too: where it fails, nothing is certain
            self._refuse(self.record.edits, error)
        record = self.record
        record.failures[:] = map(self._moved, record.failures)
        record.unchecked[:] = map(self._moved, record.unchecked)
        record.blocks[:] = map(self._moved, record.blocks)
        for edit, refusal in self.refused.items():
            mends = self._moved(edit.mends)
            name = mends.source.removeprefix(f"{Path(self.app.srcdir).as_posix()}/")
            said = f"{mends.message}\nnot accepted: {name}, line {mends.line}: {refusal.reason}"
            record.failures.append(replace(mends, message=said, remedy=refusal.remedy))

    def _write(self) -> None:
        as_read = self.record.file
        if as_read is None or not as_read.as_in_file:
            raise Refusal("an extension has rewritten the page before it was parsed", BY_HAND)
        page = files.decode(as_read.data, self.app.config.source_encoding)
        language = self._language(page.text)
        spans = language.spans(page.text)
        edits = self._located(page.text, spans, language)
        new, changes = self._applied(page, spans, self._changes(edits, language), edits, language)
        if mode.is_dry():
            self._show(page.text, new)
            self._refuse(self.record.edits, DRY_RUN)
        elif changes and files.replace(self.path, as_read.data, page.encode(new)):
            count = len(changes)
            logger.info("verified_book: rewrote %d expected block(s) in %s", count, self.path)
            self.moves = moves(spans, changes, language.spans(new))
            self._warn(changes, edits)

    def _refuse(self, edits: Iterable[Edit], error: Exception) -> None:
        """Notes why edits are not carried out, but for those of which that is known."""
        if not isinstance(error, Refusal):
            logger.debug("verified_book: %s", error, exc_info=True)
            said = f"{type(error).__name__}: {error}".partition("\n")[0]
            error = Refusal(f"it could not be read as it was parsed ({said})", BY_HAND)
        for edit in edits:
            self.refused.setdefault(edit, error)

    def _is_here(self, source: str) -> bool:
        return Path(source).resolve() == self.path.resolve()

    def _moved(self, place: _Place) -> _Place:
        """Something with a place, where it stands now."""
        if not self.moves or not self._is_here(place.source):
            return place
        below = sum(lines for line, lines in self.moves if place.line > line)
        return replace(place, line=place.line + below)

    def _language(self, text: str) -> Language:
        """The language of the page."""
        app, name = self.app, self.path.name
        kinds = [kind for end, kind in app.config.source_suffix.items() if name.endswith(end)]
        if kinds[:1] == ["restructuredtext"]:  # as Sphinx chooses
            return Rst()
        config = app.env.myst_config  # type: ignore[attr-defined]  # MyST adds it
        nb_config = app.env.mystnb_config  # type: ignore[attr-defined]  # MyST-NB adds it
        reader = create_nb_reader(str(self.path), config, nb_config, text)
        if reader is None or reader.read_fmt is None:
            raise Refusal(
                f"accept writes MyST Markdown and reStructuredText, and this is {self.path.suffix}",
                f"Convert the page with `jupytext --to md:myst {name}`, or write it by hand.",
            )
        return Markdown.of_page(text, reader.md_config, self.path)

    def _located(self, text: str, spans: list[Span], language: Language) -> dict[int, Edit]:
        """The edits by the span that they are about; those that are about none are refused."""
        lines, found = split(text), dict[int, Edit]()
        for edit in self.record.edits:
            try:
                if not self._is_here(_CELL_OF_NO_TEXT.sub("", edit.source)):
                    where = "a docstring" if ":docstring of " in edit.source else "another file"
                    raise Refusal(f"it stands in {where}, and accept writes pages alone", BY_HAND)
                index = locate(edit, lines, spans, language)
                if index in found:
                    raise Refusal("the page shows the cell more than once", BY_HAND)
            except Refusal as refusal:
                self._refuse([edit], refusal)
            else:
                found[index] = edit
        return found

    def _changes(self, edits: dict[int, Edit], language: Language) -> dict[int, Change]:
        changes = {}
        for index, edit in edits.items():
            try:
                changes[index] = change_for(edit, language)
            except Refusal as refusal:
                self._refuse([edit], refusal)
        return changes

    def _applied(
        self,
        page: files.Encoded,
        spans: list[Span],
        changes: dict[int, Change],
        edits: dict[int, Edit],
        language: Language,
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
                    self._refuse([edits[index]], refusal)
                else:
                    good[index] = change
            return attempt(good), good

    def _show(self, old: str, new: str) -> None:
        """Prints what would be written, as a patch."""
        before, after = ([line.rstrip("\r\n") for line in split(text)] for text in (old, new))
        name = str(self.path)
        for line in difflib.unified_diff(before, after, name, name, lineterm=""):
            logger.info("%s", line, color=None)

    def _warn(self, changes: dict[int, Change], edits: dict[int, Edit]) -> None:
        names, remedy = nondeterminism.folders(self.app.srcdir), ""
        if not mode.is_twice():
            command = f"{self.app.config.verified_book_accept_command} --twice"
            remedy = f"\n  Remedy: Write `...` for it, as `{command}` does for what moves."
        for index, change in changes.items():
            mends = self._moved(edits[index].mends)
            laid_out = edits[index].displayed
            for line in change.new_lines:
                for kind in nondeterminism.kinds_in(line, names, displayed=laid_out):
                    text = f"verified_book: {kind} was accepted, and will differ next time: {line}"
                    self.warnings.append((f"{mends.source}:{mends.line}", text + remedy))
