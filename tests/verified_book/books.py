"""Small books for the tests: pages written once and rendered as MyST and as RST, and their builds.

The parts of a page are strings, its paragraphs and headings, and `Block`s, its directives. Each
build is a process of its own that does what the command line does which authors use.
"""

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.verified_book import forks

CONFIG = """\
title: A small book
author: someone
copyright: "2026"
only_build_toc_files: true
execute: {execute_notebooks: cache, allow_errors: true, timeout: 60}
html: {use_issues_button: false, use_repository_button: false}
sphinx:
  recursive_update: true
  config:
    extensions: [sphinx_togglebutton, myst_nb, jupyter_book, sphinx_comments, sphinx_external_toc,
      sphinx_book_theme, sphinx_exercise, sphinx_multitoc_numbering, verified_book.claims,
      verified_book.notebooks, verified_book.offline, verified_book.parallel]
    verified_book_sources: [../src/**/*.py]
    verified_book_distributions: [numpy]
    verified_book_notes: {book: this book, other: other notes}
    nb_merge_streams: true
    html_theme_options: {navbar_persistent: []}
"""

FRONT_MATTER = """\
---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
"""

EVIDENCE = '''\
"""What `layer_checks` is for the real book."""


class Evidence:
    def __init__(self, kind, error=None, tolerance=None, text="", pattern=None):
        self.text = text or f"{kind}: {error}, tolerance {tolerance}"
        self.evidence = {"kind": kind, "error": error, "tolerance": tolerance}
        self.evidence["pattern"] = pattern or self.text

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": self.text}, {"evidence": self.evidence}
'''


@dataclass(frozen=True)
class Block:
    """A directive; parts in its body are nested in it."""

    name: str
    body: "str | Parts" = ""
    argument: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def lines(self, suffix: str) -> list[str]:
        """The source of the directive."""
        body = self.body.split("\n") if isinstance(self.body, str) else rendered(self.body, suffix)
        options = [f":{name}: {value}".rstrip() for name, value in self.options.items()]
        head = (
            f"{self.name}:: {self.argument}"
            if suffix == ".rst"
            else f"{{{self.name}}} {self.argument}"
        )
        if suffix == ".rst":
            if self.name not in ("code-cell", "expect-output"):
                body = [rst_roles(line) for line in body]
            inside = [f"   {line}".rstrip() for line in [*options, "", *body]]
            return [f".. {head.rstrip()}", *inside]
        ticks = [len(run) for line in body for run in re.findall("`{3,}", line)]
        fence = "`" * (max(ticks, default=2) + 1)
        return [f"{fence}{head.rstrip()}", *options, *body, fence]


Part = str | Block
Parts = Sequence[Part]


def cell(code: str, tags: str = "", shows: str = "") -> Block:
    """A code cell with tags, divided by commas, and the part of a claim that it is for."""
    options = {"tags": f"[{tags}]"} if tags else {}
    return Block("code-cell", code, "ipython3", options | ({"shows": shows} if shows else {}))


def expect(text: str) -> Block:
    """An expected block."""
    return Block("expect-output", text)


def claim(
    name: str, statement: str | Parts = "It is so.", note: str = "book", verdict: str = "holds"
) -> Block:
    """A claim."""
    return Block("claim", statement, name, {"note": note, "verdict": verdict})


