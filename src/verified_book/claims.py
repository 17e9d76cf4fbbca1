"""The `claim` directive: a numbered statement, its verdict, and the cells that prove it.

The cells up to the next claim or heading are the proof. At least one of them must be able to fail:
it asserts something, it is held against an expected block, or its output carries evidence. A cell
gives evidence by an output whose metadata has the key `evidence`: a dictionary with `kind` ("equal",
"different" or any other word), `error` and `tolerance` (numbers or None), and `pattern` (the text
of the output as an expected block should have it).
"""

import ast
from collections import Counter
from dataclasses import dataclass

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from verified_book.directives import CheckedDirective
from verified_book.notebook_cells import Cell, is_cell
from verified_book.numbering import claim_number
from verified_book.records import Claim, Evidence, Failure, all_claims, record_of, records

VERDICTS = {"holds": "holds", "holds-if": "holds if", "fails": "fails"}


@dataclass(frozen=True)
class Proof:
    """A claim's box in the doctree, the claim, and the cells that prove it."""

    box: nodes.container
    claim: Claim
    cells: list[Cell]


class ClaimDirective(CheckedDirective):
    """States a claim; the cells after it prove it."""

    optional_arguments = 1
    options_known = ("note", "verdict")

    def run(self) -> list[nodes.Node]:
        """Makes the claim's box; its evidence is added when the page has been executed."""
        self.check_options()
        source, line = self.get_source_info()
        body = nodes.container(classes=["claim-body"])
        self.state.nested_parse(self.content, self.content_offset, body)
        claim = Claim(
            id=self.arguments[0] if self.arguments else "",
            note=self._choice("note", self.config.verified_book_notes),
            verdict=self._choice("verdict", VERDICTS),
            text=plain_text(body),
            statement=_copies(body),
            page=self.env.docname,
            source=source,
            line=line,
        )
        if not claim.id:
            self.fail("claim: it has no id", "Write the id after the name: {claim} A3.")
        if not claim.text:
            self.fail(f"claim {claim.id}: it states nothing", "Write the statement as its body.")
        record_of(self.env).claims.append(claim)

        verdict = VERDICTS.get(claim.verdict, claim.verdict)
        note = self.config.verified_book_notes.get(claim.note, claim.note)
        head = nodes.container(classes=["claim-head"])
        head += nodes.paragraph(
            "",
            "",
            claim_number(claim=claim.id, classes=["claim-number"]),
            nodes.inline("", f"{claim.id} · {note}", classes=["claim-note"]),
            nodes.inline("", verdict, classes=["claim-verdict"]),
        )
        box = nodes.container(
            "",
            head,
            body,
            classes=["claim", f"claim-{claim.verdict}"],
            ids=[claim.anchor],
            claim_index=len(record_of(self.env).claims) - 1,
        )
        self.set_source_info(box)
        return [box]

    def _choice(self, option: str, known: dict[str, str]) -> str:
        value = self.options.get(option)
        if value is None:
            self.fail(f"claim: option :{option}: is missing", f"Give one of {', '.join(known)}.")
        elif value not in known:
            self.fail(f"claim: unknown {option} {value!r}", f"Give one of {', '.join(known)}.")
        return value or ""


def _copies(body: nodes.Element) -> list[nodes.Node]:
    """The statement's nodes without their page, which would be stored with them."""
    copies = [node.deepcopy() for node in body.children]
    for copy in copies:
        for node in copy.findall():
            node.document = None
    return copies


def plain_text(node: nodes.Node) -> str:
    """The words of a statement on one line, with its maths between dollars."""
    parts = [
        f"${part.astext()}$" if isinstance(part.parent, nodes.math | nodes.math_block) else part
        for part in node.findall(nodes.Text)
    ]
    return " ".join("".join(parts).split())


