"""Checks each page after it was read and executed, and reports all failures together.

Two events let other extensions take part: `verified-book-page` with the `PageCheck` of each page
that was read, and `verified-book-report`, at which they give failures that only the whole book can
show, and sentences for the last line.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from verified_book import records
from verified_book.outputs import client, expected, source, unparsed
from verified_book.outputs.cells import Cell, cells_of, unfinished
from verified_book.outputs.front_matter import page_settings, unreadable
from verified_book.records import Edit, Failure, PageRecord, Unchecked, record_of

logger = logging.getLogger(__name__)


@dataclass
class PageCheck:
    """The check of one page, which handlers of `verified-book-page` may add to.

    Attributes:
        executed: Whether the cells of the page were run in this book's builds at all.
        edits: The rewritings of blocks that would mend some of the failures.
        checked: Indices of the cells whose output an expected block can refute.
        words: The words of the block of each cell that has one, by the cell's index.
        not_run: Indices of the cells that a page that was stopped has not run.
        compare: Compares the page's blocks with other outputs of its cells.
    """

    executed: bool
    cells: list[Cell] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    checked: set[int] = field(default_factory=set)
    words: dict[int, tuple[str, ...]] = field(default_factory=dict)
    not_run: set[int] = field(default_factory=set)
    compare: Callable[[list[Cell]], expected.Comparison] = lambda cells: expected.Comparison()


@dataclass
class Report:
    """What the build says at its end; handlers of `verified-book-report` add to it."""

    failures: list[Failure] = field(default_factory=list)
    when_green: list[str] = field(default_factory=list)
    when_red: list[str] = field(default_factory=list)


def check_page(app: Sphinx, doctree: nodes.document) -> None:
    """Holds every output of a page against what the page says."""
    markers = expected.take_markers(doctree)
    if broken := unreadable(app):
        record_of(app.env).failures = broken  # in place of one for each of its cells
        app.emit("verified-book-page", doctree, PageCheck(executed=False))
        return
    if not _executed(app):
        record_of(app.env).executed = False
        if markers and app.config.nb_execution_mode != "off":
            warn_of_skipped(app, f"{len(markers)} expected block(s) not checked")
        app.emit("verified-book-page", doctree, PageCheck(executed=False))
        return
    cells = cells_of(app, doctree)
    check = PageCheck(executed=True, cells=cells)
    check.not_run = {cell.index for cell in unfinished(app, cells)}
    check.failures = _time_limit(app, cells) + _tracebacks_and_stderr(app, cells)
    required = _requires_all(app, check)
    check.compare = partial(
        expected.compare, app, markers=markers, not_run=check.not_run, required=required
    )
    result = check.compare(cells)
    check.edits, check.checked, check.words = result.edits, result.checked, result.words
    check.failures += result.failures
    check.failures += expected.lost(app, markers)
    check.failures += unparsed.unmet_blocks(app, doctree, cells)
    if cells or markers:
        check.failures += source.odd_line_breaks(app)
    app.emit("verified-book-page", doctree, check)
    record = record_of(app.env)
    record.failures += check.failures
    record.blocks = result.blocks
    _count(record, check)


def _count(record: PageRecord, check: PageCheck) -> None:
    """Counts the outputs of a page that a block is held against, and notes the others."""
    for cell in check.cells:
        for piece in cell.shown if cell.index not in check.not_run else ():
            words = check.words.get(cell.index, ())
            if cell.index in check.checked and piece.takes_part(words):
                record.checked[piece.kind] += 1
            else:
                record.unchecked.append(Unchecked(piece.kind, cell.source, cell.line))


def warn_of_skipped(app: Sphinx, what: str) -> None:
    """Says what a page that is not executed leaves open."""
    logger.warning(
        "verified_book: %s, since the page is not executed",
        what,
        location=app.env.docname,
        type="verified_book",
        subtype="skipped",
    )


def _executed(app: Sphinx) -> bool:
    """Whether the outputs of the page that is being read are those of a run."""
    notebook = client.notebook_of_page(app)
    if notebook is None:
        return True  # it has no cells; a block on it is a mistake
    if app.config.nb_execution_mode == "off":
        return False
    return client.was_executed(app)


def _requires_all(app: Sphinx, check: PageCheck) -> bool:
    """Whether each output of the page that is being read must have a block."""
    own = page_settings(app.env, app.env.docname)
    value = own.get("require", app.config.verified_book_require)
    if value not in ("all", "marked"):
        source = str(app.env.doc2path(app.env.docname))
        message = f"verified_book_require: {value!r} is neither 'all' nor 'marked'"
        remedy = "Mend it in the configuration or in the front matter of the page."
        check.failures.append(Failure(source, 1, message, remedy))
    return value != "marked"


def _time_limit(app: Sphinx, cells: list[Cell]) -> list[Failure]:
    """The cell that ran past its limit."""
    stopped = unfinished(app, cells)
    if not stopped or stopped[0].errors:  # an error is reported as one
        return []
    cell, error = stopped[0], client.execution_error(app)
    limit = client.configuration(app).execution_timeout
    if error == "CellTimeoutError":
        message = f"the cell ran past its time limit of {limit} seconds; no later cell has run"
        remedy = "Make the cell faster, or raise `execute.timeout` in _config.yml."
    elif error == "KernelStartError":
        message = f"{client.execution_message(app)}; no cell has run"
        remedy = "Install the kernel, or name another in the front matter of the page."
    else:
        message = f"{error} in this cell or the one after it; no later cell has run"
        remedy = "Run the page as a notebook to see more; a kernel may die of too little memory."
    return [Failure(cell.source, cell.line, message, remedy, cell.index)]


def _tracebacks_and_stderr(app: Sphinx, cells: list[Cell]) -> list[Failure]:
    """What no reader should find on a page unless its author meant it: tracebacks and stderr."""
    found: list[Failure] = []

    def add(cell: Cell, message: str, remedy: str, refutes: bool = False) -> None:
        found.append(Failure(cell.source, cell.line, message, remedy, cell.index, refutes))

    for cell in cells:
        if "raises-exception" not in cell.tags:
            for traceback in cell.errors:
                add(
                    cell,
                    f"the cell raised an error\n{traceback}",
                    "Mend the cell or the code that it calls; "
                    "tag it raises-exception if the reader shall see the error.",
                    refutes=True,
                )
        seen = any(piece.kind == "stderr" for piece in cell.shown) or cell.node is None
        allowed = app.config.verified_book_allow_stderr or "allow-stderr" in cell.tags
        if cell.stderr.strip() and seen and not allowed:
            add(
                cell,
                f"the cell wrote to stderr\n{cell.stderr.rstrip()}",
                "Silence its cause; tag the cell allow-stderr if the reader shall see it.",
            )
    return found


def failed_pages(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """The pages to read again because they failed: the cause may lie outside, as a slow machine.

    What ran to its end comes from the cache.
    """
    return [name for name, record in records.records(env).items() if record.failures]


def report(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Names every failure of the book, the old ones of unchanged pages too."""
    pages = records.records(env)
    found = Report()
    app.emit("verified-book-report", env, found)
    failures = [failure for page in pages.values() for failure in page.failures] + found.failures
    for failure in sorted(failures, key=lambda failure: (failure.source, failure.line)):
        logger.error(
            "%s\n  Remedy: %s",
            failure.message,
            failure.remedy,
            location=f"{failure.source}:{failure.line}",
            type="verified_book",
            subtype="failure",
        )
    for line in coverage(pages.values(), Path(app.srcdir)):
        logger.info("verified_book: %s", line)
    if failures:
        logger.error(
            "%s",
            "; ".join([f"{len(failures)} failed check(s) in the book", *found.when_red]),
            type="verified_book",
            subtype="failed",
        )
    else:
        checked = sum(page.checked.total() for page in pages.values())
        unchecked = sum(len(page.unchecked) for page in pages.values())
        said = [f"{checked} outputs as expected", f"{unchecked} not checked", *found.when_green]
        logger.info("verified_book: %s", ", ".join(said))
    env.verified_book_failed = bool(failures)  # type: ignore[attr-defined]  # read when it finishes
    return []


