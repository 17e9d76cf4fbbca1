"""Sphinx extension: the directive `note-lines` restates a note, beside what became of each line.

Its argument is one of the configured notes. Each line of its body is the id of a claim, a colon,
and what the note says, restated; a line that begins with a space continues the one above:

    A1: The mean is taken over all features.
    A2: The variance is the one that divides by n - 1,
        not the other.

A book that has such lines for a note has one for each claim of that note.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from docutils import nodes
from docutils.statemachine import StringList
from myst_parser.mocking import MockStateMachine
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode
from sphinx.util.typing import ExtensionMetadata

from book_site import __version__
from verified_book.claims.claim import Claim
from verified_book.claims.domain import ClaimsDomain, claims_domain
from verified_book.claims.tables import copied, make_table, verdict
from verified_book.directives import CheckedDirective
from verified_book.outputs.pages import Report
from verified_book.records import Failure, follow_pages, record_of
from verified_book.static_files import offer_static_files

_LINE = re.compile(r"(?P<claim>[^\s:]+):\s+(?P<text>\S.*)")


@dataclass(frozen=True)
class NoteLine:
    """A line of a note, restated on the page that goes through the note."""

    note: str
    claim: str
    source: str
    line: int


def lines_of(env: BuildEnvironment) -> dict[str, list[NoteLine]]:
    """The lines on each page that goes through a note."""
    if not hasattr(env, "book_site_note_lines"):
        env.book_site_note_lines = {}  # type: ignore[attr-defined]  # Sphinx's way to extend it
    return env.book_site_note_lines  # type: ignore[attr-defined]  # likewise


class note_lines(nodes.General, nodes.Element):  # noqa: N801  # docutils names its nodes so
    """The place of the table; its children are the restated lines, one for each row."""


class NoteLinesDirective(CheckedDirective):
    """Restates what a note says; the verdicts are filled in when the page is written."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Leaves the lines, each with the id of its claim."""
        self.check_options()
        note = " ".join("".join(self.arguments).split())
        if note not in self.config.verified_book_notes:
            known = ", ".join(self.config.verified_book_notes) or "none, in verified_book_notes"
            self.fail(f"note-lines: unknown note {note!r}", f"The notes are: {known}.")
            return []
        place = note_lines("")
        claims_domain(self.env).shown.add(self.env.docname)
        for number, lines in self._lines():
            source, place_of_line = self._place(number)
            found = _LINE.match(" ".join(line.strip() for line in lines))
            if not found:
                message = f"note-lines: {lines[0]!r} is no line of a note"
                remedy = "Write the id of a claim, a colon, and what the note says."
                record_of(self.env).failures.append(Failure(source, place_of_line, message, remedy))
                continue
            line = NoteLine(note, found["claim"], source, place_of_line)
            lines_of(self.env).setdefault(self.env.docname, []).append(line)
            paragraph = nodes.paragraph("", claim=found["claim"])
            inside = nodes.container()
            text = StringList([found["text"]], items=[(source, line.line)])
            self.state.nested_parse(text, self.content_offset + number, inside)
            for each in inside.findall(nodes.paragraph):
                paragraph.extend(each.children)
            place += paragraph
        return [place]

    def _place(self, number: int) -> tuple[str, int]:
        """The file and the line, from 1, of a line of the body."""
        if isinstance(self.state_machine, MockStateMachine):  # MyST's, which counts in the body
            source, line = self.get_source_info()
            return source, line + self.content_offset + number + 1
        source, offset = self.content.info(number)
        return source, (offset or 0) + 1

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Each line with those that continue it, and its number."""
        lines: list[str] = []
        first = 0
        for number, line in enumerate([*self.content, ""]):
            if line.startswith(" ") and lines:
                lines.append(line)
                continue
            if lines:
                yield first, lines
            lines, first = [line] if line.strip() else [], number


class FillNoteLines(SphinxPostTransform):
    """Puts what became of each line beside it."""

    default_priority = 3

    def run(self, **kwargs: object) -> None:
        """Fills each place of a page that is about to be written."""
        claims = {claim.id: claim for claim in claims_domain(self.env).all_claims()}
        for place in list(self.document.findall(note_lines)):
            rows = [
                [line.deepcopy(), self._settled(claims[line["claim"]])]
                for line in place.findall(nodes.paragraph)
                if line.get("claim") in claims
            ]
            table = make_table(["what the note says", "what is true"], rows, "note-lines")
            place.replace_self(table)

    def _settled(self, claim: Claim) -> nodes.Element:
        """The verdict and the statement of a claim, with links to it and to its chapter."""
        words = [claim.id]
        if claim.page != self.env.docname:
            words.append(self.env.titles[claim.page].astext())
        link = nodes.inline("", ", ".join(words))
        to_claim = make_refnode(
            self.app.builder, self.env.docname, claim.page, claim.anchor, link, claim.text
        )
        head = nodes.paragraph("", "", verdict(claim), nodes.Text(" "), to_claim)
        return nodes.container("", head, *copied(claim.statement, self.env.docname).children)


def contradictions(lines: list[NoteLine], claims: Iterable[Claim]) -> Iterator[Failure]:
    """A line of a claim that the note does not have, or has had; a claim that has no line."""
    of_note = {claim.id: claim.note for claim in claims}
    counts = Counter(line.claim for line in lines)
    for line in lines:
        if of_note.get(line.claim) != line.note:
            wanted = ", ".join(sorted(i for i, note in of_note.items() if note == line.note))
            message = f"note-lines: {line.note} has no claim {line.claim}"
            yield Failure(line.source, line.line, message, f"Its claims are: {wanted or 'none'}.")
        elif counts[line.claim] > 1:
            message = f"note-lines: {line.claim} has {counts[line.claim]} lines"
            yield Failure(line.source, line.line, message, "Leave one of them.")
    for note in {line.note: line for line in lines}.values():
        missing = [claim.id for claim in claims if claim.note == note.note and not counts[claim.id]]
        if missing:
            message = f"note-lines: no line for {', '.join(missing)} of {note.note}"
            yield Failure(note.source, note.line, message, "Say what the note states there.")


def report(app: Sphinx, env: BuildEnvironment, found: Report) -> None:
    """Adds what only the whole book can show."""
    if not env.found_docs - env.all_docs.keys():  # or `verified_book check` has read some pages
        lines = [line for of_page in lines_of(env).values() for line in of_page]
        found.failures += contradictions(lines, claims_domain(env).all_claims())


def setup(app: Sphinx) -> ExtensionMetadata:
    """Registers the directive by both of its names."""
    app.setup_extension("verified_book.claims")
    app.add_node(note_lines)
    app.add_directive("note-lines", NoteLinesDirective)
    app.add_directive_to_domain(ClaimsDomain.name, "note-lines", NoteLinesDirective)
    app.add_post_transform(FillNoteLines)
    app.connect("verified-book-report", report)
    follow_pages(app, lines_of)
    offer_static_files(app, __file__)
    app.add_css_file("book_site_note_lines.css")
    return {
        "version": __version__,
        "env_version": 1,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
