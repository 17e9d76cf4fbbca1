"""Which cells prove a claim, whether they can fail, and how the claim looks when they have run."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from docutils import nodes
from sphinx.application import Sphinx

from verified_book.claims.claim import Claim, Evidence
from verified_book.claims.directive import is_claim
from verified_book.claims.measurements import in_words, summary
from verified_book.outputs.cells import Cell, is_cell
from verified_book.records import Failure


@dataclass(frozen=True)
class Proof:
    """A claim's box in the doctree, the claim, and the cells that prove it."""

    box: nodes.container
    claim: Claim
    cells: list[Cell]


def proofs_of(doctree: nodes.document, claims: list[Claim], cells: list[Cell]) -> list[Proof]:
    """The claims of a page, each with the cells up to the next claim or heading."""
    by_node = {id(cell.node): cell for cell in cells if cell.node is not None}
    found = []
    for box in filter(is_claim, doctree.findall(nodes.container)):
        siblings = box.parent.children
        after = _up_to_next_claim(siblings[siblings.index(box) + 1 :])
        proof = [by_node[id(node)] for node in after if id(node) in by_node]
        claim = claims[box["claim_index"]]
        claim.cells = frozenset(cell.index for cell in proof)
        found.append(Proof(box, claim, proof))
    return found


def _up_to_next_claim(siblings: list[nodes.Node]) -> Iterator[nodes.Node]:
    """The elements after a claim and all inside them, up to the next claim or heading."""
    for sibling in siblings:
        for node in sibling.findall():
            if is_claim(node) or isinstance(node, nodes.section):
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
            remedy = app.config.verified_book_claim_remedy
            failures.append(Failure(claim.source, claim.line, message, remedy))
        claim.broken = claim.id in broken or len(failures) > known
        _show(proof)
    return failures


def leave_open(proofs: list[Proof]) -> None:
    """Shows the claims of a page whose cells do not run as what they are: not proven."""
    for proof in proofs:
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
        if is_claim(node) or isinstance(node, nodes.section):
            break
        if any(id(cell) in shown for cell in node.findall(is_cell)):
            last = position
    frame = nodes.container(classes=["settled", f"settled-{proof.claim.verdict}"])
    if proof.claim.broken:
        frame["classes"].append("settled-broken")
    inside = parent.children[start : last + 1]
    parent[start : last + 1] = [frame]
    frame.extend(inside)
