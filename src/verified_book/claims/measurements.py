"""What the evidence of a claim amounts to: a line for each part, and how strong it is."""

import re

from docutils import nodes

from verified_book.claims.claim import Claim, Evidence, Strength

STRENGTHS = ("derived", "all", "search", "draws", "count", "input")
"""From the strongest, which leaves nothing untried, to the weakest."""

_KINDS = {
    "derived": "derived",
    "all": "all values",
    "search": "inputs searched",
    "draws": "draws",
    "count": "counted",
    "input": "one input",
}


def lines(claim: Claim) -> list[str]:
    """The evidence of a claim, a line for each of its parts, in its own words."""
    if claim.broken:
        return ["Not proven in this build: see its log."]
    main = main_part(claim)
    by_line: dict[tuple[str, str], list[Evidence]] = {}
    for each in claim.evidence:
        part, label = each.part, each.label
        if part == "statement" != main:  # what is true in place of what was stated
            part, label = "instead", "instead"
        by_line.setdefault((part, label), []).append(each)
    order = (main, *(part for part in ("counterexample", "instead", "condition") if part != main))
    found = []
    for part in order:
        for (of, label), evidence in by_line.items():
            if of == part:
                is_derived = claim.derived and any(e.part == "statement" for e in evidence)
                derived = ["derived"] if is_derived else []
                found.append(f"{label}: {', '.join([_measured(part, evidence), *derived])}")
    return found


def main_part(claim: Claim) -> str:
    """The part that a claim stands or falls with."""
    return "counterexample" if claim.verdict == "fails" else "statement"


def _measured(part: str, evidence: list[Evidence]) -> str:
    """The numbers or the laws that stand for a part, and how many inputs they are of."""
    found = []
    if equal := nearest(evidence):
        allowed = f" of {readable(equal.tolerance)} allowed" if equal.tolerance else ""
        found.append(f"{readable(equal.error)}{allowed}")
    if different := furthest(evidence):
        verb = "differs by" if part == "statement" else "off by"
        found.append(f"{verb} {readable(different.error)}")
    found += dict.fromkeys(e.text.partition(":")[0] for e in evidence if e.kind == "raises")
    tried = in_count(strength(evidence))
    laws = dict.fromkeys(
        e.text.removesuffix(f", {in_count(e.strength)}") for e in evidence if e.kind == "holds"
    )
    if laws and not found:
        found = [*laws] if len(laws) == 1 else [f"{len(laws)} laws"]
        found[0] = found[0].removeprefix("holds: ")
    return ", ".join(filter(None, ["; ".join(found) or "what its cells assert and print", tried]))


def strength(evidence: list[Evidence]) -> Strength:
    """The weakest of what the evidence for a part has tried; a refusal needs one input only."""
    tried = [each.strength for each in evidence if each.kind not in ("checked", "raises")]
    return max(tried, key=lambda each: STRENGTHS.index(each.kind), default=Strength())


def claim_strength(claim: Claim) -> Strength:
    """How strong the evidence for what a claim says is."""
    if claim.derived:
        return Strength("derived")
    return strength([each for each in claim.evidence if each.part == main_part(claim)])


def in_count(found: Strength) -> str:
    """A strength in words with its number; nothing for one that is not counted.

    Examples:
        >>> in_count(Strength("draws", 200)), in_count(Strength("all", 63488)), in_count(Strength())
        ('over 200 draws', 'all 63,488 values', '')
    """
    if found.number is None:
        return ""
    words = {
        "all": f"all {found.number:,} values",
        "search": f"{found.number:,} inputs searched",
        "draws": f"over {found.number:,} draws",
    }
    return words.get(found.kind, "")


def kind_in_words(kind: str) -> str:
    """A kind of strength in words, whatever its number.

    Examples:
        >>> kind_in_words("input")
        'one input'
    """
    return _KINDS.get(kind, kind)


def nearest(evidence: list[Evidence]) -> Evidence | None:
    """The "equal" evidence that comes nearest to its tolerance."""
    found = [e for e in evidence if e.kind == "equal" and e.error is not None]
    return max(found, key=lambda e: (e.error or 0) / (e.tolerance or 1), default=None)


def furthest(evidence: list[Evidence]) -> Evidence | None:
    """The "different" evidence with the largest difference."""
    found = [e for e in evidence if e.kind == "different" and e.error is not None]
    return max(found, key=lambda e: e.error or 0, default=None)


def measured(claim: Claim) -> Evidence | None:
    """The number that stands for a claim: of its statement, or of what refutes what was stated."""
    found = [each for each in claim.evidence if each.part == main_part(claim)]
    if claim.verdict == "fails":
        return furthest(found) or nearest(found)
    return nearest(found) or furthest(found)


def in_words(text: str, **attributes: list[str]) -> nodes.paragraph:
    """A line as a paragraph in which no line ends within a number, at its minus sign."""
    parts = re.split(r"([\d.]+e-\d+)", text)
    shown = [
        nodes.inline("", part, classes=["number"]) if index % 2 else nodes.Text(part)
        for index, part in enumerate(parts)
    ]
    return nodes.paragraph("", "", *shown, **attributes)


def readable(number: float | None) -> str:
    """A measured number to two significant digits.

    Examples:
        >>> readable(4.44e-16), readable(0.9617), readable(316.2), readable(0.0)
        ('4.4e-16', '0.96', '320', '0')
    """
    if number is None:
        return "an unknown amount"
    short = f"{number:.2g}"
    return f"{float(short):.0f}" if 100 <= abs(number) < 1e6 else short
