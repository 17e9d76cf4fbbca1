"""The `claim` directive: a numbered statement and its verdict. The cells after it prove it."""

from docutils import nodes
from sphinx.application import Sphinx

from verified_book.claims.claim import VERDICTS, Claim
from verified_book.claims.domain import ClaimsDomain, claims_domain
from verified_book.claims.numbering import claim_number
from verified_book.directives import CheckedDirective


class ClaimDirective(CheckedDirective):
    """States a claim; the cells after it prove it."""

    optional_arguments = 1
    final_argument_whitespace = True  # so that the claim itself can say what is wrong
    options_known = ("note", "verdict")

    def run(self) -> list[nodes.Node]:
        """Makes the claim's box; its evidence is added when the page has been executed."""
        self.check_options()
        source, line = self.get_source_info()
        body = nodes.container(classes=["claim-body"])
        self.state.nested_parse(self.content, self.content_offset, body)
        notes = self.config.verified_book_notes
        claim = Claim(
            id=" ".join("".join(self.arguments).split()),
            note=self._choice("note", notes) if notes else self.options.get("note", ""),
            verdict=self._choice("verdict", VERDICTS),
            text=plain_text(body),
            statement=[],
            page=self.env.docname,
            source=source,
            line=line,
        )
        if not claim.has_id:
            message = f"claim: {claim.id!r} is no id" if claim.id else "claim: it has no id"
            self.fail(message, "Write one word after the name: claim A3; options below it.")
        if not claim.text:
            self.fail(f"{claim.title} states nothing", "Write the statement as its body.")
        claims = claims_domain(self.env).claims.setdefault(self.env.docname, [])
        claims.append(claim)

        verdict = VERDICTS.get(claim.verdict, claim.verdict)
        note = f" · {notes.get(claim.note, claim.note)}" if notes else ""
        head = nodes.container(classes=["claim-head"])
        head += nodes.paragraph(
            "",
            "",
            claim_number(claim=claim.id, classes=["claim-number"]),
            nodes.inline("", f"{claim.id}{note}", classes=["claim-note"]),
            nodes.inline("", verdict, classes=["claim-verdict"]),
        )
        box = nodes.container(
            "",
            head,
            body,
            classes=["claim", f"claim-{claim.verdict}"],
            ids=[claim.anchor],
            claim_index=len(claims) - 1,
        )
        self.set_source_info(box)
        return [box]

    def _choice(self, option: str, known: dict[str, str]) -> str:
        value = self.options.get(option)
        if value is None:
            self.fail(f"claim: option :{option}: is missing", f"Give one of {', '.join(known)}.")
        elif value not in known:
            self.fail(f"claim: unknown {option} {value!r}", f"Give one of {', '.join(known)}.")
        return value or ""


def is_claim(node: nodes.Node) -> bool:
    """Whether a doctree node is the box of a claim."""
    return isinstance(node, nodes.container) and "claim_index" in node


def remember_statements(doctree: nodes.document, claims: list[Claim]) -> None:
    """Takes the statements of a page for the index, now that docutils has resolved what it can."""
    for box in filter(is_claim, doctree.findall(nodes.container)):
        _, body = box.children
        claim = claims[box["claim_index"]]
        claim.text, claim.statement = plain_text(body), _copies(body)


def _copies(body: nodes.Node) -> list[nodes.Node]:
    """The statement's nodes without their page, which would be stored with them."""
    copies = [node.deepcopy() for node in body.children]
    for copy in copies:
        for node in copy.findall():
            node.document = None  # type: ignore[assignment]  # the stubs know no node without one
    return copies


def plain_text(node: nodes.Node) -> str:
    """The words of a statement on one line, with its maths between dollars."""
    parts = []
    for part in node.findall():
        if isinstance(part, nodes.Text):
            maths = isinstance(part.parent, nodes.math | nodes.math_block)
            parts.append(f"${part.astext().strip()}$" if maths else part.astext())
        elif not isinstance(part, nodes.Inline):
            parts.append(" ")  # a new block
    return " ".join("".join(parts).split())


def setup(app: Sphinx) -> None:
    """Registers the directive by both of its names."""
    app.add_directive("claim", ClaimDirective)
    app.add_directive_to_domain(ClaimsDomain.name, "claim", ClaimDirective)
