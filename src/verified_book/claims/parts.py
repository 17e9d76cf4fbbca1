"""Which part of a claim a cell is for, and what each verdict needs.

A proof cell says what it shows by its option `:shows:`:

* nothing: the statement;
* `without a bias`: what happens where the condition `with a bias` of the claim is dropped, and
  `with dropout` where the condition `without dropout` is;
* `as printed`, `as stated` or other words after `as`: the counterexample to what was stated;
* `instead`: what is true in place of it;
* `illustration`: nothing that the claim needs.
"""

from collections.abc import Iterable

from verified_book.claims.claim import Claim, Condition

PARTS = ("statement", "condition", "counterexample", "instead", "illustration")

HOW = (
    "A cell may have the option :shows: with `without NAME` or `with NAME` (a dropped condition), "
    "`as printed` or the like (a counterexample), `instead`, or `illustration`; without the "
    "option it is for the statement."
)


def part_of(shows: str) -> tuple[str, str] | None:
    """The part that a cell is for and the words that its line begins with; None if neither.

    Examples:
        >>> part_of(""), part_of("without a bias"), part_of("as printed")
        (('statement', 'holds'), ('condition', 'without a bias'), ('counterexample', 'as printed'))
        >>> part_of("whatever") is None
        True
    """
    words = " ".join(shows.split())
    first, _, rest = words.partition(" ")
    parts = {"with": "condition", "without": "condition", "as": "counterexample"} if rest else {}
    part = {**parts, "instead": "instead", "": "statement"}.get(first)
    if words == "illustration":
        part = words
    return (part, words or "holds") if part else None


def wanting(claim: Claim, shown: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """What the proof of a claim lacks, each with its remedy.

    Args:
        claim: The claim.
        shown: Part and label of each of its cells that can fail.
    """
    parts: dict[str, set[str]] = {part: set() for part in PARTS}
    for part, label in shown:
        parts[part].add(label)
    found: list[tuple[str, str]] = []

    def lacks(message: str, remedy: str) -> None:
        found.append((f"{claim.title} {message}", remedy))

    if claim.verdict == "fails":
        if not claim.stated:
            lacks(
                "fails, and does not say what was stated",
                "Let its body say what is true, and add a field, :stated: with what is not.",
            )
        if not parts["counterexample"]:
            lacks("fails without a counterexample", f"Show one. {HOW}")
    elif not parts["statement"]:
        lacks("has no evidence for its statement", f"Let a cell of it show the statement. {HOW}")
    if claim.verdict == "holds-if" and not claim.conditions:
        lacks(
            "holds if something is so, and does not name it",
            "Add a field for each condition, `:with NAME: ...` or `:without NAME: ...`.",
        )
    dropped = {condition.dropped: condition.name for condition in claim.conditions}
    for label in sorted(dropped.keys() - parts["condition"]):
        lacks(
            f"never drops its condition, {dropped[label]}",
            f"Drop it in a cell of the proof with the option `:shows: {label}`.",
        )
    for label in sorted(parts["condition"] - dropped.keys()):
        lacks(
            f"has no condition for the cell that shows {label!r}",
            f"Add a field to the claim, `:{Condition(label, '').dropped}: ...`.",
        )
    return found
