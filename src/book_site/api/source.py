"""Shows the source of what a page describes, without the docstrings that it has described."""

import ast
import inspect
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from docutils import nodes

from book_site.api.entries import Entry, entries

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def show(app: "Sphinx", doctree: nodes.document) -> None:
    """Puts the source of each object below its description, folded."""
    if app.env.docname not in app.config.book_site_api:
        return
    for entry in entries(doctree):
        found = _source(entry)
        if found is None:
            continue
        place, text = found
        block = nodes.literal_block(text, text, language="python")
        shown = [
            nodes.raw("", f'<details class="api-source"><summary>{place}</summary>', format="html"),
            block,
            nodes.raw("", "</details>", format="html"),
        ]
        entry.content.extend(shown)


def _source(entry: Entry) -> tuple[str, str] | None:
    """The file and line of what autodoc has imported, and its source."""
    value: Any = sys.modules.get(entry.module)
    for name in entry.title.split("."):
        value = getattr(value, name, None)
    try:
        lines, first = inspect.getsourcelines(value)
    except (TypeError, OSError):
        return None
    path = inspect.unwrap(value).__module__.replace(".", "/") + ".py"
    return f"Source: {path}, line {first}", without_docstrings("".join(lines))


def without_docstrings(source: str) -> str:
    r"""A function or a class without its docstrings, where they are not all that it has.

    Examples:
        >>> print(without_docstrings('def f(x):\n    "Says."\n    return x\n'))
        def f(x):
            return x
        >>> print(without_docstrings('class E(Exception):\n    "Says."\n'))
        class E(Exception):
            "Says."
    """
    text = textwrap.dedent(source)
    lines: list[str | None] = list(text.splitlines())
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first, *rest = node.body
        if rest and ast.get_docstring(node, clean=False) is not None:
            end = first.end_lineno or first.lineno
            if end < len(lines) and not lines[end]:  # the empty line below it
                end += 1
            lines[first.lineno - 1 : end] = [None] * (end - first.lineno + 1)
    return "\n".join(line for line in lines if line is not None).rstrip()
