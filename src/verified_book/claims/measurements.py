"""What the evidence of a claim amounts to: the numbers and the sentence that stand for it."""

import re

from docutils import nodes

from verified_book.claims.claim import Claim, Evidence

# How a `different` value is introduced, by verdict: what it is the proof of.
OFF_BY = {
    "holds": "otherwise off by",
    "holds-if": "without its conditions off by",
    "fails": "off by",
}


def headline(claim: Claim, kind: str) -> Evidence | None:
    """The evidence that stands for a kind: "equal" nearest to its tolerance, others the largest."""
    found = [e for e in claim.evidence if e.kind == kind and e.error is not None]
    if kind == "equal":
        return max(found, key=lambda e: (e.error or 0) / (e.tolerance or 1), default=None)
    return max(found, key=lambda e: e.error or 0, default=None)


def measured(claim: Claim) -> Evidence | None:
    """The number that stands for a claim: how far it was off, or how far off a refuted one is."""
    kinds = ("different", "equal") if claim.verdict == "fails" else ("equal", "different")
    return headline(claim, kinds[0]) or headline(claim, kinds[1])


def summary(claim: Claim) -> str:
    """The evidence of a claim in one sentence."""
    if claim.broken:
        return "Not proven in this build: see its log."
    parts = []
    if equal := headline(claim, "equal"):
        tolerance = f", tolerance {readable(equal.tolerance)}" if equal.tolerance else ""
        parts.append(f"largest error {readable(equal.error)}{tolerance}")
    if different := headline(claim, "different"):
        parts.append(f"{OFF_BY[claim.verdict]} {readable(different.error)}")
    return (
        f"Measured: {'; '.join(parts)}." if parts else "Proven by what the cells assert and print."
    )


def in_words(text: str, **attributes: list[str]) -> nodes.paragraph:
    """A summary as a paragraph in which no line ends within a number, at its minus sign."""
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
