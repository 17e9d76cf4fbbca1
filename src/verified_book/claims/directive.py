"""The `claim` directive: a numbered statement, its verdict, and the cells that prove it.

The cells up to the next claim or heading are the proof. At least one of them must be able to fail:
it asserts something, it is held against an expected block, or its output carries evidence. A cell
gives evidence by an output whose metadata has the key `evidence`: a dictionary with `kind`
("equal", "different" or any other word), `error` and `tolerance` (numbers or None), and `pattern`
(the text of the output as an expected block should have it).
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from verified_book.directives import CheckedDirective
from verified_book.measurements import in_words, summary
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
    final_argument_whitespace = True  # so that the claim itself can say what is wrong
    options_known = ("note", "verdict")

    def run(self) -> list[nodes.Node]:
        """Makes the claim's box; its evidence is added when the page has been executed."""
        self.check_options()
        source, line = self.get_source_info()
        body = nodes.container(classes=["claim-body"])
        self.state.nested_parse(self.content, self.content_offset, body)
        claim = Claim(
            id=" ".join("".join(self.arguments).split()),
            note=self._choice("note", self.config.verified_book_notes),
            verdict=self._choice("verdict", VERDICTS),
            text=plain_text(body),
            statement=[],
            page=self.env.docname,
            source=source,
            line=line,
        )
        if len(claim.id.split()) != 1:
            message = f"claim: {claim.id!r} is no id" if claim.id else "claim: it has no id"
            self.fail(message, "Write one word after the name: claim A3; options below it.")
        if not claim.text:
            self.fail(f"{claim.title} states nothing", "Write the statement as its body.")
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


def remember_statements(doctree: nodes.document) -> None:
    """Takes the statements of a page for the index, now that docutils has resolved what it can."""
    claims = record_of(doctree.settings.env).claims
    for box in filter(_is_claim, doctree.findall(nodes.container)):
        _, body = box.children
        claim = claims[box["claim_index"]]
        claim.text, claim.statement = plain_text(body), _copies(body)


def _copies(body: nodes.Node) -> list[nodes.Node]:
    """The statement's nodes without their page, which would be stored with them."""
    copies = [node.deepcopy() for node in body.children]
    for copy in copies:
        for node in copy.findall():
            node.document = None  # type: ignore[assignment]  # the stubs know no node without one
    return copies


def plain_text(node: nodes.Node) -> str:
    """The words of a statement on one line, with its maths between dollars."""
    parts = []
    for part in node.findall():
        if isinstance(part, nodes.Text):
            maths = isinstance(part.parent, nodes.math | nodes.math_block)
            parts.append(f"${part.astext().strip()}$" if maths else part.astext())
        elif not isinstance(part, nodes.Inline):
            parts.append(" ")  # a new block
    return " ".join("".join(parts).split())


def _is_claim(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and "claim_index" in node


def proofs_of(doctree: nodes.document, cells: list[Cell]) -> list[Proof]:
    """The claims of a page, each with the cells up to the next claim or heading."""
    by_node = {id(cell.node): cell for cell in cells if cell.node is not None}
    env = doctree.settings.env
    found = []
    for box in filter(_is_claim, doctree.findall(nodes.container)):
        siblings = box.parent.children
        proof: list[Cell] = []
        for node in _up_to_next_claim(siblings[siblings.index(box) + 1 :]):
            if id(node) in by_node:
                proof.append(by_node[id(node)])
        claim = record_of(env).claims[box["claim_index"]]
        found.append(Proof(box, claim, proof))
    return found


def _up_to_next_claim(siblings: list[nodes.Node]) -> Iterator[nodes.Node]:
    """The elements after a claim and all inside them, up to the next claim or heading."""
    for sibling in siblings:
        for node in sibling.findall():
            if _is_claim(node) or isinstance(node, nodes.section):
                return
            yield node


def settle(app: Sphinx, proofs: list[Proof], checked: set[int], broken: set[str]) -> list[Failure]:
    """Gives each claim its evidence and its look; finds the claims that prove nothing.

    Args:
        app: The Sphinx application.
        proofs: The claims of the page with their cells.
        checked: Indices of the cells that an expected block can refute.
        broken: Ids of the claims of which a cell has failed.
    """
    failures: list[Failure] = []
    for proof in proofs:
        claim, known = proof.claim, len(failures)
        claim.evidence = [
            Evidence(str(item.get("kind")), item.get("error"), item.get("tolerance"))
            for cell in proof.cells
            for item in cell.evidence
        ]
        if not proof.cells:
            message = f"{claim.title} has no proof: no code cell before the next claim or heading"
            remedy = "Put the cells that prove it right after it."
            failures.append(Failure(claim.source, claim.line, message, remedy))
        elif claim.id not in broken and not any(_can_fail(c, checked) for c in proof.cells):
            message = f"the proof of {claim.title} cannot fail: it asserts and expects nothing"
            remedy = (
                "End a cell of it with `equivalent(...)`, assert something, or expect an output."
            )
            failures.append(Failure(claim.source, claim.line, message, remedy))
        claim.broken = claim.id in broken or len(failures) > known
        _show(proof)
    return failures


def leave_open(doctree: nodes.document) -> None:
    """Shows the claims of a page whose cells do not run as what they are: not proven."""
    for proof in proofs_of(doctree, []):
        proof.claim.broken = True
        _show(proof)


def _show(proof: Proof) -> None:
    """Completes the look of a claim, now that it is proven or not."""
    if proof.claim.broken:
        proof.box["classes"].append("claim-broken")
    proof.box.append(in_words(summary(proof.claim), classes=["claim-evidence"]))
    _frame(proof)


def _can_fail(cell: Cell, checked: set[int]) -> bool:
    return cell.index in checked or bool(cell.evidence) or (cell.ran and asserts(cell.code))


def asserts(code: str) -> bool:
    """Whether a cell asserts something that depends on a value.

    Examples:
        >>> asserts("assert x == 1"), asserts("assert 1 == 1"), asserts("x == 1")
        (True, False, False)
    """
    try:
        tree = ast.parse(code)
    except SyntaxError:  # a magic; it asserts nothing
        return False
    tests = [node.test for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    return any(
        not isinstance(test, ast.Tuple)  # true whatever it holds
        and any(isinstance(node, ast.Name) for node in ast.walk(test))
        for test in tests
    )


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
    known = ", ".join(sorted(name for name in counts if len(name.split()) == 1))
    failures = []
    for claim in claims:
        others = [c for c in claims if c.id == claim.id and c is not claim]
        if claim.id and others:
            places = ", ".join(f"{other.source}:{other.line}" for other in others)
            message = f"two claims with the id {claim.id}; the other is at {places}"
            failures.append(
                Failure(claim.source, claim.line, message, "Give one of them another id.")
            )
    for name in sorted(records(env)):
        for reference in records(env)[name].references:
            if reference.claim not in counts:
                message = f"a reference to the claim {reference.claim}, which does not exist"
                remedy = f"The claims of the book are: {known or 'none'}."
                failures.append(Failure(reference.source, reference.line, message, remedy))
    return failures


def setup(app: Sphinx) -> None:
    """Registers the directive and the names of the notes."""
    app.add_config_value("verified_book_notes", {}, "env")
    app.add_directive("claim", ClaimDirective)
