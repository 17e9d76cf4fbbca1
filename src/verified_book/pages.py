"""Checks each page after it was read and executed, and reports all failures together."""

from dataclasses import replace

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from verified_book import accept, claims, expected, records, style
from verified_book.notebook_cells import Cell, cells_of, execution_error, unfinished
from verified_book.records import Failure, record_of

logger = logging.getLogger(__name__)


def check_page(app: Sphinx, doctree: nodes.document) -> None:
    """Holds every output and every claim of a page against what the page says."""
    claims.remember_statements(doctree)
    if app.config.nb_execution_mode == "off":
        expected.remove_markers(doctree)
        claims.leave_open(doctree)
        return
    record = record_of(app.env)
    cells = cells_of(app, doctree)
    proofs = claims.proofs_of(doctree, cells)
    claim_of = {cell.index: proof.claim.id for proof in proofs for cell in proof.cells}

    failures = _time_limit(app, cells) + _noise(cells)
    found, record.edits, checked = expected.check(app, doctree, cells)
    record.outputs_checked = len(checked)
    attributed = [
        replace(failure, claim=claim_of.get(cell.index) if cell else None)
        for cell, failure in failures + found
    ]
    record.failures += attributed
    broken = {failure.claim for failure in attributed if failure.claim and failure.refutes}
    not_run = [cell.index for cell in unfinished(app, cells)]
    broken |= {claim_of[index] for index in not_run if index in claim_of}
    record.failures += claims.settle(app, proofs, checked, broken)
    style.mark_evidence(cells)


def _time_limit(app: Sphinx, cells: list[Cell]) -> list[tuple[Cell | None, Failure]]:
    """The cell that ran past its limit."""
    stopped = unfinished(app, cells)
    if not stopped or stopped[0].errors:  # an error is reported as one
        return []
    cell, error = stopped[0], execution_error(app, app.env.docname)
    limit = app.config.nb_execution_timeout
    if error == "CellTimeoutError":
        message = f"the cell ran past its time limit of {limit} seconds; no later cell has run"
        remedy = "Make the cell faster, or raise `execute.timeout` in _config.yml."
    else:
        message = f"{error} in this cell or the one after it; no later cell has run"
        remedy = "Run the page as a notebook to see more; a kernel may die of too little memory."
    return [(cell, Failure(cell.source, cell.line, message, remedy))]


def _noise(cells: list[Cell]) -> list[tuple[Cell | None, Failure]]:
    """What no reader should find on a page unless its author meant it: tracebacks and stderr."""
    found: list[tuple[Cell | None, Failure]] = []
    for cell in cells:
        if cell.errors and "raises-exception" not in cell.tags:
            found += [
                (
                    cell,
                    Failure(
                        cell.source,
                        cell.line,
                        f"the cell raised an error\n{traceback}",
                        "Mend the cell or the code that it calls; "
                        "tag it raises-exception if the reader shall see the error.",
                        refutes=True,
                    ),
                )
                for traceback in cell.errors
            ]
        if cell.ran and not cell.errors and "raises-exception" in cell.tags:
            message = "the cell is tagged raises-exception, but raised nothing"
            remedy = "Mend the cell, or remove the tag."
            failure = Failure(cell.source, cell.line, message, remedy, refutes=True)
            found.append((cell, failure))
        if cell.stderr and "allow-stderr" not in cell.tags:
            failure = Failure(
                cell.source,
                cell.line,
                f"the cell wrote to stderr\n{cell.stderr.rstrip()}",
                "Silence its cause; tag the cell allow-stderr if the reader shall see it.",
            )
            found.append((cell, failure))
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
    accept.rewrite(env)
    pages = records.records(env)
    failures = [failure for page in pages.values() for failure in page.failures]
    failures += claims.contradictions(env)
    failures.sort(key=lambda failure: (failure.source, failure.line))
    for failure in failures:
        place = "{} no longer holds: " if failure.refutes else "in the proof of {}: "
        logger.error(
            "%s%s\n  Remedy: %s",
            place.format(f"claim {failure.claim}") if failure.claim else "",
            failure.message,
            failure.remedy,
            location=f"{failure.source}:{failure.line}",
            type="verified_book",
        )
    if failures:
        broken = sorted({f.claim for f in failures if f.claim and f.refutes})
        suffix = f"; claims that no longer hold: {', '.join(broken)}" if broken else ""
        logger.error("%d failed check(s) in the book%s", len(failures), suffix)
    else:
        checked = sum(page.outputs_checked for page in pages.values())
        settled = sum(not claim.broken for claim in records.all_claims(env))
        logger.info("verified_book: %d outputs as expected, %d claims settled", checked, settled)
    env.verified_book_failed = bool(failures)  # type: ignore[attr-defined]  # read when it finishes
    return []


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Writes the site all the same, so that its author can look at it, but fails the build."""
    if exception is None and getattr(app.env, "verified_book_failed", False):
        app.statuscode = app.statuscode or 1


def setup(app: Sphinx) -> None:
    """Hooks the checks into the build."""
    records.setup(app)
    app.connect("doctree-read", check_page, priority=500)
    app.connect("env-get-outdated", failed_pages)
    app.connect("env-updated", report)
    app.connect("build-finished", finish)
