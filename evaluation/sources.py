"""What made a record: the digest of each source, without what changes no result."""

import ast
import datetime
import hashlib
import io
import platform
import tokenize
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

CHECKOUT = Path(__file__).parents[1]


def digests(patterns: Iterable[str], root: Path = CHECKOUT) -> dict[str, str]:
    """The digest of the code of each source, by its path from the root.

    Args:
        patterns: Of the sources, as `Path.glob` takes them.
        root: Where they are.

    Returns:
        The digests, in the order of the paths.

    Raises:
        ValueError: If a pattern matches nothing.
    """
    found = {}
    for pattern in patterns:
        paths = sorted(root.glob(pattern))
        if not paths:
            raise ValueError(f"no source matches {pattern!r}")
        for path in paths:
            code = code_of(path.read_text(encoding="utf-8"))
            found[path.relative_to(root).as_posix()] = hashlib.sha256(code.encode()).hexdigest()[
                :16
            ]
    return dict(sorted(found.items()))


def changed(recorded: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The sources that are not those of a record: other ones, new ones, and those that are gone."""
    return sorted(
        path for path in recorded.keys() | now.keys() if recorded.get(path) != now.get(path)
    )


def facts(patterns: Iterable[str]) -> dict[str, Any]:
    """When, with which versions and from which sources a record is made."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "sources": digests(patterns),
    }


def refuse_stale(
    file: Path, recorded: Mapping[str, str], patterns: Iterable[str], made_by: str
) -> None:
    """Ends a run if sources have changed since a record was made of them.

    Args:
        file: Where the record is.
        recorded: Its sources, each with its digest.
        patterns: Of the sources, as `Path.glob` takes them.
        made_by: The command that makes it.

    Raises:
        SystemExit: If some have; with their names, and the remedy.
    """
    if stale := changed(recorded, digests(patterns)):
        raise SystemExit(
            f"{file}: it was measured before {', '.join(stale)} changed. Remedy: run {made_by}"
        )


def code_of(text: str) -> str:
    r"""A module's source without comments, docstrings and empty lines.

    Examples:
        >>> print(code_of("x = 1  # why\n\ndef f():\n    'What.'\n    return x\n"))
        x = 1
        def f():
            return x
    """
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())