def coverage(found: Iterable[PageRecord], base: Path) -> list[str]:
    """A line for each kind of output that nothing is held against, with the places of all.

    Args:
        found: The records of pages.
        base: The folder from which the places are given.
    """
    places: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for record in found:
        for output in record.unchecked:
            places[output.kind][output.source].append(output.line)
    lines = []
    for kind, by_source in sorted(places.items()):
        count = sum(map(len, by_source.values()))
        where = "; ".join(
            f"{_short(base, source)} {', '.join(map(str, numbers))}"
            for source, numbers in sorted(by_source.items())
        )
        lines.append(f"not checked: {count} {kind} ({where})")
    return lines


def _short(base: Path, source: str) -> str:
    """A page's path within a folder."""
    return source.removeprefix(f"{base.as_posix()}/")


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Writes the site all the same, so that its author can look at it, but fails the build."""
    if exception is None and getattr(app.env, "verified_book_failed", False):
        app.statuscode = app.statuscode or 1


def setup(app: Sphinx) -> None:
    """Hooks the checks into the build."""
    app.add_event("verified-book-page")
    app.add_event("verified-book-report")
    app.connect("doctree-read", check_page, priority=500)
    app.connect("env-get-outdated", failed_pages)
    app.connect("env-updated", report)
    app.connect("build-finished", finish)
