"""The data files of each page: those that its cells opened, and those that it declares.

What they held is remembered with the page, so that a build reads the page again once one of them
has changed. Names are relative to the book's folder, with slashes. One that ends with a slash is a
folder that the cells listed, and what is remembered of it are the names of what it held.
"""

import glob
import hashlib
import json
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from verified_book.kernels.audit_hook import names_in, time_and_size
from verified_book.records import follow_pages
from verified_book.regular import digest_of

logger = logging.getLogger(__name__)

# Time and size of a file, or the names in a folder; None of what was not there.
Stamp = list[Any] | None
MISSING = "missing"
CHANGED = "changed while the page ran"  # equals no state that a file can have
# What the page that is being read declares, until it has been read.
_FRONT_MATTER = "verified_book_front_matter"
_DECLARED = "verified_book_declared"


@dataclass(frozen=True)
class PageFiles:
    """What a page has read, as it was then.

    Attributes:
        folder: The page's own folder, where its cells run.
        patterns: The globs that were declared for it.
        opened: What its cells opened to read, or listed.
        digests: A digest of each of those, and of each file that the patterns match.
    """

    folder: str
    patterns: list[str]
    opened: list[str]
    digests: dict[str, str]

    def with_patterns(self, source: Path, patterns: Iterable[str]) -> "PageFiles":
        """The same page as its files are now, with further patterns."""
        found = list(dict.fromkeys([*self.patterns, *patterns]))
        return PageFiles(self.folder, found, self.opened, digests(source, self.opened, found))

    def changed(self, source: Path) -> list[str]:
        """The files that are no longer what they were."""
        now = digests(source, self.opened, self.patterns)
        names = sorted(now.keys() | self.digests.keys())
        return [name for name in names if now.get(name) != self.digests.get(name)]


def digests(source: Path, opened: Iterable[str], patterns: Iterable[str]) -> dict[str, str]:
    """The state of files, and of what the patterns match now."""
    names = {*opened}
    for pattern in patterns:
        names.update(matches(source, pattern))
    return {
        name: digest_of_names(source / name) if name.endswith("/") else digest(source / name)
        for name in sorted(names)
    }


def matches(source: Path, pattern: str) -> list[str]:
    """The files that a pattern matches, from the book's folder; a folder stands for all in it."""
    found = glob.glob(pattern, root_dir=source, recursive=True)
    for name in [name for name in found if (source / name).is_dir()]:
        inside = f"{glob.escape(name)}/**"
        found += glob.glob(inside, root_dir=source, recursive=True, include_hidden=True)
    return [Path(name).as_posix() for name in found if (source / name).is_file()]


def digest(path: Path) -> str:
    """What tells one state of a file from another."""
    try:
        return digest_of(path)
    except IsADirectoryError:
        return "folder"
    except OSError as error:
        return MISSING if not path.exists() else str(error.strerror)


def digest_of_names(folder: Path) -> str:
    """What tells one state of the names in a folder from another."""
    names = names_in(str(folder))
    return MISSING if names is None else hashlib.sha256(json.dumps(names).encode()).hexdigest()


def pages(env: BuildEnvironment) -> dict[str, PageFiles]:
    """The files of all pages that have run, by document name."""
    if not hasattr(env, "verified_book_files"):
        env.verified_book_files = {}  # type: ignore[attr-defined]  # Sphinx's way to extend it
    return env.verified_book_files  # type: ignore[attr-defined]  # likewise


def folder_of(docname: str) -> str:
    """The folder of a page, from the book's."""
    return posixpath.dirname(docname)


def pattern_from(folder: str, pattern: str) -> str:
    """A pattern of a page as one from the book's folder; a leading slash means that folder."""
    start = "" if pattern.startswith("/") else folder
    return posixpath.normpath(posixpath.join(start, pattern.lstrip("/")))


def declared(app: Sphinx, metadata: Any) -> list[str]:
    """The patterns for the page that is being read, as far as they are known before it runs.

    Args:
        app: The build.
        metadata: The metadata of its notebook.
    """
    ours = app.env.temp_data
    if _FRONT_MATTER not in ours:
        ours[_FRONT_MATTER] = _front_matter(app, metadata)
    for_all = [pattern_from("", pattern) for pattern in app.config.verified_book_data]
    return list(dict.fromkeys([*for_all, *ours[_FRONT_MATTER], *ours.get(_DECLARED, [])]))


