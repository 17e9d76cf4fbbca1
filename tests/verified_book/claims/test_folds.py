"""What of a proof is folded, and what stays in view."""

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.utils import new_document

from verified_book.claims.claim import Claim
from verified_book.claims.folds import claim_fold, fold
from verified_book.outputs.cells import Cell
from verified_book.outputs.rendered import Look

LOOK = Look(mime_priority=(), merge_streams=True, removed=frozenset())


def cell(name: str, tags: str = "") -> Cell:
    node = nodes.container("", nodes.literal_block(name, name), nb_element="cell_code")
    node["hide_mode"] = "input" if "hide-input" in tags else None
    return Cell(0, "page.md", 1, name, frozenset(tags.split()), [], True, node, LOOK)


def folded(*parts: nodes.Node | Cell, broken: bool = False) -> list[str]:
    """What stands in the frame of a claim, and after it; folds by their titles and contents."""
    box = nodes.container("", nodes.paragraph("", "box"), classes=["claim"])
    document = new_document("page.md", get_default_settings())
    document += nodes.section(
        "", box, *(part.node if isinstance(part, Cell) else part for part in parts)
    )
    cells = [part for part in parts if isinstance(part, Cell)]
    claim = Claim("A1", "book", "holds", "So.", [], "page", "page.md", 1, broken=broken)
    fold(box, claim, cells)
    (section,) = document.children
    frame, *rest = section.children
    shown = []
    for node in frame.children:
        words = " ".join(node.astext().split())
        is_fold = isinstance(node, claim_fold)
        opened = "open " if is_fold and node["is_open"] else ""
        shown.append(f"{opened}[{node['title']}: {words}]" if is_fold else words)
    return [*shown, *(f"after: {node.astext()}" for node in rest)]


def text(words: str) -> nodes.paragraph:
    return nodes.paragraph("", words)


def test_all_up_to_the_last_cell_is_folded():
    assert folded(text("so"), cell("a"), text("and"), cell("b"), text("done")) == [
        "box",
        "[proof · 2 cells: so a and b]",
        "after: done",
    ]


def test_what_is_tagged_stays_in_view_with_the_words_before_it():
    parts = [cell("a"), text("see"), cell("b", "show"), text("then"), cell("c")]
    assert folded(*parts) == ["box", "[proof · 1 cell: a]", "see", "b", "[proof · 1 cell: then c]"]
