"""The `claims-index` directive, and `claims.json`, the same list for programs."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import docname_join
from sphinx.util.nodes import make_refnode

from verified_book.claims.claim import VERDICTS, Claim, Evidence
from verified_book.claims.domain import ClaimsDomain, claims_domain
from verified_book.claims.measurements import claim_strength, in_words, lines, measured
from verified_book.directives import CheckedDirective


class claims_index(nodes.General, nodes.Element):  # noqa: N801  # docutils names its nodes so
    """The place of the table; filled when the page is written."""


class ClaimsIndexDirective(CheckedDirective):
    """Shows every claim of the book, grouped by note."""

    def run(self) -> list[nodes.Node]:
        """Leaves a placeholder."""
        self.check_options()
        if self.content:
            self.fail("claims-index: it has no content", "Remove what stands in it.")
        claims_domain(self.env).indexes.add(self.env.docname)
        return [claims_index()]


class FillIndex(SphinxPostTransform):
    """Replaces the placeholder by counts and tables.

    Before Sphinx resolves the references of a page, so that those in statements work here too.
    """

    default_priority = 3

    def run(self, **kwargs: object) -> None:
        """Fills each placeholder of a page that is about to be written."""
        for place in list(self.document.findall(claims_index)):
            claims = claims_domain(self.env).ordered_claims()
            parts: list[nodes.Node] = [_counts(claims, self.app)]
            notes = self.config.verified_book_notes
            for note, title in notes.items():
                of_note = [claim for claim in claims if claim.note == note]
                if of_note:
                    parts.append(nodes.rubric("", f"{title[:1].upper()}{title[1:]}"))
                    parts.append(_table(self.app, self.env.docname, of_note))
            if claims and not notes:
                parts.append(_table(self.app, self.env.docname, claims))
            place.replace_self(parts)


def _counts(claims: list[Claim], app: Sphinx) -> nodes.table:
    notes = app.config.verified_book_notes
    counts = Counter((claim.note, claim.verdict) for claim in claims)
    every = Counter(claim.verdict for claim in claims if claim.note in notes or not notes)
    table = [
        (title, [counts[note, verdict] for verdict in VERDICTS]) for note, title in notes.items()
    ]
    table.append(("all", [every[verdict] for verdict in VERDICTS]))
    rows = [
        [_text(str(item)) for item in [title, *numbers, sum(numbers)]] for title, numbers in table
    ]
    head = ["note" if notes else "", *VERDICTS.values(), "claims"]
    return make_table(head, rows, "claims-counts")


def _table(app: Sphinx, docname: str, claims: list[Claim]) -> nodes.table:
    rows: list[list[nodes.Element]] = []
    for claim in claims:
        to_claim, to_chapter = (
            make_refnode(app.builder, docname, claim.page, claim.anchor, nodes.inline("", words))
            for words in (claim.id, app.env.titles[claim.page].astext())
        )
        state = "broken" if claim.broken else claim.verdict
        label = "not proven" if claim.broken else VERDICTS.get(claim.verdict, claim.verdict)
        verdict = nodes.inline("", label, classes=["claim-verdict", f"claim-{state}"])
        statement = copied(claim.statement, docname)
        if claim.stated:
            line = nodes.paragraph("", "Stated: ", *claim.stated_nodes, classes=["claim-stated"])
            statement += copied([line], docname).children
        rows.append(
            [
                nodes.paragraph("", "", to_claim),
                nodes.paragraph("", "", verdict),
                statement,
                nodes.container("", *map(in_words, lines(claim))),
                nodes.paragraph("", "", to_chapter),
            ]
        )
    return make_table(
        ["claim", "verdict", "statement", "measured", "chapter"], rows, "claims-index"
    )


def copied(parts: list[nodes.Node], docname: str) -> nodes.container:
    """A copy of a part of a claim for another page: its references lead from there."""
    copy = nodes.container("", *[node.deepcopy() for node in parts])
    for inner in list(copy.findall(nodes.Element, include_self=False)):
        inner["ids"] = []
        if isinstance(inner, addnodes.pending_xref):
            if inner["reftype"] == "doc" and inner["refdomain"] == "std":
                inner["reftarget"] = "/" + docname_join(inner["refdoc"], inner["reftarget"])
            inner["refdoc"] = docname
        elif isinstance(inner, nodes.math_block):
            inner["number"] = inner["label"] = None
        elif isinstance(inner, nodes.footnote_reference | nodes.footnote):
            inner.parent.remove(inner)
        elif "refid" in inner:  # to a place on its own page
            inner.replace_self(inner.children)
    return copy


def _text(text: str) -> nodes.paragraph:
    return nodes.paragraph("", text)


def make_table(head: list[str], rows: Sequence[Sequence[nodes.Element]], name: str) -> nodes.table:
    """A table of cells, with a class of its own."""
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=20) for _ in head]  # characters, where text is plain
    header = nodes.row("", *[nodes.entry("", _text(title)) for title in head])
    group += nodes.thead("", header)
    group += nodes.tbody(
        "", *[nodes.row("", *[nodes.entry("", cell) for cell in row]) for row in rows]
    )
    return nodes.table("", group, classes=[name])


def as_json(app: Sphinx, env: BuildEnvironment) -> dict[str, Any]:
    """The claims of the book with their verdicts and numbers."""
    versions = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in app.config.verified_book_distributions:
        if name != "*":  # hundreds, most of which no claim depends on
            versions[name] = metadata.version(name)
    found = []
    for number, claim in enumerate(claims_domain(env).ordered_claims(), start=1):
        evidence = measured(claim)
        found.append(
            {
                "id": claim.id,
                "number": number,
                "note": claim.note,
                "verdict": claim.verdict,
                "text": claim.text,
                "page": f"{app.builder.get_target_uri(claim.page)}#{claim.anchor}",
                "error": evidence.error if evidence else None,
                "tolerance": evidence.tolerance if evidence else None,
                "versions": versions,
                "proven": not claim.broken,
                "stated": claim.stated or None,
                "conditions": [{"name": c.name, "text": c.text} for c in claim.conditions],
                "strength": asdict(claim_strength(claim)),
                "measured": lines(claim),
                "evidence": [_evidence(each) for each in claim.evidence],
            }
        )
    return {"claims": found}


def _evidence(evidence: Evidence) -> dict[str, Any]:
    """One piece of evidence for programs: the part that it is for, and its numbers."""
    return {
        "part": evidence.part,
        "label": evidence.label,
        "kind": evidence.kind,
        "error": evidence.error,
        "tolerance": evidence.tolerance,
        "strength": asdict(evidence.strength),
    }


def write_json(app: Sphinx, exception: Exception | None) -> None:
    """Publishes the list next to the pages."""
    if exception is None and app.builder.format == "html":
        text = json.dumps(as_json(app, app.env), indent=2, ensure_ascii=False)
        Path(app.outdir, "claims.json").write_text(text + "\n", encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Registers the directive and the published list."""
    app.add_node(claims_index)
    app.add_directive("claims-index", ClaimsIndexDirective)
    app.add_directive_to_domain(ClaimsDomain.name, "index", ClaimsIndexDirective)
    app.add_post_transform(FillIndex)
    app.connect("build-finished", write_json)
