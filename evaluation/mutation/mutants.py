"""Generic mutants of a module: the operators of mutmut, and two that it has not.

mutmut says how one node of the syntax tree is changed: a comparison turned, a number moved, an
argument dropped or None, `and` for `or`, a string altered, a value None. A statement left out and
a condition turned are added here. Where they are tried is said here too, since mutmut passes over
every function that has a decorator.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from textwrap import dedent
from typing import Any

import libcst as cst
from mutmut.mutation.mutators import mutation_operators

from evaluation.mutation.wrongs import SOURCE


def operator_statement(node: cst.Expr) -> Iterable[cst.BaseSmallStatement]:
    """Leaves out a statement that is there for what it does: mutmut changes but its arguments."""
    if not isinstance(node.value, cst.BaseString | cst.Ellipsis):
        yield cst.Pass()


def operator_condition(node: cst.If | cst.IfExp | cst.While) -> Iterable[cst.CSTNode]:
    """Turns a condition that no other operator turns: a name, a call, `not` before either."""
    if not isinstance(node.test, cst.Comparison):
        test = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        yield node.with_changes(test=cst.UnaryOperation(cst.Not(), test))


OPERATORS: tuple[tuple[Any, Callable[[Any], Iterable[cst.CSTNode]]], ...] = (
    *mutation_operators,
    (cst.Expr, operator_statement),
    ((cst.If, cst.IfExp, cst.While), operator_condition),
)


@dataclass(frozen=True)
class Mutant:
    """A module with one node changed.

    Attributes:
        module: The module below `src`, as `transformer_layers/models/gpt2/model`.
        function: The dotted name of the function, class or constant that holds the node.
        operator: What changed the node, by mutmut's name for it without `operator_`.
        line: The first line that differs.
        removed: The lines that are gone, without their indent.
        added: Those that stand instead.
        text: The module's text with the change in it.
    """

    module: str
    function: str
    operator: str
    line: int
    removed: str
    added: str
    text: str
    select = ""  # all tests

    @property
    def path(self) -> Path:
        return SOURCE / f"{self.module}.py"

    @property
    def label(self) -> str:
        return f"{self.module}.py:{self.line}: {self.function}, {self.operator}"

    def altered(self) -> str:
        """The module's text with the change in it."""
        return self.text


@cache
def mutants_of(module: str) -> tuple[Mutant, ...]:
    """All mutants of a module that are Python and no two of which are the same.

    Args:
        module: The module below `src`, as `transformer_layers/models/gpt2/model`.
    """
    tree = cst.parse_module((SOURCE / f"{module}.py").read_text(encoding="utf-8"))
    parts = [tree.code_for_node(node) for node in tree.body]
    text = tree.code
    start = text.index("".join(parts))
    mutants = []
    for statement, part in zip(tree.body, parts, strict=True):
        seen = {ast.dump(ast.parse(part))}
        for function, operator, node, changed in changed_nodes(statement):
            altered = tree.code_for_node(statement.deep_replace(node, changed))
            try:
                dump = ast.dump(ast.parse(altered))
            except SyntaxError:  # an argument by position after one by name
                continue
            if dump not in seen:
                seen.add(dump)
                whole = text[:start] + altered + text[start + len(part) :]
                same, removed, added = difference(part, altered)
                line = text[:start].count("\n") + same + 1
                mutants.append(Mutant(module, function, operator, line, removed, added, whole))
        start += len(part)
    return tuple(mutants)


def changed_nodes(
    statement: cst.BaseStatement,
) -> Iterator[tuple[str, str, cst.CSTNode, cst.CSTNode]]:
    """Each node of a statement of a module and what an operator makes of it, with the names."""
    walk = Walk()
    statement.visit(walk)
    for function, node in walk.nodes:
        for kind, operator in OPERATORS:
            if isinstance(node, kind):
                name = operator.__name__.removeprefix("operator_")
                for changed in operator(node):
                    yield function, name, node, changed


class Walk(cst.CSTVisitor):
    """The nodes that may be changed, with the definition that each stands in.

    Left out are annotations and decorators, imports, what has no name, as `if TYPE_CHECKING`, the
    arguments of `len` and `isinstance`, without which neither can be called, and the words of an
    error, most of which stand in f-strings, which mutmut leaves as they are.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.functions = 0
        self.errors = 0
        self.nodes: list[tuple[str, cst.CSTNode]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Annotation | cst.Decorator | cst.Import | cst.ImportFrom):
            return False
        if isinstance(node, cst.Call) and getattr(node.func, "value", None) in (
            "len",
            "isinstance",
        ):
            return False
        if isinstance(node, cst.SimpleString) and self.errors > 0:
            return False
        self.errors += isinstance(node, cst.Raise)
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            if self.functions == 0:
                self.names.append(node.name.value)
            self.functions += isinstance(node, cst.FunctionDef)
        elif not self.names:
            name = assigned_name(node)
            if name is not None and name != "__all__":
                self.names.append(name)
                for child in node.children:
                    child.visit(self)
                self.names.pop()
            return name is None
        if self.names:
            self.nodes.append((".".join(self.names), node))
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self.errors -= isinstance(original_node, cst.Raise)
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self.functions -= isinstance(original_node, cst.FunctionDef)
            if self.functions == 0:
                self.names.pop()


def assigned_name(node: cst.CSTNode) -> str | None:
    """The name that a statement assigns, if it is an assignment to one."""
    if isinstance(node, cst.Assign) and isinstance(node.targets[0].target, cst.Name):
        return node.targets[0].target.value
    if isinstance(node, cst.AnnAssign) and isinstance(node.target, cst.Name):
        return node.target.value
    return None


def difference(old: str, new: str) -> tuple[int, str, str]:
    """How many lines are the same before those that are gone, these, and those instead."""
    before, after = old.splitlines(), new.splitlines()
    same = list(takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    before, after = before[len(same) :], after[len(same) :]
    while before and after and before[-1] == after[-1]:
        before.pop()
        after.pop()
    return len(same), dedent("\n".join(before)).strip(), dedent("\n".join(after)).strip()
