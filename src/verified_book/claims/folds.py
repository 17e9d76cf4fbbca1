"""The proof of a claim, folded below it; what a reader should see anyway stays in view.

A cell of the proof that is tagged `show` stands outside of the fold, with the paragraphs and the
cells with hidden sources right before it.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

from verified_book.claims.claim import Claim
from verified_book.claims.directive import is_derivation
from verified_book.outputs.cells import Cell, is_cell


class claim_fold(nodes.container):  # noqa: N801  # docutils names its nodes so
    """Part of a proof that is closed until a reader opens it."""


def fold(box: nodes.container, claim: Claim, cells: list[Cell]) -> None:
    """Puts the claim and all up to its last proof cell into one frame, the proof into folds."""
    parent = box.parent
    if parent is None:
        return
    proof = {id(cell.node) for cell in cells if cell.node is not None}
    shown = {id(cell.node) for cell in cells if "show" in cell.tags}
    start = parent.index(box)
    after = parent.children[start + 1 :]
    last = max(
        (i for i, node in enumerate(after) if any(id(c) in proof for c in node.findall(is_cell))),
        default=-1,
    )
    inside = after[: last + 1]
    frame = nodes.container("", classes=["settled", f"settled-{claim.verdict}"])
    if claim.broken:
        frame["classes"].append("settled-broken")
    parent[start : start + 1 + len(inside)] = [frame]
    frame += box
    for visible, run in _runs(inside, shown):
        if visible:
            frame += run
        else:
            frame += claim_fold("", *run, title=_title(run, proof), is_open=claim.broken)


def _runs(inside: list[nodes.Node], shown: set[int]) -> list[tuple[bool, list[nodes.Node]]]:
    """The nodes of a proof in runs that are shown or folded."""
    visible = [any(id(cell) in shown for cell in node.findall(is_cell)) for node in inside]
    for place in reversed(range(len(inside) - 1)):
        visible[place] |= visible[place + 1] and _leads_to(inside[place])
    runs: list[tuple[bool, list[nodes.Node]]] = []
    for node, is_visible in zip(inside, visible, strict=True):
        if not runs or runs[-1][0] != is_visible:
            runs.append((is_visible, []))
        runs[-1][1].append(node)
    return runs


def _leads_to(node: nodes.Node) -> bool:
    """Whether a node belongs to what is shown after it: words, or a hidden source."""
    hides_source = isinstance(node, nodes.container) and node.get("hide_mode") == "input"
    return hides_source or isinstance(node, nodes.paragraph | nodes.math_block)


def _title(run: list[nodes.Node], proof: set[int]) -> str:
    """What stands on a fold."""
    count = sum(id(cell) in proof for node in run for cell in node.findall(is_cell))
    cells = f"{count} cell" if count == 1 else f"{count} cells"
    derived = any(is_derivation(inner) for node in run for inner in node.findall())
    return " · ".join(["proof", *(["derivation"] if derived else []), *([cells] if count else [])])


def open_details(self: HTML5Translator, node: claim_fold) -> None:
    """Begins a fold."""
    is_open = " open" if node["is_open"] else ""
    title = self.encode(node["title"])
    self.body.append(f'<details class="claim-proof"{is_open}>\n<summary>{title}</summary>\n')


def close_details(self: HTML5Translator, node: claim_fold) -> None:
    """Ends a fold."""
    self.body.append("</details>\n")


def setup(app: Sphinx) -> None:
    """Registers the node and the script that opens it where a reader or a link asks."""
    app.add_node(claim_fold, html=(open_details, close_details))  # elsewhere it is a container
    app.add_js_file("verified_book_claims.js", loading_method="defer")