def rendered(parts: Parts, suffix: str) -> list[str]:
    """The lines of a page or of a nested body, an empty one after each part."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Block):
            lines += part.lines(suffix)
        elif suffix == ".md":
            lines += part.split("\n")
        elif part.startswith("#"):
            marks, _, title = rst_roles(part).partition(" ")
            lines += [title, {"#": "=", "##": "-"}[marks] * len(title)]
        else:
            lines += rst_roles(part).split("\n")
        lines.append("")
    return lines


def rst_roles(text: str) -> str:
    """Text with its roles written as in reStructuredText."""
    return re.sub(r"\{([\w:]+)\}(`[^`]+`)", r":\1:\2", text)


def page(parts: Parts, suffix: str) -> str:
    """The source of a page; a kernel runs for those with cells only."""
    text = "\n".join(rendered(parts, suffix))
    return FRONT_MATTER + text if suffix == ".md" and "{code-cell}" in text else text


def line_of(part: Part, text: str, suffix: str) -> int:
    """The line, from 1, on which a part of a page begins; it must be there once."""
    lines = [line.strip() for line in text.split("\n")]  # nested in another part or not
    wanted = [line.strip() for line in rendered([part], suffix)[:-1]]
    places = range(len(lines) - len(wanted) + 1)
    found = [start + 1 for start in places if lines[start : start + len(wanted)] == wanted]
    if len(found) != 1:
        raise ValueError(f"{part} begins on the lines {found}, not on one")
    return found[0]


@dataclass(frozen=True)
class Failure:
    """A failure as the log names it."""

    file: str
    line: int
    message: str
    remedy: str


@dataclass(frozen=True)
class Build:
    """What a build has said and left behind; its pages as they were then."""

    status: int
    log: str
    site: Path
    pages: Mapping[str, str]

    @property
    def failures(self) -> list[Failure]:
        """Everything in the log that has file, line and remedy."""
        entries = re.split(r"^(?=\S+:\d+: (?:ERROR|WARNING): )", self.log, flags=re.MULTILINE)
        pattern = re.compile(r"(\S+):(\d+): ERROR: (.*?)\n  Remedy: ([^\n]*)", re.DOTALL)
        found = [match.groups() for entry in entries if (match := pattern.match(entry))]
        kind = " [verified_book.failure]"  # which Sphinx 8 adds
        return [
            Failure(Path(file).name, int(line), message, remedy.removesuffix(kind))
            for file, line, message, remedy in found
        ]

    @property
    def executed(self) -> set[str]:
        """The names of the pages whose cells ran."""
        paths = re.findall(r"^(\S+): Executing notebook", self.log, re.MULTILINE)
        return {Path(path).name for path in paths}

    @property
    def claims(self) -> list[dict[str, Any]]:
        """The published list of claims."""
        found: list[dict[str, Any]] = json.loads(self.pages["claims.json"])["claims"]
        return found

    def article(self, name: str) -> str:
        """What a page shows, without the theme around it."""
        page = self.pages[name]
        return page[page.index("<article") : page.index("</article>")]

    def sidebar(self, name: str) -> str:
        """The table of contents beside a page."""
        return self.pages[name].partition('<nav class="bd-links')[2].partition("</nav>")[0]


def words(html: str) -> str:
    """The text of a piece of a page."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


class Book:
    """A book in a folder of its own, with a package that its cells import."""

    def __init__(self, folder: Path, pages: Mapping[str, Parts], config: str = CONFIG) -> None:
        self.folder = folder
        self.write("src/evidence.py", EVIDENCE)
        self.write("book/_config.yml", config)
        self.texts: dict[str, str] = {}
        for name, parts in pages.items():
            self.write_page(name, parts)
        self.write_toc(list(pages))

    def write(self, name: str, text: str) -> None:
        """Writes a file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        """The text of a page as it is now."""
        return (self.folder / "book" / name).read_text(encoding="utf-8")

    def write_page(self, name: str, parts: Parts) -> None:
        """Writes a page in the format that its name asks for."""
        self.texts[name] = page(parts, Path(name).suffix)
        self.write(f"book/{name}", self.texts[name])

    def write_toc(self, names: Sequence[str]) -> None:
        """Writes the table of contents, the first page being its root."""
        root, *others = [name.partition(".")[0] for name in names]
        chapters = ["chapters:", *[f"- file: {name}" for name in others]] if others else []
        self.write("book/_toc.yml", "\n".join(["format: jb-book", f"root: {root}", *chapters]))

    def line_of(self, part: Part, name: str) -> int:
        """The line on which a part of a page begins."""
        return line_of(part, self.texts[name], Path(name).suffix)

    def build(self, *options: str) -> Build:
        """Runs `jupyter-book build` with the options; cells can import from `src`."""
        site = self.folder / "book/_build/html"
        path = os.pathsep.join([str(self.folder / "src"), os.environ.get("PYTHONPATH", "")])
        arguments = ["build", "book", *options]
        return run(forks.jupyter_book, arguments, site, self.folder, PYTHONPATH=path)


def run(
    program: forks.Program,
    arguments: Sequence[str],
    site: Path,
    folder: Path,
    accept: bool = False,
    **environment: str,
) -> Build:
    """Runs a program that writes a site."""
    environment["VERIFIED_BOOK_ACCEPT"] = "1" if accept else ""
    with tempfile.TemporaryDirectory() as temporary:
        done = forks.Run(program, arguments, folder, environment, Path(temporary, "log"))
        status, log = done.wait(), done.log
    files = [*site.glob("**/*.html"), *site.glob("claims.json")]
    pages = {str(path.relative_to(site)): path.read_text(encoding="utf-8") for path in files}
    return Build(status, log, site, pages)


def sphinx_build(
    folder: Path, conf: str, pages: Mapping[str, str], *options: str, status: int = 0
) -> Build:
    """Writes a book for plain Sphinx and builds it strictly, as it stands, into `folder/site`.

    Args:
        folder: Where it is built; `folder/book` may have other files already.
        conf: Its `conf.py`.
        pages: Its files, by name.
        options: What else the command line has.
        status: The exit status that is expected; one that differs fails the test with the log.
    """
    book, site = folder / "book", folder / "site"
    for name, text in {"conf.py": conf, **pages}.items():
        path = book / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    strict = ["-W", "-n", "--keep-going", "--no-color"]
    build = run(forks.sphinx, [*strict, *options, str(book), str(site)], site, folder)
    if build.status != status:
        raise AssertionError(f"status {build.status}, expected {status}:\n{build.log}")
    return build
