"""Finds the book that a page belongs to, and how Sphinx is to be configured for it."""

import contextlib
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from verified_book.regular import read_regular

_REPOSITORY = (".git", ".hg")


class CommandError(Exception):
    """What keeps a command from doing anything, in one sentence for whoever called it."""


class ForeignPageError(CommandError):
    """A file is no page of its book."""


@dataclass(frozen=True)
class Book:
    """A book, or a folder of pages that are in none.

    Attributes:
        folder: Where its pages and its configuration are.
        kind: How it is built; the pages of a plain folder are each built by themselves.
        alone: The page that is built by itself.
    """

    folder: Path
    kind: Literal["Jupyter Book", "Sphinx", "page"]
    alone: str = ""

    @property
    def confdir(self) -> str | None:
        """The folder of `conf.py`, as Sphinx takes it; None if there is none."""
        return str(self.folder) if self.kind == "Sphinx" else None

    @property
    def shown(self) -> str:
        """The book in words."""
        return f"the book in {shown(self.folder)}"

    def overrides(self) -> dict[str, Any]:
        """The configuration that Sphinx is given beside what is in `conf.py`."""
        if self.kind == "Sphinx":
            return {}
        if self.kind == "Jupyter Book":
            return _configuration_of_jupyter_book(self.folder)
        # Only this page: Sphinx would look through all that is below its folder.
        others = [_literally(entry.name) for entry in os.scandir(self.folder) if entry.is_dir()]
        return {
            "extensions": ["verified_book"],
            "root_doc": Path(self.alone).stem,
            "include_patterns": [_literally(self.alone)],
            "exclude_patterns": others,
            "nb_execution_mode": "cache",
            "nb_execution_allow_errors": True,
        }

    def builds(self) -> Path:
        """The folder in which the book's site is built, with its execution cache."""
        if self.kind == "Jupyter Book":
            return self.folder / "_build"
        if self.kind == "Sphinx":
            apart = self.folder.parent / "build"
            if self.folder.name == "source" and apart.is_dir():
                return apart
            # Where its configuration does not exclude it, what is put there would become pages.
            conf = self.folder.joinpath("conf.py").read_text(encoding="utf-8", errors="replace")
            if self.folder.joinpath("_build").is_dir() or "_build" in conf:
                return self.folder / "_build"
        from platformdirs import user_cache_path

        digest = hashlib.sha256(str(self.folder / self.alone).encode()).hexdigest()[:12]
        return user_cache_path("verified_book") / f"{self.folder.name}-{digest}"


@contextlib.contextmanager
def scratch(book: Book, builds: Path | None = None) -> Iterator[Path]:
    """A folder for a run beside the book's own builds, so that they share an execution cache.

    Where nothing can be written it is a temporary one.

    Args:
        book: The book.
        builds: A folder with builds and a cache of its own, in place of the book's.
    """
    folder = (builds or book.builds()).absolute() / "verified_book"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        with tempfile.TemporaryFile(dir=folder.parent):
            pass
    except OSError:
        with tempfile.TemporaryDirectory(prefix="verified-book-") as temporary:
            yield Path(temporary, "verified_book")
    else:
        yield folder


def book_of(path: Path) -> Book:
    """The book that a page or a folder is in: the nearest one above it in its repository."""
    start = path if path.is_dir() else path.parent
    for folder in (start, *start.parents):
        if (found := book_at(folder)) and start.is_relative_to(found.folder):
            return found
        if any((folder / name).exists() for name in _REPOSITORY):
            break
    return Book(start, "page", "" if path.is_dir() else path.name)


def book_at(folder: Path) -> Book | None:
    """The book whose configuration is in a folder."""
    toc, conf = folder / "_toc.yml", folder / "conf.py"
    if toc.is_file() and (folder / "_config.yml").is_file():
        # `jupyter-book config sphinx` writes a conf.py, for builds without Jupyter Book.
        if not conf.is_file() or _has_jupyter_book():
            return Book(toc.resolve().parent, "Jupyter Book")
    return Book(folder, "Sphinx") if conf.is_file() else None


@dataclass
class Request:
    """What of a book shall be run.

    Attributes:
        pages: Pages that were named; each must be one of the book.
        folders: Folders of which all pages are meant.
    """

    book: Book
    pages: list[Path]
    folders: list[Path]


def requests_of(names: list[str]) -> list[Request]:
    """What to run for the paths of pages and folders, book by book.

    Raises:
        CommandError: If a path does not exist, or a folder is in no book.
    """
    found: dict[Book, Request] = {}
    for name in names:
        given = Path(name)
        if not os.path.exists(given):  # also where the name is too long
            raise CommandError(f"{name}: there is no such page or folder")
        path = given.resolve() if given.is_dir() else given.parent.resolve() / given.name
        book = book_of(path)
        if path.is_dir() and book.kind == "page":
            raise CommandError(f"{name}: this folder is in no book; name its pages, or a book")
        request = found.setdefault(book, Request(book, [], []))
        (request.folders if path.is_dir() else request.pages).append(path)
    return list(found.values())


def shown(path: str | Path) -> str:
    """A path as seen from the working directory.

    Examples:
        >>> shown(Path.cwd() / "book" / "page.md")
        'book/page.md'
    """
    try:
        return Path(os.path.relpath(path)).as_posix()
    except ValueError:  # on another drive
        return str(path)


def _literally(name: str) -> str:
    """A pattern of Sphinx's that matches a name and nothing else."""
    return re.sub(r"([\[*?])", r"[\1]", name)


def _has_jupyter_book() -> bool:
    try:
        import jupyter_book.config  # noqa: F401
    except ImportError:
        return False
    return True


def _configuration_of_jupyter_book(folder: Path) -> dict[str, Any]:
    """Sphinx's configuration as `jupyter-book build` makes it."""
    if not _has_jupyter_book():
        raise CommandError(
            f"{shown(folder)}: this is a Jupyter Book 1 (it has _config.yml and _toc.yml), "
            "which is not installed here; run: python -m pip install 'jupyter-book<2'"
        )
    from jupyter_book.config import get_final_config

    for name in ("_config.yml", "_toc.yml"):
        try:
            content = yaml.safe_load(read_regular(folder / name).decode())
        except OSError as error:
            raise CommandError(f"{shown(folder / name)}: {error.strerror}") from error
        except (yaml.YAMLError, UnicodeError, RecursionError) as error:
            where = shown(folder / name)
            raise CommandError(f"{where}: this is no YAML: {one_line(error)}") from error
        if not isinstance(content, dict):
            raise CommandError(f"{shown(folder / name)}: this holds no settings")
    with contextlib.redirect_stdout(sys.stderr):  # it prints what it thinks of them
        config, _ = get_final_config(
            user_yaml=folder / "_config.yml",
            cli_config={
                "external_toc_path": folder.joinpath("_toc.yml").as_posix(),
                "latex_individualpages": False,
            },
            sourcedir=folder,
            validate=False,  # the book's build does; it takes a second
        )
    return config


def one_line(error: BaseException) -> str:
    """What an exception says, in one line; of a traceback in it, the end."""
    head, found, traceback = str(error).partition("Traceback (most recent call last)")
    if found:
        return " ".join(f"{head} {traceback.strip().splitlines()[-1]}".split())
    return " ".join(str(error).split()) or type(error).__name__
