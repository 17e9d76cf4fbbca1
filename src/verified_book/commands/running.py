"""Builds named pages of a book, and of those nothing but what their checks say."""

import contextlib
import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO, cast

from sphinx.application import Sphinx
from sphinx.builders import Builder
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import SphinxError
from sphinx.util.docutils import docutils_namespace, patch_docutils
from sphinx.util.logging import WarningStreamHandler

from verified_book.accepting.mode import TWICE, VARIABLE
from verified_book.commands.books import (
    Book,
    CommandError,
    ForeignPageError,
    Request,
    one_line,
    scratch,
    shown,
)
from verified_book.commands.terminal import Terminal
from verified_book.kernels import made
from verified_book.outputs.pages import Report
from verified_book.records import Failure, PageRecord, records

_COLORS = re.compile(r"\x1b\[[\d;]*m")
# What the log says of these is told by the outcome.
_IN_OUTCOME = {("verified_book", "failure"), ("verified_book", "failed"), ("mystnb", "exec")}


class CheckBuilder(Builder):
    """Reads and runs pages and writes nothing."""

    name = "verified-book"
    allow_parallel = True

    def get_outdated_docs(self) -> list[str]:
        """No page: nothing is written."""
        return []

    def get_target_uri(self, docname: str, typ: str | None = None) -> str:
        """No address: nothing is written."""
        return ""

    # Sphinx declares these two final, for builders that write.

    def build(self, *args: Any, **kwargs: Any) -> None:  # type: ignore[misc]
        """Reads the pages; what would resolve the references to all others is left out."""
        self.read()

    def read_doc(self, docname: str, **kwargs: Any) -> None:  # type: ignore[misc]
        """Reads a page, and names it where a parser or an extension raises."""
        try:
            super().read_doc(docname, **kwargs)
        except Exception as error:
            raise CommandError(
                f"{shown(self.env.doc2path(docname))}: the page cannot be read: "
                f"{type(error).__name__}: {one_line(error)}; mend its front matter, a directive, "
                "or an extension"
            ) from error


class _App(Sphinx):
    """Sphinx with :mod:`verified_book`, whether or not the configuration lists it."""

    def setup_extension(self, extname: str) -> None:
        # A project without executed pages may have it; both together cannot be.
        super().setup_extension("myst_nb" if extname == "myst_parser" else extname)

    def preload_builder(self, name: str) -> None:
        # Here all extensions of the configuration are loaded, and it is not yet evaluated.
        self.setup_extension("verified_book")
        if name == CheckBuilder.name:
            self.add_builder(CheckBuilder)
            self.connect("config-inited", _prepare, priority=1)
        super().preload_builder(name)


def _prepare(app: Sphinx, config: Config) -> None:
    """Sets what differs from a build of the book."""
    # Whoever names a page wants it to be run, also where the site shows stored outputs.
    if config.nb_execution_mode == "off":
        config.nb_execution_mode = "cache"
    made.exclude(config, Path(app.srcdir), made.sites_in(Path(app.srcdir)))


@dataclass(frozen=True)
class Page:
    """A page that was run."""

    path: Path
    record: PageRecord


@dataclass
class Outcome:
    """What came of a run.

    Attributes:
        failures: Those of all pages, and of the book as a whole.
    """

    pages: list[Page] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


def _from_here(text: str, folder: Path) -> str:
    """A message without colors, with the paths in a book as seen from the working directory."""
    prefix = "" if (here := shown(folder)) == "." else f"{here}/"
    return _COLORS.sub("", text).replace(f"{folder}{os.sep}", prefix)


class _Warnings:
    """A stream that passes on each warning that Sphinx writes, with the paths that people use."""

    encoding = "utf-8"

    def __init__(self, book: Book, warn: Callable[[str], None]) -> None:
        self._folder, self._warn = book.folder, warn

    def write(self, text: str) -> None:
        if message := text.strip():
            self._warn(_from_here(message, self._folder))

    def flush(self) -> None:
        """Nothing is held back."""


def run(
    request: Request,
    terminal: Terminal,
    mode: str = "0",
    twice: bool = False,
    jobs: int = 1,
    builds: Path | None = None,
) -> Outcome:
    """Runs the pages of a book that were asked for.

    Args:
        request: The pages.
        terminal: Where it says what is going on.
        mode: The value of `VERIFIED_BOOK_ACCEPT`.
        twice: Whether each page runs twice, to see what moves.
        jobs: How many pages are read at once.
        builds: A folder with a cache of its own, in place of that of the book's builds.

    Raises:
        CommandError: If a page is none of the book's, or the book cannot be configured.
    """
    with (
        _environment({VARIABLE: mode, TWICE: "1" if twice else "0"}),
        _edits_shown(request.book, terminal),
        tempfile.TemporaryDirectory(prefix="verified-book-") as doctrees,
        scratch(request.book, builds) as out,
        _errors_in_a_sentence(request.book),
        patch_docutils(request.book.confdir),
        docutils_namespace(),
    ):
        book = request.book
        cache = {"nb_execution_cache_path": str(out.parent / made.CACHE)} if builds else {}
        app = _App(
            srcdir=book.folder,
            confdir=book.confdir,
            outdir=out,
            doctreedir=doctrees,
            buildername=CheckBuilder.name,
            confoverrides=book.overrides() | cache,
            status=None,
            warning=cast(TextIO, _Warnings(book, terminal.warn)),
            freshenv=True,
            parallel=jobs,
        )
        for handler in logging.getLogger("sphinx").handlers:
            if isinstance(handler, WarningStreamHandler):
                handler.addFilter(_is_news)
        chosen = _docnames(app, request)
        _restrict(app, chosen)
        _show_progress(app, chosen, terminal)
        return _built(app, chosen)


