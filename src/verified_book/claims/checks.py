"""What the build says of claims: which no longer hold, which prove nothing, which contradict."""

from collections import Counter, defaultdict
from dataclasses import replace

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from verified_book.claims import proofs
from verified_book.claims.claim import Claim
from verified_book.claims.directive import remember_statements
from verified_book.claims.domain import ClaimsDomain, claims_domain
from verified_book.outputs.cells import Cell
from verified_book.outputs.pages import PageCheck, Report, warn_of_skipped
from verified_book.records import Failure, record_of, records
from verified_book.static_files import offer_static_files

logger = logging.getLogger(__name__)


def check_page(app: Sphinx, doctree: nodes.document, check: PageCheck) -> None:
    """Settles the claims of a page by what its cells did."""
    mark_evidence(check.cells)
    claims = claims_domain(app.env).claims.get(app.env.docname, [])
    if not claims:
        return
    remember_statements(doctree, claims)
    found = proofs.proofs_of(doctree, claims, check.cells)
    if not check.executed:
        proofs.leave_open(found)
        if app.config.nb_execution_mode != "off":
            warn_of_skipped(app, f"{len(claims)} claim(s) not proven")
        return
    claim_of = {cell.index: proof.claim.id for proof in found for cell in proof.cells}

    def attributed(failure: Failure) -> Failure:
        """A failure that names the claim whose proof it stands in."""
        if failure.cell not in claim_of:
            return failure
        place = "claim {} no longer holds: " if failure.refutes else "in the proof of claim {}: "
        return replace(failure, message=place.format(claim_of[failure.cell]) + failure.message)

    check.failures[:] = [attributed(failure) for failure in check.failures]
    record = record_of(app.env)  # an edit that is refused later becomes a failure
    record.edits = [replace(edit, mends=attributed(edit.mends)) for edit in record.edits]
    refuting = {failure.cell for failure in check.failures if failure.refutes}
    broken = {claim_of[cell] for cell in refuting | check.not_run if cell in claim_of}
    check.failures += proofs.settle(app, found, check.checked, broken)


def mark_evidence(cells: list[Cell]) -> None:
    """Gives the cells that end in evidence a class for its kind."""
    for cell in cells:
        if cell.node is not None and cell.evidence:
            cell.node["classes"] += ["evidence", f"evidence-{cell.evidence[-1].get('kind')}"]


def report(app: Sphinx, env: BuildEnvironment, found: Report) -> None:
    """Adds what only the whole book can show."""
    domain = claims_domain(env)
    found.failures += contradictions(app, domain)
    settled = sum(not claim.broken for claim in domain.all_claims())
    found.when_green.append(f"{settled} claims settled")
    if broken := sorted({claim.id for claim in refuted_claims(env)}):
        found.when_red.append(f"claims that no longer hold: {', '.join(broken)}")


def refuted_claims(env: BuildEnvironment) -> list[Claim]:
    """The claims that a failure of this build or of one before shows false."""
    pages = records(env)
    cells = {(name, each.cell) for name in pages for each in pages[name].failures if each.refutes}
    claims = claims_domain(env).all_claims()
    return [claim for claim in claims if cells & {(claim.page, cell) for cell in claim.cells}]


def contradictions(app: Sphinx, domain: ClaimsDomain) -> list[Failure]:
    """What stands twice, and what refers to no claim: ids, addresses, references."""
    claims = domain.all_claims()
    counts = Counter(claim.id for claim in claims)
    anchors: dict[tuple[str, str], dict[str, Claim]] = defaultdict(dict)
    failures = []
    for claim in claims:
        if claim.has_id:
            anchors[claim.page, claim.anchor].setdefault(claim.id, claim)
        others = [c for c in claims if c.id == claim.id and c is not claim]
        if claim.id and others:
            places = ", ".join(f"{other.source}:{other.line}" for other in others)
            message = f"two claims with the id {claim.id}; the other is at {places}"
            remedy = "Give one of them another id."
            failures.append(Failure(claim.source, claim.line, message, remedy))
    for (_, anchor), same in anchors.items():
        if len(same) > 1:
            first, *_, last = same.values()
            message = f"{first.title} and {last.title} have the same address, #{anchor}"
            remedy = "Give one of them an id that differs in its letters a-z and digits."
            failures.append(Failure(last.source, last.line, message, remedy))
    if app.env.found_docs - app.env.all_docs.keys():
        return failures  # `verified_book check` has read some pages only
    known = ", ".join(sorted({claim.id for claim in claims if claim.has_id}))
    false = {claim.id for claim in claims if claim.verdict == "fails"}
    unproven = {claim.id: f"{claim.source}:{claim.line}" for claim in claims if claim.broken}
    for docname, references in sorted(domain.references.items()):
        for reference in references:
            if reference.is_chip and reference.claim in unproven:
                logger.warning(
                    "a chip of %s, which is not proven in this build: see %s",
                    *(f"claim {reference.claim}", unproven[reference.claim]),
                    location=f"{reference.source}:{reference.line}",
                    type="verified_book",
                    subtype="chip",
                )
            elif reference.claim not in counts and (
                reference.is_chip or not domain.is_elsewhere(app, reference, docname)
            ):
                message = f"a reference to the claim {reference.claim}, which does not exist"
                remedy = f"The claims of the book are: {known or 'none'}."
                failures.append(Failure(reference.source, reference.line, message, remedy))
            elif reference.denies and reference.claim not in false:
                message = f"a chip denies the claim {reference.claim}, which does not fail"
                remedy = "Leave out its `not`."
                failures.append(Failure(reference.source, reference.line, message, remedy))
    return failures


def setup(app: Sphinx) -> None:
    """Takes part in the checks of :mod:`verified_book`, and gives claims their look."""
    offer_static_files(app, __file__)
    app.add_css_file("verified_book.css")
    app.connect("verified-book-page", check_page)
    app.connect("verified-book-report", report)
