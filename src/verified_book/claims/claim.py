"""What is known of a claim, of the evidence for it, and of the references to it."""

from dataclasses import dataclass, field

from docutils import nodes

VERDICTS = {"holds": "holds", "holds-if": "holds if", "fails": "fails"}


@dataclass(frozen=True)
class Evidence:
    """What one proof cell measured; the numbers that a claim's box and the index show."""

    kind: str
    error: float | None
    tolerance: float | None


@dataclass
class Claim:
    """One claim of a page, as its box and the claims index show it.

    Attributes:
        cells: The indices of the cells that prove it, in the notebook of its page.
        broken: Whether it is not proven: a cell has failed or not run, or nothing can fail.
    """

    id: str
    note: str
    verdict: str
    text: str
    statement: list[nodes.Node]
    page: str
    source: str
    line: int
    evidence: list[Evidence] = field(default_factory=list)
    cells: frozenset[int] = frozenset()
    broken: bool = False

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"claim {self.id}".rstrip()

    @property
    def anchor(self) -> str:
        """The HTML id of the claim's box."""
        return nodes.make_id(f"claim-{self.id}")

    @property
    def has_id(self) -> bool:
        """Whether its id is one word, as others refer to it."""
        return len(self.id.split()) == 1


@dataclass(frozen=True)
class Reference:
    """A reference to a claim, from anywhere in the book."""

    claim: str
    source: str
    line: int
