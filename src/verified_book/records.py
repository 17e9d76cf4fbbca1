"""What a build remembers of each page: its failures, claims, references and pending rewrites.

Records live in the build environment, so that a second build that reads nothing stays red.
"""

from dataclasses import dataclass, field
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


@dataclass(frozen=True)
class Failure:
    """Something on a page that fails the build.

    Attributes:
        claim: The claim whose proof it stands in, if any.
        refutes: Whether it shows the claim false, not merely its page incomplete.
    """

    source: str
    line: int
    message: str
    remedy: str
    claim: str | None = None
    refutes: bool = False


@dataclass(frozen=True)
class Evidence:
    """What one proof cell measured; the numbers that a claim's box and the index show."""

    kind: str
    error: float | None
    tolerance: float | None


@dataclass
class Claim:
    """One claim of a page, as its box and the claims index show it."""

    id: str
    note: str
    verdict: str
    text: str
    statement: list[nodes.Node]
    page: str
    source: str
    line: int
    evidence: list[Evidence] = field(default_factory=list)
    broken: bool = False

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"claim {self.id}".rstrip()

    @property
    def anchor(self) -> str:
        """The HTML id of the claim's box."""
        return nodes.make_id(f"claim-{self.id}")


@dataclass(frozen=True)
class Reference:
    """A reference to a claim, from anywhere in the book."""

    claim: str
    source: str
    line: int


@dataclass(frozen=True)
class Edit:
    """Lines `start` to `end` (exclusive, from 0) of a source file, to be replaced."""

    source: str
    start: int
    end: int
    lines: tuple[str, ...]


@dataclass
class PageRecord:
    """All that is remembered of one page."""

    failures: list[Failure] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    has_index: bool = False
    outputs_checked: int = 0


def records(env: BuildEnvironment) -> dict[str, PageRecord]:
    """The records of all pages, by document name."""
    if not hasattr(env, "verified_book_records"):
        env.verified_book_records = {}  # type: ignore[attr-defined]  # Sphinx's way to extend it
    return env.verified_book_records  # type: ignore[attr-defined]  # likewise


def record_of(env: BuildEnvironment, docname: str | None = None) -> PageRecord:
    """The record of one page, by default the page that is being read."""
    return records(env).setdefault(docname or env.docname, PageRecord())


def all_claims(env: BuildEnvironment) -> list[Claim]:
    """Every claim of the book, page by page in no particular order."""
    return [claim for record in records(env).values() for claim in record.claims]


def purge(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Forgets a page that will be read again or has gone."""
    records(env).pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
    """Takes over what a parallel reader has learned."""
    theirs: dict[str, Any] = records(other)
    records(env).update({name: theirs[name] for name in docnames if name in theirs})


def setup(app: Sphinx) -> None:
    """Keeps the records in step with the pages."""
    app.connect("env-purge-doc", purge)
    app.connect("env-merge-info", merge)
