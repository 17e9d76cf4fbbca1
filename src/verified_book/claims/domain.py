"""The Sphinx domain of claims: what is known of each page, references, and `objects.inv`.

`{claims:claim}` and `{claims:index}` are its directives, `{claims:claim}` and `{claims:chip}` its
roles; the short names `{claim}`, `{claims-index}` and `{chip}` stand for them. Other books
link to a claim through intersphinx, by its id.
"""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.builders import Builder
from sphinx.domains import Domain, ObjType
from sphinx.environment import BuildEnvironment
from sphinx.errors import NoUri
from sphinx.roles import XRefRole
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

from verified_book.claims.claim import Claim, Reference
from verified_book.outputs.source_lines import true_place
from verified_book.toc_order import reading_order


class ClaimRole(XRefRole):
    """A link to a claim by its id, `A3` or `any words <A3>`."""

    def __init__(self) -> None:
        super().__init__(innernodeclass=nodes.inline)

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Leaves a reference to be resolved; the claim may stand on a page yet to be read."""
        self.name = "claims:claim"  # also where it was written by its short name
        if not self.disabled:
            remember_reference(self, self.target)
        return super().run()

    def process_link(
        self,
        env: BuildEnvironment,
        refnode: nodes.Element,
        has_explicit_title: bool,
        title: str,
        target: str,
    ) -> tuple[str, str]:
        """The text of the link, also where titles are repeated."""
        return title if has_explicit_title else f"Claim {target}", target


def remember_reference(role: SphinxRole, claim: str, *kind: bool) -> None:
    """Keeps what a role refers to, where it stands, and whether it is a chip, and denies."""
    reference = Reference(claim, *true_place(role.env, *role.get_source_info()), *kind)
    claims_domain(role.env).references.setdefault(role.env.docname, []).append(reference)


class ClaimsDomain(Domain):
    """Claims, by page, with the references to them."""

    name = "claims"
    label = "Claims"
    # Sphinx declares what follows as if it were of an instance.
    object_types = {"claim": ObjType("claim", "claim")}  # noqa: RUF012
    roles = {"claim": ClaimRole()}  # noqa: RUF012
    initial_data = {  # noqa: RUF012
        "claims": {},
        "references": {},
        "indexes": set(),
        "shown": set(),
        "rows": [],
    }
    data_version = 6

    @property
    def claims(self) -> dict[str, list[Claim]]:
        """The claims of each page, in their order."""
        return self.data["claims"]

    @property
    def references(self) -> dict[str, list[Reference]]:
        """The references to claims on each page."""
        return self.data["references"]

    @property
    def indexes(self) -> set[str]:
        """The pages that show the index of claims."""
        return self.data["indexes"]

    @property
    def shown(self) -> set[str]:
        """The pages that show claims of others otherwise: written again when a claim changes."""
        return self.data["shown"]

    def all_claims(self) -> list[Claim]:
        """Every claim of the book, page by page in no particular order."""
        return [claim for claims in self.claims.values() for claim in claims]

    def ordered_claims(self) -> list[Claim]:
        """The claims of the book in reading order."""
        order = reading_order(self.env)
        return [claim for docname in order for claim in self.claims.get(docname, [])]

    def clear_doc(self, docname: str) -> None:
        """Forgets a page that will be read again or has gone."""
        self.claims.pop(docname, None)
        self.references.pop(docname, None)
        self.indexes.discard(docname)
        self.shown.discard(docname)

    def merge_domaindata(self, docnames: Iterable[str], otherdata: dict[str, Any]) -> None:
        """Takes over what a parallel reader has learned."""
        for docname in docnames:
            for kind in ("claims", "references"):
                if docname in otherdata[kind]:
                    self.data[kind][docname] = otherdata[kind][docname]
            for kind in ("indexes", "shown"):
                if docname in otherdata[kind]:
                    self.data[kind].add(docname)

    def get_type_name(self, type: ObjType, primary: bool = False) -> str:
        """What search results call a claim."""
        return type.lname

    def get_objects(self) -> Iterator[tuple[str, str, str, str, str, int]]:
        """The claims for `objects.inv` and for the search."""
        for claim in self.ordered_claims():
            if claim.has_id:
                yield claim.id, f"Claim {claim.id}", "claim", claim.page, claim.anchor, 1

    def resolve_xref(
        self,
        env: BuildEnvironment,
        fromdocname: str,
        builder: Builder,
        typ: str,
        target: str,
        node: pending_xref,
        contnode: nodes.Element,
    ) -> nodes.reference | None:
        """The link to a claim of this book; None if it has no such claim."""
        claim = {claim.id: claim for claim in self.all_claims()}.get(target)
        if claim is None:
            return None
        text = contnode if node["refexplicit"] else nodes.inline("", f"Claim {claim.id}")
        return make_refnode(builder, fromdocname, claim.page, claim.anchor, text, claim.text)

    def resolve_any_xref(
        self,
        env: BuildEnvironment,
        fromdocname: str,
        builder: Builder,
        target: str,
        node: pending_xref,
        contnode: nodes.Element,
    ) -> list[tuple[str, nodes.Element]]:
        """The same for a reference that names no domain, such as `any` and those of Markdown."""
        found = self.resolve_xref(env, fromdocname, builder, "claim", target, node, contnode)
        return [("claims:claim", found)] if found is not None else []

    def is_elsewhere(self, app: Sphinx, reference: Reference, docname: str) -> bool:
        """Whether another extension knows the claim: intersphinx, of another book."""
        options = {"refdomain": self.name, "reftype": "claim", "reftarget": reference.claim}
        node = pending_xref("", refdoc=docname, refexplicit=False, refwarn=False, **options)
        found = app.emit_firstresult(
            "missing-reference", app.env, node, nodes.inline(), allowed_exceptions=(NoUri,)
        )
        return found is not None


def claims_domain(env: BuildEnvironment) -> ClaimsDomain:
    """The domain of a book's claims."""
    return cast(ClaimsDomain, env.get_domain("claims"))


def is_reported(app: Sphinx, domain: Domain | None, node: pending_xref) -> bool | None:
    """Keeps Sphinx from warning of what is a failure with file, line and remedy already."""
    return True if node.get("refdomain") == ClaimsDomain.name else None


def setup(app: Sphinx) -> None:
    """Registers the domain, and its role by its short name."""
    app.add_domain(ClaimsDomain)
    app.add_role("claim", ClaimRole())
    app.connect("warn-missing-reference", is_reported)
