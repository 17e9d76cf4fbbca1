"""Where in a module's text the code of a function, a class or a constant stands."""

import ast
from collections.abc import Iterator
from functools import cache


@cache
def spans_of(text: str, name: str) -> tuple[tuple[int, int], ...]:
    """The lines of a definition, as pairs of a first and a past-the-end position in the text.

    They are whole lines, with the decorators and without the docstring, which is nobody's code. A
    class is without its methods, which have names of their own.

    Args:
        text: The module's text.
        name: A function as `gelu`, a method as `GPT2.loss`, a class, or a constant that the module
            assigns.

    Returns:
        The pieces in order; none if nothing has this name.
    """
    within: set[int] = set()
    for found, node in definitions(ast.parse(text)):
        if found == name:
            within |= lines_of(node)
    spans: list[tuple[int, int]] = []
    position = 0
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        end = position + len(line)
        if number in within:
            continues = bool(spans) and spans[-1][1] == position
            spans[-1:] = [(spans[-1][0], end)] if continues else [*spans[-1:], (position, end)]
        position = end
    return tuple(spans)


def definitions(
    tree: ast.Module | ast.ClassDef, within: str = ""
) -> Iterator[tuple[str, ast.stmt]]:
    """The functions, classes and constants of a module or a class, with their dotted names."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield within + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from definitions(node, f"{within}{node.name}.")
        elif not within and isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    yield target.id, node


def lines_of(node: ast.stmt) -> set[int]:
    """The numbers of the lines that are a definition's own."""
    lines = numbers(node)
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        if ast.get_docstring(node) is not None:
            lines -= numbers(node.body[0])
        if isinstance(node, ast.ClassDef):
            for child in node.body:
                if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    lines -= numbers(child)
    return lines


def numbers(node: ast.stmt) -> set[int]:
    """The numbers of all lines of a statement, with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(each.lineno for each in decorators)])
    return set(range(first, (node.end_lineno or node.lineno) + 1))