def _is_claim(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and "claim_index" in node


def proofs_of(doctree: nodes.document, cells: list[Cell]) -> list[Proof]:
    """The claims of a page, each with the cells up to the next claim or heading."""
    by_node = {id(cell.node): cell for cell in cells if cell.node is not None}
    env = doctree.settings.env
    found = []
    for box in doctree.findall(_is_claim):
        siblings = box.parent.children  # type: ignore[union-attr]  # a box is never the root
        proof: list[Cell] = []
        for node in siblings[siblings.index(box) + 1 :]:
            if _is_claim(node) or isinstance(node, nodes.section):
                break
            proof += [by_node[id(cell)] for cell in node.findall(is_cell) if id(cell) in by_node]
        claim = record_of(env).claims[box["claim_index"]]  # type: ignore[index]
        found.append(Proof(box, claim, proof))  # type: ignore[arg-type]
    return found


def settle(app: Sphinx, proofs: list[Proof], checked: set[int], broken: set[str]) -> list[Failure]:
    """Gives each claim its evidence and its look; finds the claims that prove nothing.

    Args:
        app: The Sphinx application.
        proofs: The claims of the page with their cells.
        checked: Indices of the cells that an expected block can refute.
        broken: Ids of the claims of which a cell has failed.
    """
    failures = []
    for proof in proofs:
        claim = proof.claim
        claim.evidence = [
            Evidence(str(item.get("kind")), item.get("error"), item.get("tolerance"))
            for cell in proof.cells
            for item in cell.evidence
        ]
        if not proof.cells:
            message = f"claim {claim.id} has no proof: no code cell before the next claim or heading"
            remedy = "Put the cells that prove it right after it."
            failures.append(Failure(claim.source, claim.line, message, remedy))
        elif claim.id not in broken and not any(_can_fail(c, checked) for c in proof.cells):
            message = f"the proof of claim {claim.id} cannot fail: it asserts and expects nothing"
            remedy = "End a cell of it with `equivalent(...)`, assert something, or expect an output."
            failures.append(Failure(claim.source, claim.line, message, remedy))
        claim.broken = claim.id in broken or not proof.cells
        if claim.broken:
            proof.box["classes"].append("claim-broken")
        proof.box.append(nodes.paragraph("", summary(claim), classes=["claim-evidence"]))
        _frame(proof)
    return failures


def _can_fail(cell: Cell, checked: set[int]) -> bool:
    return cell.index in checked or bool(cell.evidence) or _asserts(cell.code)


def _asserts(code: str) -> bool:
    """Whether a cell asserts something that is not a constant."""
    try:
        tree = ast.parse(code)
    except SyntaxError:  # a magic; it asserts nothing
        return False
    return any(
        isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant)
        for node in ast.walk(tree)
    )


def headline(claim: Claim, kind: str) -> Evidence | None:
    """The evidence of a kind that came closest to its bound: the one that says the most."""
    found = [e for e in claim.evidence if e.kind == kind and e.error is not None]
    if kind == "equal":
        return max(found, key=lambda e: (e.error or 0) / (e.tolerance or 1), default=None)
    return max(found, key=lambda e: e.error or 0, default=None)


def measured(claim: Claim) -> Evidence | None:
    """The number that stands for a claim: how far it was off, or how far off a refuted one is."""
    kinds = ("different", "equal") if claim.verdict == "fails" else ("equal", "different")
    return headline(claim, kinds[0]) or headline(claim, kinds[1])


def summary(claim: Claim) -> str:
    """The evidence of a claim in one sentence."""
    if claim.broken:
        return "Not proven in this build: see its log."
    parts = []
    if equal := headline(claim, "equal"):
        parts.append(f"largest error {equal.error:.2g}, tolerance {equal.tolerance:.2g}")
    if different := headline(claim, "different"):
        where = "off by" if claim.verdict == "fails" else "without its conditions off by"
        parts.append(f"{where} {different.error:.2g}")
    return f"Measured: {'; '.join(parts)}." if parts else "Proven by what the cells assert and print."


def _frame(proof: Proof) -> None:
    """Puts the claim and all up to its last proof cell into one frame."""
    parent = proof.box.parent
    if parent is None:
        return
    start = last = parent.index(proof.box)
    shown = {id(cell.node) for cell in proof.cells}
    for position in range(start + 1, len(parent.children)):
        node = parent.children[position]
        if _is_claim(node) or isinstance(node, nodes.section):
            break
        if any(id(cell) in shown for cell in node.findall(is_cell)):
            last = position
    frame = nodes.container(classes=["settled", f"settled-{proof.claim.verdict}"])
    if proof.claim.broken:
        frame["classes"].append("settled-broken")
    inside = parent.children[start : last + 1]
    parent[start : last + 1] = [frame]
    frame.extend(inside)


def contradictions(env: BuildEnvironment) -> list[Failure]:
    """What only the whole book can show: an id used twice, a reference to no claim."""
    claims = all_claims(env)
    counts = Counter(claim.id for claim in claims)
    failures = []
    for claim in claims:
        others = [c for c in claims if c.id == claim.id and c is not claim]
        if others:
            places = ", ".join(f"{other.source}:{other.line}" for other in others)
            message = f"two claims with the id {claim.id}; the other is at {places}"
            failures.append(
                Failure(claim.source, claim.line, message, "Give one of them another id.")
            )
    for name in sorted(records(env)):
        for reference in records(env)[name].references:
            if reference.claim not in counts:
                message = f"a reference to the claim {reference.claim}, which does not exist"
                known = ", ".join(sorted(counts)) or "none"
                remedy = f"The claims of the book are: {known}."
                failures.append(Failure(reference.source, reference.line, message, remedy))
    return failures


def setup(app: Sphinx) -> None:
    """Registers the directive and the names of the notes."""
    app.add_config_value("verified_book_notes", {}, "env")
    app.add_directive("claim", ClaimDirective)