def _front_matter(app: Sphinx, metadata: Any) -> list[str]:
    """The patterns that a page's front matter declares."""
    own = metadata.get("verified_book") or {}
    if isinstance(own, str):  # a single word says what needs a block
        return []
    wanted = own.get("data", []) if hasattr(own, "get") else None
    if not isinstance(wanted, list) or not all(isinstance(item, str) for item in wanted):
        _warn(
            "verified_book in the front matter is written as {data: [file, ...]}", app.env.docname
        )
        return []
    return [pattern_from(folder_of(app.env.docname), pattern) for pattern in wanted]


def _warn(text: str, docname: str | None = None) -> None:
    """Tells the author of something that may leave a page stale."""
    logger.warning("%s", text, location=docname, type="verified_book", subtype="data")


def remember(app: Sphinx, metadata: Any, log: Path | None) -> None:
    """Remembers the files of the page that has just run.

    Args:
        app: The build.
        metadata: The metadata of its notebook.
        log: What its kernel noted, see :mod:`verified_book.kernels.audit_hook`.
    """
    source, docname = Path(app.srcdir), app.env.docname
    stamps, written = read_log(log)
    patterns = declared(app, metadata)
    found = digests(source, stamps, patterns)
    for name, stamp in stamps.items():
        if _changed_meanwhile(source, name, stamp, written):
            found[name] = CHANGED
    pages(app.env)[docname] = PageFiles(folder_of(docname), patterns, list(stamps), found)


def _changed_meanwhile(source: Path, name: str, stamp: Stamp, written: set[str]) -> bool:
    """Whether others have changed a file, or a folder that was listed, perhaps too late.

    Its own changes are the page's business.
    """
    if not name.endswith("/"):
        return name not in written and stamp != time_and_size(str(source / name))
    folder = name.removeprefix("./")
    inside = (each.removeprefix(folder) for each in written if each.startswith(folder))
    own = {each.partition("/")[0] for each in inside}
    return not set(stamp or ()) ^ set(names_in(str(source / name)) or ()) <= own


def read_log(log: Path | None) -> tuple[dict[str, Stamp], set[str]]:
    """What a kernel has read, with :data:`Stamp` of it then, and what it has written."""
    stamps: dict[str, Stamp] = {}
    written: set[str] = set()
    lines = log.read_bytes().split(b"\n")[:-1] if log and log.is_file() else []
    for kind, name, stamp in map(json.loads, lines):
        if "r" in kind:
            stamps.setdefault(name, stamp)
        if "w" in kind:
            written.add(name)
    return stamps, written


def read_docinfo(app: Sphinx, doctree: nodes.document) -> None:
    """Finds what a reStructuredText page declares, before its cells run."""
    if app.env.docname in pages(app.env):  # a page in Markdown, which has run already
        return
    for node in doctree.findall(nodes.docinfo):
        for child in node.findall(nodes.field):
            if child[0].astext() == "verified_book_data":
                names = child[1].astext().replace("\n", ",").split(",")
                folder = folder_of(app.env.docname)
                found = [pattern_from(folder, name.strip()) for name in names if name.strip()]
                app.env.temp_data.setdefault(_DECLARED, []).extend(found)


def check_page(app: Sphinx, doctree: nodes.document) -> None:
    """Warns of what a page declares and what is not there."""
    files = pages(app.env).get(app.env.docname)
    for_all = [pattern_from("", pattern) for pattern in app.config.verified_book_data]
    for pattern in files.patterns if files else []:
        if pattern not in for_all and not matches(Path(app.srcdir), pattern):
            _warn(f"no data file matches {pattern!r} from the book's folder", app.env.docname)


def check_configuration(app: Sphinx, config: Config) -> None:
    """Warns of a pattern in the configuration that matches nothing."""
    for pattern in config.verified_book_data:
        if not matches(Path(app.srcdir), pattern_from("", pattern)):
            _warn(f"verified_book_data: no file matches {pattern!r} from the book's folder")


def outdated(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """The pages of which a file has changed since they ran."""
    found: list[str] = []
    for docname, files in pages(env).items():
        names = files.changed(Path(app.srcdir)) if docname not in added | changed | removed else []
        if names:
            logger.info("%s: %s changed since it ran", docname, ", ".join(names))
            found.append(docname)
    return found


def warn_of_changes(app: Sphinx, env: BuildEnvironment) -> None:
    """Names the pages that may be stale since a file changed while this very build ran."""
    for docname, files in pages(env).items():
        names = files.changed(Path(app.srcdir))
        if names:
            _warn(f"{', '.join(names)} changed while the book was built; build it again", docname)


def setup(app: Sphinx) -> None:
    """Keeps the files in step with the pages."""
    app.connect("config-inited", check_configuration)
    app.connect("doctree-read", read_docinfo, priority=300)  # before RST cells run
    app.connect("doctree-read", check_page, priority=900)
    app.connect("env-get-outdated", outdated)
    follow_pages(app, pages)
