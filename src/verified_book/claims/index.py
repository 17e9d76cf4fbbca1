"""The `claims-index` directive, and `claims.json`, the same list for programs."""

import json
import sys
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform

from verified_book.claims.domain import ClaimsDomain, claims_domain
from verified_book.claims.listing import level_below, listing
from verified_book.claims.measurements import claim_strength, lines, measured
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
    """Replaces the placeholder by counts and tables, before Sphinx resolves their references."""

    default_priority = 3

    def run(self, **kwargs: object) -> None:
        """Fills each placeholder of a page that is about to be written."""
        for place in list(self.document.findall(claims_index)):
            place.replace_self(listing(self.app, self.env.docname, level_below(place)))


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
                "evidence": [
                    {name: value for name, value in asdict(each).items() if name != "text"}
                    for each in claim.evidence
                ],
            }
        )
    return {"claims": found}


def write_json(app: Sphinx, exception: Exception | None) -> None:
    """Publishes the list next to the pages."""
    if exception is None and app.builder.format == "html":
        lines = (
            json.dumps(claim, ensure_ascii=False, separators=(",", ":"))
            for claim in as_json(app, app.env)["claims"]
        )
        text = '{"claims":[\n' + ",\n".join(lines) + "\n]}\n"  # a line each, to be compared
        Path(app.outdir, "claims.json").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Registers the directive and the published list."""
    app.add_node(claims_index)
    app.add_directive("claims-index", ClaimsIndexDirective)
    app.add_directive_to_domain(ClaimsDomain.name, "index", ClaimsIndexDirective)
    app.add_post_transform(FillIndex)
    app.connect("build-finished", write_json)
