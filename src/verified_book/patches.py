"""Every name of another package that is replaced, or that is private there and used all the same.

Such names may go or change with any release. The one table says why each is needed, and which
versions the tests have run with. A build with others says so; one that lacks a name ends.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import metadata
from pkgutil import resolve_name
from types import FunctionType
from typing import Any

from sphinx.errors import ExtensionError
from sphinx.util import logging

logger = logging.getLogger(__name__)

Minor = tuple[int, int]


@dataclass(frozen=True)
class Package:
    """A package with names that may go.

    Attributes:
        name: The name of its distribution.
        oldest: The oldest minor version that the tests have run with.
        newest: The newest one.
        patches: The names, each with what it is replaced or used for.
        since: The first versions that have those which older ones do without.
    """

    name: str
    oldest: Minor
    newest: Minor
    patches: dict[str, str]
    since: dict[str, Minor] = field(default_factory=dict)

    @property
    def installed(self) -> str:
        """Its version."""
        return metadata.version(self.name)

    @property
    def remedy(self) -> str:
        """How to install a version that was tested."""
        least, most = (".".join(map(str, each)) for each in (self.oldest, self.newest))
        return f'python -m pip install "{self.name}>={least},<={most}.999"'


_RUN = "cells run in kernels of the build, and whatever happens ends their page only"
_INLINE = "in inline mode a kernel that dies ends its page only"
_PARALLEL = "a process that dies while it reads pages ends the build, which would wait for ever"
_CHUNKS = "no reader works through the last pages while the others have nothing left"
_ORDER = "what child processes print stands where it was printed"

TABLE = (
    Package(
        "myst-nb",
        (1, 1),
        (1, 4),
        {
            "myst_nb.core.execute.cache.single_nb_execution": _RUN,
            "myst_nb.core.execute.direct.single_nb_execution": _RUN,
            "myst_nb.core.execute.inline.ModifiedNotebookClient": _RUN,
            "myst_nb.core.execute.NotebookClientInline": _INLINE,
            "myst_nb.core.execute.base.NotebookClientBase._kwargs": _INLINE,
            "myst_nb.core.execute.inline.NotebookClientInline._cell_error": _INLINE,
            "myst_nb.core.execute.inline.NotebookClientInline._client": _INLINE,
            "myst_nb.core.execute.inline.NotebookClientInline._exc_string": _INLINE,
            "myst_nb.core.execute.inline.NotebookClientInline._last_cell_executed": _INLINE,
            "myst_nb.core.execute.NotebookClientCache": "a cache that fails costs time only",
            "myst_nb.core.execute.cache.get_cache": "a page runs anew when its files change",
            "myst_nb.sphinx_.create_client": "outputs are checked as the cells made them",
        },
    ),
    Package(
        "jupyter-cache",
        (1, 0),
        (1, 0),
        {
            "jupyter_cache.cache.main.JupyterCacheBase._get_notebook_path_cache": (
                "what a page has read is noted next to its outputs"
            ),
        },
    ),
    Package("nbclient", (0, 10), (0, 11), {"nbclient.NotebookClient._async_cleanup_kernel": _RUN}),
    Package(
        "ipykernel",
        (6, 29),
        (7, 4),
        {
            "ipykernel.iostream.OutStream._exc": _ORDER,
            "ipykernel.iostream.OutStream._fid": _ORDER,
            "ipykernel.iostream.OutStream._is_master_process": _ORDER,
            "ipykernel.iostream.OutStream._original_stdstream_copy": _ORDER,
            "ipykernel.iostream.OutStream._should_watch": _ORDER,
            "ipykernel.iostream.OutStream._watch_pipe_fd": _ORDER,
            "ipykernel.zmqshell.ZMQInteractiveShell._last_traceback": (
                "a first cell that awaits and raises a group has a reply"
            ),
        },
    ),
    Package(
        "sphinx",
        (7, 4),
        (9, 0),
        {
            "sphinx.builders.ParallelTasks": _PARALLEL,
            "sphinx.builders.make_chunks": _CHUNKS,
            "sphinx.util.parallel.ParallelTasks._args": _PARALLEL,
            "sphinx.util.parallel.ParallelTasks._join_one": _PARALLEL,
            "sphinx.util.parallel.ParallelTasks._precvs": _PARALLEL,
            "sphinx.util.parallel.ParallelTasks._procs": _PARALLEL,
            "sphinx.domains.Domain.merge_domaindata": "a domain without data is read in parallel",
            "sphinx.parsers.Parser._config": "cells in reStructuredText run",
            "sphinx.parsers.Parser._env": "cells in reStructuredText run",
        },
        since={"sphinx.parsers.Parser._config": (9, 0), "sphinx.parsers.Parser._env": (9, 0)},
    ),
    Package(
        "docutils",
        (0, 20),
        (0, 22),
        {
            "docutils.parsers.rst.directives.directive": "any page in reStructuredText is accepted",
            "docutils.parsers.rst.roles.role": "any page in reStructuredText is accepted",
        },
    ),
)


def require(table: Iterable[Package] = TABLE) -> None:
    """Looks for each name.

    Raises:
        ExtensionError: If one is gone.
    """
    for package in table:
        for name, why in package.patches.items():
            wanted = _minor(package.installed) >= package.since.get(name, (0, 0))
            if wanted and not _exists(name):
                raise ExtensionError(
                    f"verified_book does not know {package.name} {package.installed}: it has no "
                    f"{name}, by which {why}. Remedy: {package.remedy}"
                )


def report(table: Iterable[Package] = TABLE) -> None:
    """Says which installed versions the tests have not run with."""
    for package in table:
        if not package.oldest <= _minor(package.installed) <= package.newest:
            oldest, newest = (".".join(map(str, each)) for each in (package.oldest, package.newest))
            logger.info(
                "verified_book was tested with %s %s to %s, and not with %s, of which it replaces "
                "or uses %s. If the build misbehaves: %s",
                *(package.name, oldest, newest, package.installed),
                *(", ".join(package.patches), package.remedy),
            )


def _minor(version: str) -> Minor:
    """Major and minor number of a version."""
    major, minor = [*map(int, re.findall(r"\d+", version)), 0][:2]
    return major, minor


def _exists(full: str) -> bool:
    """Whether there is such a name: also an attribute that a class declares, or gives to `self`."""
    path, _, name = full.rpartition(".")
    try:
        owner = resolve_name(path)
    except (ImportError, AttributeError):
        return False
    methods = [each for each in vars(owner).values() if isinstance(each, FunctionType)]
    in_methods = isinstance(owner, type) and any(name in m.__code__.co_names for m in methods)
    return hasattr(owner, name) or name in getattr(owner, "__annotations__", ()) or in_methods


class Replacements:
    """Names of the table that stand for something else until they are restored."""

    def __init__(self, table: Iterable[Package] = TABLE) -> None:
        self._known = {name for package in table for name in package.patches}
        self._originals: list[tuple[Any, str, Any]] = []

    def put(self, names: dict[str, Any]) -> None:
        """Replaces `package.module.name` by a value each."""
        for full, value in names.items():
            if full not in self._known:
                raise ValueError(f"{full} does not stand in verified_book.patches.TABLE")
            path, _, name = full.rpartition(".")
            module = resolve_name(path)
            self._originals.append((module, name, getattr(module, name)))
            setattr(module, name, value)

    def restore(self) -> None:
        """Puts every original back."""
        while self._originals:
            setattr(*self._originals.pop())
