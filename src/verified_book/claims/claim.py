"""What is known of a claim, of the evidence for its parts, and of what refers to it."""

from dataclasses import dataclass, field

from docutils import nodes

VERDICTS = {"holds": "holds", "holds-if": "holds if", "fails": "fails"}


@dataclass(frozen=True)
class Strength:
    """How much of what a claim says of all values its evidence has tried.

    Attributes:
        kind: "derived" (a derivation stands on the page), "all" (every value), "search" (an
            adversary looked for a counterexample), "draws" (random inputs), "seeds" (models
            trained from several), "count" (whole numbers were compared) or "input" (one input).
        number: How many; None where there is nothing to count.
        held: In how many of them it holds, of seeds.
    """

    kind: str = "input"
    number: int | None = None
    held: int | None = None


@dataclass(frozen=True)
class Evidence:
    """What one proof cell has shown; what a claim's box and the index say.

    Attributes:
        kind: "equal", "different", "raises", "holds", or what else the cell calls it;
            "checked" for a cell without evidence whose output or assertion can fail.
        part: Which part of the claim it is for, one of `verified_book.claims.parts.PARTS`.
        label: What its line begins with: "holds", "without a bias", "as printed", "instead".
        text: What the cell printed as its evidence.
    """

    kind: str
    error: float | None = None
    tolerance: float | None = None
    part: str = "statement"
    label: str = ""
    strength: Strength = Strength()
    text: str = ""


@dataclass(frozen=True)
class Condition:
    """What a claim needs, and the proof also shows what happens otherwise.

    Attributes:
        name: "with a bias", or "without dropout".
        text: What that means.
    """

    name: str
    text: str

    @property
    def dropped(self) -> str:
        """What a cell shows that drops it.

        Examples:
            >>> Condition("with a bias", "").dropped, Condition("without dropout", "").dropped
            ('without a bias', 'with dropout')
        """
        with_or_without, _, rest = self.name.partition(" ")
        return f"{'without' if with_or_without == 'with' else 'with'} {rest}"


@dataclass
class Claim:
    """One claim of a page, as its box and the claims index show it.

    Attributes:
        text: The statement, which is true.
        stated: What was stated or is believed instead; empty where it is the statement.
        conditions: What the statement needs, for a claim that holds if it is so.
        derived: Whether a derivation of the statement stands in its proof.
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
    stated: str = ""
    conditions: list[Condition] = field(default_factory=list)
    derived: bool = False
    stated_nodes: list[nodes.Node] = field(default_factory=list)
    condition_nodes: list[nodes.Node] = field(default_factory=list)

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"claim {self.id}".rstrip()

    @property
    def stated_title(self) -> str:
        """What stands before what was stated."""
        return "✗ " if self.verdict == "fails" else "Stated: "

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
    is_chip: bool = False
    denies: bool = False
