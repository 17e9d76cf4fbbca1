"""What the evidence of a claim amounts to: a line for each part, and how strong it is."""

import re

from docutils import nodes

from verified_book.claims.claim import Claim, Evidence, Strength

STRENGTHS = ("derived", "all", "search", "draws", "seeds", "count", "input")
"""From the strongest, which leaves nothing untried, to the weakest."""

_KINDS = {
    "derived": "derived",
    "all": "all values",
    "search": "inputs searched",
    "draws": "draws",
    "seeds": "measured over seeds",
    "count": "counted",
    "input": "one input",
}


def lines(claim: Claim) -> list[str]:
    """What a claim's evidence amounts to: its strength, then a line for each other part."""
    if claim.broken:
        return ["Not proven in this build: see its log."]
    return [strength_line(claim), *(f"{label}: {said}" for label, said in others(claim).items())]


def strength_line(claim: Claim) -> str:
    """How strong the evidence is for what a claim says is so, strongest first.

    Examples:
        >>> equal = Evidence("equal", 4e-15, 1e-12, strength=Strength("draws", 200))
        >>> strength_line(Claim("A1", *[""] * 3, [], "", "", 1, [equal], derived=True))
        'derived; 200 draws; largest error 4e-15, 1e-12 allowed'
    """
    evidence = [each for each in claim.evidence if _is_of_what_is_so(each, claim)]
    found = ["derived"] if claim.derived else []
    if evidence:
        tried = strength(evidence)
        seeds = "measured: " if tried.kind == "seeds" else ""
        is_one = tried.kind == "input" and any(
            e.kind not in ("checked", "raises") for e in evidence
        )
        count = "one input" if is_one else in_count(tried).removeprefix("over ")
        found += [*filter(None, [count and seeds + count]), *_measured(evidence)]
    return "; ".join(found) or "only what was stated is shown to fail"


def others(claim: Claim) -> dict[str, str]:
    """What was measured of the other parts of a claim, by the words that say what was shown."""
    by_label: dict[str, list[Evidence]] = {}
    for part in ("counterexample", "instead", "condition"):
        for each in claim.evidence:
            if each.part == part and not _is_of_what_is_so(each, claim):
                by_label.setdefault(each.label, []).append(each)
    return {
        label: ", ".join([*_measured(evidence), *filter(None, [in_count(strength(evidence))])])
        for label, evidence in by_label.items()
    }


def _is_of_what_is_so(evidence: Evidence, claim: Claim) -> bool:
    return evidence.part == "statement" or (evidence.part, claim.verdict) == ("instead", "fails")


def main_part(claim: Claim) -> str:
    """The part that a claim stands or falls with."""
    return "counterexample" if claim.verdict == "fails" else "statement"


def _measured(evidence: list[Evidence]) -> list[str]:
    """The numbers or the laws that stand for a part."""
    found = []
    if equal := nearest(evidence):
        largest = f"largest error {readable(equal.error)}" if equal.error else "no difference"
        found.append(
            largest + (f", {readable(equal.tolerance)} allowed" if equal.tolerance else "")
        )
    if different := furthest(evidence):
        verb = "differs by" if different.part in ("statement", "instead") else "off by"
        found.append(f"{verb} {readable(different.error)}")
    refusals = (e.text.partition(":")[0] for e in evidence if e.kind == "raises")
    found += dict.fromkeys(f"raises {name}" for name in refusals)
    laws = (e for e in evidence if e.kind == "holds" and not found)
    found += dict.fromkeys(
        e.text.removeprefix("holds: ").removesuffix(f", {in_count(e.strength)}") for e in laws
    )
    cells = f"{len(evidence)} cells" if len(evidence) > 1 else "one cell"
    return found or [f"as expected in {cells}"]


def strength(evidence: list[Evidence]) -> Strength:
    """The weakest of what the evidence for a part has tried; a refusal needs one input only."""
    tried = [each.strength for each in evidence if each.kind not in ("checked", "raises")]

    def weakness(each: Strength) -> tuple[int, float]:
        share = each.held / each.number if each.held and each.number else 1.0
        return STRENGTHS.index(each.kind), -share

    return max(tried, key=weakness, default=Strength())


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
        >>> in_count(Strength("seeds", 10, held=9))
        '9 of 10 seeds'
    """
    if found.number is None:
        return ""
    held = found.number if found.held is None else found.held
    words = {
        "all": f"all {found.number:,} values",
        "search": f"{found.number:,} inputs searched",
        "draws": f"over {found.number:,} draws",
        "seeds": f"{held:,} of {found.number:,} seeds",
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