def _built(app: Sphinx, chosen: dict[str, Path]) -> Outcome:
    """Builds, and gathers what came of the chosen pages."""
    found = Outcome()
    reports: list[Report] = []
    app.connect("verified-book-report", lambda app, env, report: reports.append(report))
    app.build()
    by_name = records(app.env)
    found.pages = [Page(path, by_name.get(name, PageRecord())) for name, path in chosen.items()]
    parts = [page.record.failures for page in found.pages]
    parts += [report.failures for report in reports]
    found.failures = sorted(
        (failure for part in parts for failure in part),
        key=lambda failure: (failure.source, failure.line),
    )
    return found


@contextlib.contextmanager
def _errors_in_a_sentence(book: Book) -> Iterator[None]:
    """Makes a sentence of whatever Sphinx or an extension raises."""
    try:
        yield
    except CommandError:
        raise
    except SphinxError as error:
        raise CommandError(f"{book.shown}: {error.category}: {one_line(error)}") from error
    except Exception as error:
        raise CommandError(
            f"{book.shown} cannot be built: {type(error).__name__}: {one_line(error)}"
        ) from error


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a warning says what the outcome does not."""
    return (getattr(record, "type", ""), getattr(record, "subtype", "")) not in _IN_OUTCOME


def _docnames(app: Sphinx, request: Request) -> dict[str, Path]:
    """The names by which Sphinx knows the pages that were asked for."""
    app.env.find_files(app.config, app.builder)
    paths = {name: Path(app.env.doc2path(name)) for name in sorted(app.env.found_docs)}
    paths = {name: path.parent.resolve() / path.name for name, path in paths.items()}
    names = {path: name for name, path in paths.items()}
    chosen: set[str] = set()
    for path in request.pages:
        if path not in names:
            raise ForeignPageError(f"{shown(path)}: {_why_not(app, request.book, path)}")
        chosen.add(names[path])
    for folder in request.folders:
        inside = {name for name, path in paths.items() if path.is_relative_to(folder)}
        if not inside:
            raise CommandError(
                f"{shown(folder)}: no page of {request.book.shown} is in this folder"
            )
        chosen |= inside
    return {name: path for name, path in paths.items() if name in chosen}


def _why_not(app: Sphinx, book: Book, path: Path) -> str:
    """Why a file is not a page of its book."""
    suffixes = sorted(app.config.source_suffix)
    if not path.name.endswith(tuple(suffixes)):
        return f"this is no page: its name ends in none of {', '.join(suffixes)}"
    if getattr(app.config, "external_toc_exclude_missing", False):
        return f"this is no page of {book.shown}: its _toc.yml does not list it"
    return f"this is no page of {book.shown}: its configuration excludes it"


def _restrict(app: Sphinx, chosen: dict[str, Path]) -> None:
    """Lets Sphinx read the chosen pages only."""

    def restrict(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
        docnames[:] = [name for name in docnames if name in chosen]
        app.config.master_doc = docnames[0]  # it demands that this one is read

    app.connect("env-before-read-docs", restrict, priority=1000)


def _show_progress(app: Sphinx, paths: dict[str, Path], terminal: Terminal) -> None:
    """Names each page when it is its turn."""

    def show(app: Sphinx, docname: str, content: list[str]) -> None:
        if docname in paths:  # not a file that a page includes
            terminal.progress(shown(paths[docname]))

    app.connect("source-read", show, priority=1)


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Environment variables for the time of a run."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class _EditLog(logging.Handler):
    """Passes on what is logged below the level of a warning."""

    def __init__(self, book: Book, says: Callable[[str], None]) -> None:
        super().__init__()
        self._folder, self._says = book.folder, says
        self.addFilter(lambda record: record.levelno < logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        self._says(_from_here(record.getMessage(), self._folder))


@contextlib.contextmanager
def _edits_shown(book: Book, terminal: Terminal) -> Iterator[None]:
    """Prints what accepting blocks says of itself."""
    logger = logging.getLogger("sphinx.verified_book.accepting")
    handler = _EditLog(book, terminal.edit)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
