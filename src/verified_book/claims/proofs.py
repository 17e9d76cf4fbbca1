"""Which cells prove a claim, whether they can fail, and how the claim looks when they have run."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from docutils import nodes
from sphinx.application import Sphinx

from verified_book.claims import folds, parts
from verified_book.claims.claim import Claim, Evidence, Strength
from verified_book.claims.directive import is_claim, is_derivation
from verified_book.claims.measurements import in_words, lines, others
from verified_book.claims.tables import label
from verified_book.outputs.cells import Cell
from verified_book.records import Failure


@dataclass(frozen=True)
class Proof:
    """A claim's box in the doctree, the claim, its cells, and all nodes of its proof."""

    box: nodes.container
    claim: Claim
    cells: list[Cell]
    inside: list[nodes.Node]


def proofs_of(doctree: nodes.document, claims: list[Claim], cells: list[Cell]) -> list[Proof]:
    """The claims of a page, each with the cells up to the next claim or heading."""
    by_node = {id(cell.node): cell for cell in cells if cell.node is not None}
    found = []
    for box in filter(is_claim, doctree.findall(nodes.container)):
        siblings = box.parent.children
        after = list(_up_to_next_claim(siblings[siblings.index(box) + 1 :]))
        proof = [by_node[id(node)] for node in after if id(node) in by_node]
        claim = claims[box["claim_index"]]
        claim.cells = frozenset(cell.index for cell in proof)
        found.append(Proof(box, claim, proof, after))
    return found


def _up_to_next_claim(siblings: list[nodes.Node]) -> Iterator[nodes.Node]:
    """The elements after a claim and all inside them, up to the next claim or heading."""
    for sibling in siblings:
        for node in sibling.findall():
            if is_claim(node) or isinstance(node, nodes.section):
                return
            yield node


def settle(app: Sphinx, proofs: list[Proof], checked: set[int], broken: set[str]) -> list[Failure]:
    """Gives each claim its evidence and its look; finds the claims that prove too little.

    Args:
        app: The Sphinx application.
        proofs: The claims of the page with their cells.
        checked: Indices of the cells that an expected block can refute.
        broken: Ids of the claims of which a cell has failed.
    """
    failures: list[Failure] = []
    for proof in proofs:
        claim, known = proof.claim, len(failures)
        claim.derived = any(is_derivation(node) for node in proof.inside)
        able = [cell for cell in proof.cells if _can_fail(cell, checked)]
        failures += _unknown_parts(proof.cells)
        claim.evidence = [each for cell in able for each in evidence_of(cell)]
        if not proof.cells:
            message = f"{claim.title} has no proof: no code cell before the next claim or heading"
            remedy = "Put the cells that prove it right after it."
            failures.append(Failure(claim.source, claim.line, message, remedy))
        elif claim.id not in broken and not able:
            message = f"the proof of {claim.title} cannot fail: it asserts and expects nothing"
            remedy = app.config.verified_book_claim_remedy
            failures.append(Failure(claim.source, claim.line, message, remedy))
        elif claim.id not in broken and len(failures) == known:
            shown = [(each.part, each.label) for each in claim.evidence]
            failures += [
                Failure(claim.source, claim.line, message, remedy)
                for message, remedy in parts.wanting(claim, shown)
            ]
        claim.broken = claim.id in broken or len(failures) > known
        _show(proof)
    return failures


def _unknown_parts(cells: list[Cell]) -> list[Failure]:
    """The cells whose option `:shows:` names no part of a claim."""
    return [
        Failure(cell.source, cell.line, f"the cell shows {shows!r}, which is no part", parts.HOW)
        for cell in cells
        if parts.part_of(shows := str(cell.options.get("shows", ""))) is None
    ]


def evidence_of(cell: Cell) -> list[Evidence]:
    """What a cell that can fail shows, and for which part of its claim."""
    part, label = parts.part_of(str(cell.options.get("shows", ""))) or ("statement", "holds")
    if not cell.evidence:
        return [Evidence("checked", part=part, label=label)]
    return [
        Evidence(
            str(item.get("kind")),
            item.get("error"),
            item.get("tolerance"),
            part,
            label,
            Strength(**item.get("strength", {})),
            str(item.get("pattern", "")),
        )
        for item in cell.evidence
    ]


def leave_open(proofs: list[Proof]) -> None:
    """Shows the claims of a page whose cells do not run as what they are: not proven."""
    for proof in proofs:
        proof.claim.broken = True
        _show(proof)


def _show(proof: Proof) -> None:
    """Completes the look of a claim, now that it is proven or not."""
    claim = proof.claim
    if claim.broken:
        proof.box["classes"].append("claim-broken")
    found = {} if claim.broken else others(claim)
    for part in list(proof.box.findall(nodes.container)):
        if "claim-body" in part["classes"] and claim.stated:
            label(part, "In fact:")
        elif "claim-stated" in part["classes"]:
            _add(part[0], {name: found.pop(name) for name in list(found) if name[:3] == "as "})
        elif "claim-conditions" in part["classes"]:
            for line, condition in zip(part.children, claim.conditions, strict=True):
                name = condition.dropped
                _add(line, {name: found.pop(name)} if name in found else {})
    told = [lines(claim)[0], *(f"{name}: {said}" for name, said in found.items())]
    proof.box.append(nodes.container("", *map(in_words, told), classes=["claim-evidence"]))
    folds.fold(proof.box, claim, proof.cells)


def _add(line: nodes.Node, measured: dict[str, str]) -> None:
    """Says at the end of a part's line what was measured of it."""
    said = "; ".join(f"{name}: {text}" for name, text in measured.items())
    if said and isinstance(line, nodes.Element):
        shown = nodes.inline("", "", *in_words(said).children, classes=["claim-evidence"])
        line.extend([nodes.Text(" "), shown])


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
