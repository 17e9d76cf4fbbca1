"""The `symbols` directive: a table of symbols and variables, to which shapes are added.

Its body is a table. The first column has symbols, as formulas; the second the variable of each, as
code, in the same order, and gets their shapes; the last says what they are. A single symbol may
have several variables.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from docutils import nodes
from sphinx.application import Sphinx

from book_site.symbols import source, tex
from book_site.symbols.recording import Kind
from verified_book.directives import CheckedDirective
from verified_book.outputs.pages import PageCheck
from verified_book.records import Failure

BOX = "symbols-table"
"""The class of the container around the table."""

TIED = "book_site_symbols"
"""Attribute of a frame: the number, the TeX and the variables of each symbol."""


class SymbolsDirective(CheckedDirective):
    """Holds the table until the cells of its page have been run."""

    def run(self) -> list[nodes.Node]:
        """Parses the table."""
        self.check_options()
        box = nodes.container("", classes=[BOX])
        self.set_source_info(box)
        self.state.nested_parse(self.content, self.content_offset, box)
        return [box]


@dataclass(frozen=True)
class Row:
    """A row of the table: for each symbol its node and the nodes of its variables."""

    node: nodes.row
    symbols: list[tuple[nodes.math, list[nodes.literal]]]


def tie(app: Sphinx, doctree: nodes.document, check: PageCheck) -> None:
    """Ties the symbols of each table to the frames above it, and adds the shapes."""
    kinds, sizes = _recorded(check)
    frames: list[nodes.container] = []
    number = 0
    for node in list(doctree.findall(nodes.container)):
        if app.config.book_site_symbols in node["classes"]:
            frames.append(node)
        elif BOX in node["classes"]:
            table = _Table(node, frames, check)
            number = table.tie(number)
            if check.executed:
                table.add_shapes(kinds, sizes)
            frames = []


def _recorded(check: PageCheck) -> tuple[dict[str, list[Kind]], dict[str, int]]:
    """What the cells of a page have recorded."""
    kinds: dict[str, list[Kind]] = {}
    sizes: dict[str, int] = {}
    for cell in check.cells:
        for output in cell.outputs:
            found = output.get("metadata", {}).get("symbols")
            if found:
                sizes |= dict(found["sizes"])
                for name, several in found["kinds"].items():
                    known = kinds.setdefault(name, [])
                    known += [dict(kind) for kind in several if kind not in known]
    return kinds, sizes


class _Table:
    """A table that is being tied to the frames above it."""

    def __init__(
        self, box: nodes.container, frames: list[nodes.container], check: PageCheck
    ) -> None:
        self.box, self.frames, self.check = box, frames, check
        self.rows = list(self._rows())

    def _fail(self, message: str, remedy: str) -> None:
        place = str(self.box.source), self.box.line or 1
        self.check.failures.append(Failure(*place, f"symbols: {message}", remedy))

    def _rows(self) -> Iterator[Row]:
        bodies = list(self.box.findall(nodes.tbody))
        if len(bodies) != 1 or not self.frames:
            what = f"{len(bodies)} tables" if len(bodies) != 1 else "no frame above the table"
            self._fail(what, "Write one table below an equation and its source in a container.")
            return
        for row in bodies[0].findall(nodes.row):
            symbols = list(row.children[0].findall(nodes.math))
            variables = list(row.children[1].findall(nodes.literal))
            if len(symbols) == 1:
                yield Row(row, [(symbols[0], variables)] if variables else [])
            elif len(symbols) == len(variables) or not variables:
                pairs = zip(symbols, variables, strict=False)
                yield Row(row, [(symbol, [variable]) for symbol, variable in pairs])
            else:
                self._fail(
                    f"{len(symbols)} symbols and {len(variables)} variables stand in one row: "
                    f"{row.children[0].astext()} and {row.children[1].astext()}",
                    "Name the variable of each symbol, in the same order.",
                )

    def tie(self, number: int) -> int:
        """Numbers the symbols, and hands them to the frames.

        Returns:
            The number after the last.
        """
        tied: list[tuple[int, str, list[str]]] = []
        for row in self.rows:
            for symbol, variables in row.symbols:
                self._check(symbol.astext(), [each.astext() for each in variables])
                tied.append((number, symbol.astext(), [each.astext() for each in variables]))
                for node in (symbol, *variables):
                    inside = nodes.inline("", classes=["symbol", f"symbol-{number}"])
                    node.replace_self(inside)
                    inside += node
                number += 1
        for frame in self.frames:
            frame[TIED] = tied
        return number

    def _check(self, symbol: str, variables: list[str]) -> None:
        equations = self._texts(nodes.math_block)
        if not any(tex.count(equation, symbol) for equation in equations):
            remedy = "Write the symbol as the equation has it."
            self._fail(f"no equation above has the symbol {symbol}", remedy)
        for variable in variables:
            if not any(source.places(each, variable) for each in self._texts(nodes.literal_block)):
                remedy = "Write the name as the source has it, or include the line that has it."
                self._fail(f"no source above has the variable {variable}", remedy)

    def _texts(self, kind: type[nodes.Element]) -> list[str]:
        return [node.astext() for frame in self.frames for node in frame.findall(kind)]

    def add_shapes(self, kinds: dict[str, list[Kind]], sizes: dict[str, int]) -> None:
        """Puts shapes below the variables; the usual dtype and the sizes stand in the heading."""
        if not self.rows:
            return
        told = [
            [
                self._told(variable.astext(), kinds, sizes)
                for _, names in row.symbols
                for variable in names
            ]
            for row in self.rows
        ]
        dtypes = Counter(dtype for each in told for _, dtype in dict.fromkeys(each) if dtype)
        usual = dtypes.most_common(1)[0][0] if dtypes else ""
        for row, each in zip(self.rows, told, strict=True):
            if each:
                _of_variables(row.node).append(_paragraph(list(dict.fromkeys(each)), usual))
        shown = ", ".join(shape.strip("(,)") for each in told for shape, _ in each).split(", ")
        axes = ", ".join(f"{name} {size}" for name, size in sizes.items() if name in shown)
        if usual:
            words = f"{usual}; {axes}" if axes else usual
            head = nodes.inline("", words, classes=["symbols-sizes"])
            for top in self.box.findall(nodes.thead):
                _of_variables(top).append(nodes.paragraph("", "", head))

    def _told(
        self, name: str, kinds: dict[str, list[Kind]], sizes: dict[str, int]
    ) -> tuple[str, str]:
        """A shape in the names of its axes, and a dtype; or the name of a type."""
        found = kinds.get(name, [])
        if len(found) != 1:
            if found:
                what = f"several kinds of {name} were recorded: {found}"
                remedy = "Record one function, or name the value by `also=` in the cell."
            else:
                what = f"no value of {name} was recorded; these were: {', '.join(kinds) or 'none'}"
                remedy = (
                    "End a cell, tagged remove-cell, in `record(lambda: ..., function, batch=2)` "
                    "of book_site.symbols, with the function that has the variable."
                )
            self._fail(what, remedy)
            return "", ""
        (kind,) = found
        if "shape" not in kind:
            return str(kind["type"]), ""
        names = {size: axis for axis, size in sizes.items()}
        axes = [names.get(size, str(size)) for size in kind["shape"]]
        return f"({', '.join(axes)}{',' if len(axes) == 1 else ''})", str(kind["dtype"])


def _of_variables(row: nodes.Element) -> nodes.entry:
    """The cell of a row, or of the heading, that is about variables."""
    return list(row.findall(nodes.entry))[1]


def _paragraph(told: list[tuple[str, str]], usual: str) -> nodes.paragraph:
    """Shapes, with the dtypes that are not the usual one."""
    paragraph = nodes.paragraph()
    for number, (shape, dtype) in enumerate(told):
        if number:
            paragraph += nodes.Text(", ")
        paragraph += nodes.literal("", shape)
        if dtype not in ("", usual):
            paragraph += nodes.Text(f" {dtype}")
    return paragraph
