"""One chapter with every seed moved: its cells run again, and their evidence is compared."""

import ast
import contextlib
import io
import json
import linecache
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

SEEDS = {"manual_seed", "seed", "default_rng"}
"""Functions and methods whose first argument is a seed."""


@dataclass(frozen=True)
class Cell:
    """A code cell of a built notebook, with the evidence that it printed in the book."""

    place: int
    code: str
    raises: bool
    patterns: list[str]


@dataclass(frozen=True)
class Luck:
    """A cell whose evidence was that of its seed alone."""

    shift: int
    place: int
    code: str
    what: str


def cells_of(notebook: Path) -> list[Cell]:
    """The code cells of a notebook that the book offers for download."""
    found = []
    for place, cell in enumerate(json.loads(notebook.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        outputs = [output.get("metadata", {}).get("evidence") for output in cell["outputs"]]
        found.append(
            Cell(
                place,
                "".join(cell["source"]),
                "raises-exception" in cell["metadata"].get("tags", []),
                [evidence["pattern"] for evidence in outputs if evidence],
            )
        )
    return found


class _Moved(ast.NodeTransformer):
    """Adds a number to every seed that is written in the code."""

    def __init__(self, shift: int) -> None:
        self.shift = shift

    def visit_Call(self, node: ast.Call) -> ast.Call:  # ast calls it so
        self.generic_visit(node)
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in SEEDS and node.args:
            node.args[0] = ast.BinOp(node.args[0], ast.Add(), ast.Constant(self.shift))
        return node


def moved(code: str, shift: int, name: str = "<cell>") -> tuple[Any, Any | None]:
    """The code of a cell with its seeds moved: its statements, and its last expression if any.

    Its source can be had by `inspect`, as in a notebook.
    """
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    manager: Any = TransformerManager  # untyped
    plain = manager().transform_cell(code)  # a magic, as %pip, is a call
    tree = _Moved(shift).visit(ast.parse(plain))
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    ast.fix_missing_locations(tree)
    statements = compile(tree, name, "exec")
    if last is None:
        return statements, None
    return statements, compile(ast.fix_missing_locations(last), name, "eval")


def luck(cells: list[Cell], shift: int) -> Iterator[Luck]:
    """The cells that fail, or whose evidence says something else, with every seed moved."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        try:
            statements, last = moved(cell.code, shift, f"<cell {cell.place}>")
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                exec(statements, names)  # the book's own cells
                result = eval(last, names) if last else None
        except Exception as error:
            if not cell.raises:
                first = (str(error).splitlines() or [""])[0]
                yield Luck(shift, cell.place, cell.code, f"{type(error).__name__}: {first}")
            continue
        pattern = getattr(result, "pattern", None)
        if cell.patterns and isinstance(pattern, str) and pattern != cell.patterns[-1]:
            what = f"{pattern!r} in place of {cell.patterns[-1]!r}"
            yield Luck(shift, cell.place, cell.code, what)


def found(notebook: Path, shift: int) -> list[dict[str, Any]]:
    """What was luck in one notebook, run in an empty folder."""
    cells = cells_of(notebook.resolve())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return [vars(each) for each in luck(cells, shift)]
