"""Sets in outputs: which of them are written in another order by the next run.

Python mixes a secret number of each run into the hashes of text and bytes, and hashes other objects
by their address; a set has its elements in the order of their hashes. Numbers are their own hashes.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from typing import Any

_STRING = r"""[bB]?(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")"""
_MARK = re.compile(rf"{_STRING}|[{{}}]")
_STRING_OR_OBJECT = re.compile(rf"{_STRING}|<[\w.]+[ :][^<>]*>")  # as `<class 'int'>`, `<A.B: 1>`
_MEMBER = re.compile(r"<([\w.]+): (.*)>", re.DOTALL)  # of an enum: its name and its value
_LONGEST = 4_000  # characters of a set, so that a long line of braces takes no time
_OF_NUMBERS = {"Decimal", "Fraction", "complex", "float", "int"}  # hashed by value, as numbers are
_OBJECT = "_object"  # stands for an object, whose text is its argument
# What IPython lays out, and objects, which may have no set in their text that moves.
_LAID_OUT = {"Counter", "OrderedDict", "defaultdict", "deque", "frozenset", "set", _OBJECT}
_NUMBERS = bool | int | float | complex


def moves(text: str) -> bool:
    """Whether a text shows a set of two elements or more whose order is another in each run.

    Examples:
        >>> moves("found {'b', 'a'}"), moves("{('a', 1), ('b', 2)}"), moves("{(1, 2), (3, 4)}")
        (True, True, False)
    """
    return any(any(map(_moves, node.elts)) for node in _sets(text))


def is_laid_out(text: str) -> bool:
    """Whether IPython has sorted every set in the text of a value that a cell displays.

    It sorts those in containers that it knows, and leaves to others how they write themselves. Sets
    have no order that could sort a set of them. One that is in no order was not sorted: an object
    has written it.

    Examples:
        >>> is_laid_out("[{'a', 'b'}]"), is_laid_out("Mine(names={'a', 'b'})")
        (True, False)
        >>> is_laid_out("{<Unit.KG: 1>, <Unit.M: 0>}"), is_laid_out("{'c', 'b', 'a'}")
        (True, False)
        >>> is_laid_out("{frozenset({'c'}), frozenset({'a', 'b'})}")
        False
    """
    tree = _parsed(text)
    return tree is not None and all(map(_is_sorted, ast.walk(tree)))


def _is_sorted(node: ast.AST) -> bool:
    """Whether a part of a value is one whose sets IPython sorts."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _LAID_OUT
    if isinstance(node, ast.Set):
        inner = [part for element in node.elts for part in ast.walk(element)]
        if any(isinstance(part, ast.Set) for part in inner):
            return False
        return not any(map(_moves, node.elts)) or _in_order(node.elts)
    if isinstance(node, ast.Constant):  # a text that has a set in it is no set
        return not isinstance(node.value, str) or not moves(node.value)
    known = ast.List | ast.Tuple | ast.Dict | ast.Name | ast.UnaryOp | ast.Expression
    return isinstance(node, known | ast.expr_context | ast.unaryop)


def _in_order(elements: list[ast.expr]) -> bool:
    """Whether elements stand as IPython sorts them: as Python does, or else by their texts."""
    for part in (1, 2):  # members of some enums are sorted by their values
        keys = [_key(element, part) for element in elements]
        try:
            ordered = sorted(keys)
        except TypeError:
            keys = [str(key) for key in keys]
            ordered = sorted(keys)
        if keys == ordered:
            return True
    return False


def _key(element: ast.expr, part: int) -> Any:
    """What sorts an element: a literal, the name or value of an enum's member, or its text."""
    if isinstance(element, ast.Tuple):
        return tuple(_key(each, part) for each in element.elts)
    text = ast.unparse(element)
    if isinstance(element, ast.Name) and part == 1:  # a type, which IPython writes as its name
        return f"<class '{text}'>"
    if isinstance(element, ast.Call) and ast.unparse(element.func) == _OBJECT and element.args:
        text = ast.literal_eval(element.args[0])
        member = _MEMBER.fullmatch(text)
        text = member[part] if member else text
    try:
        return ast.literal_eval(text)
    except (SyntaxError, TypeError, ValueError):
        return text


def _moves(element: ast.expr) -> bool:
    """Whether the hash of an element is another in each run."""
    if isinstance(element, ast.Constant):
        return not isinstance(element.value, _NUMBERS)
    if isinstance(element, ast.Tuple | ast.Set):
        return any(map(_moves, element.elts))
    if isinstance(element, ast.Call):
        name = element.func.id if isinstance(element.func, ast.Name) else ""
        if name == "frozenset":
            return any(map(_moves, element.args))
        return name not in _OF_NUMBERS
    return False


def _sets(text: str) -> Iterator[ast.Set]:
    """The sets of two elements or more that stand in a text, in one another too."""
    end = 0
    for start, past in sorted(_braces(text)):
        if start < end or past - start > _LONGEST:  # read already, or nothing that is one line
            continue
        if tree := _parsed(text[start:past]):
            end = past
            for node in ast.walk(tree):
                if isinstance(node, ast.Set) and len(node.elts) > 1:
                    yield node


def _braces(text: str) -> Iterator[tuple[int, int]]:
    """Where braces open and where they close, but for those in strings that stand in others."""
    place, opened = text.find("{"), list[int]()
    while place >= 0 and (mark := _MARK.search(text, place)):
        place = mark.end()
        if mark[0] == "{":
            opened.append(mark.start())
        elif mark[0] == "}" and opened:
            yield opened.pop(), place
        if not opened:  # an apostrophe out here begins no string
            place = text.find("{", place)


def _parsed(text: str) -> ast.Expression | None:
    """A text as an expression, with a call in the place of each object; None if it is none."""
    code = _STRING_OR_OBJECT.sub(lambda m: f"{_OBJECT}({m[0]!r})" if m[0][0] == "<" else m[0], text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a backslash, say
            return ast.parse(code.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
