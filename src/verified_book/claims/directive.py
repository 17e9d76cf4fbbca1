"""The `claim` directive: a statement and its verdict. The cells after it prove it.

Its body is the statement that is true. Fields at its end, each in a line of its own, add what was
stated or is believed where it differs (`:stated: ...`), and what the statement needs
(`:with a bias: ...` or `:without dropout: ...`, a field for each condition).
"""

import re
from dataclasses import dataclass

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx

from verified_book.claims.claim import VERDICTS, Claim, Condition
from verified_book.claims.domain import ClaimsDomain, claims_domain
from verified_book.directives import CheckedDirective

_KNOWN = re.compile("stated$|with(out)? ")
_FIELD = re.compile(r":(?P<name>[a-z][^:`]*):\s+(?P<text>\S.*)")


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
        end, fields = _fields(list(self.content))
        self.state.nested_parse(self.content[:end], self.content_offset, body)
        stated = next((each for each in fields if each.name == "stated"), None)
        conditions = [each for each in fields if each.name.startswith(("with ", "without "))]
        for unknown in fields:
            if unknown not in (stated, *conditions):
                self.fail(
                    f"claim: a field :{unknown.name}: that is unknown or given twice",
                    "The fields are one :stated:, and for each condition :with NAME: or "
                    ":without NAME:.",
                )
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
            stated=stated.text if stated else "",
            conditions=[Condition(each.name, each.text) for each in conditions],
        )
        if not claim.has_id:
            message = f"claim: {claim.id!r} is no id" if claim.id else "claim: it has no id"
            self.fail(message, "Write one word after the name: claim A3; options below it.")
        if not claim.text:
            self.fail(f"{claim.title} states nothing", "Write the statement as its body.")
        claims = claims_domain(self.env).claims.setdefault(self.env.docname, [])
        claims.append(claim)

        head = nodes.container(classes=["claim-head"])
        words = VERDICTS.get(claim.verdict, claim.verdict)
        title = nodes.paragraph("", "", nodes.inline("", words, classes=["claim-verdict"]))
        title += nodes.Text(" ")
        title += nodes.reference("", claim.id, refid=claim.anchor, classes=["claim-id"])
        if notes:
            note = notes.get(claim.note, claim.note)
            title += [nodes.Text(" "), nodes.inline("", note, classes=["claim-note"])]
        head = nodes.container("", title, classes=["claim-head"])
        box = nodes.container(
            "",
            head,
            body,
            classes=["claim", f"claim-{claim.verdict}"],
            ids=[claim.anchor],
            claim_index=len(claims) - 1,
        )
        if conditions:
            texts = [self._inline(f"{each.name}: ", each) for each in conditions]
            box += nodes.container("", *texts, classes=["claim-conditions"])
        if stated:
            box += nodes.container("", self._inline("Stated: ", stated), classes=["claim-stated"])
        self.set_source_info(box)
        return [box]

    def _inline(self, title: str, field: "_Field") -> nodes.paragraph:
        """A field of the claim as a line, with its inline markup."""
        source, first = self.get_source_info()
        inside, place = nodes.container(), self.content_offset + field.first
        items = [(source, first + place)] * len(field.lines)
        self.state.nested_parse(StringList(field.lines, items=items), place, inside)
        line = nodes.paragraph("", "", nodes.inline("", title, classes=["claim-field"]))
        for paragraph in inside.findall(nodes.paragraph):
            line.extend(paragraph.children)
        return line

    def _choice(self, option: str, known: dict[str, str]) -> str:
        value = self.options.get(option)
        if value is None:
            self.fail(f"claim: option :{option}: is missing", f"Give one of {', '.join(known)}.")
        elif value not in known:
            self.fail(f"claim: unknown {option} {value!r}", f"Give one of {', '.join(known)}.")
        return value or ""


@dataclass(frozen=True)
class _Field:
    """A field at the end of a claim's body: its name, its lines, and the place of the first."""

    name: str
    lines: list[str]
    first: int

    @property
    def text(self) -> str:
        """Its content on one line."""
        return " ".join(self.lines)


def _fields(content: list[str]) -> tuple[int, list[_Field]]:
    """Where the statement of a claim ends, and the fields that follow it.

    A field ends at the next one or at an empty line.
    """
    found = {
        place: match for place, line in enumerate(content) if (match := _FIELD.fullmatch(line))
    }
    known = [place for place, match in found.items() if _KNOWN.match(match["name"])]
    last = max((place for place, line in enumerate(content) if line.strip()), default=0)
    first = min([*known, last])  # what looks like one further up is an option of a nested directive
    found = {place: match for place, match in found.items() if place >= first}
    fields = []
    for place, match in found.items():
        lines = [match["text"]]
        for line in content[place + 1 :]:
            if not line.strip() or _FIELD.fullmatch(line):
                break
            lines.append(line.strip())
        fields.append(_Field(" ".join(match["name"].split()), lines, place))
    return min(found, default=len(content)), fields


def is_claim(node: nodes.Node) -> bool:
    """Whether a doctree node is the box of a claim."""
    return isinstance(node, nodes.container) and "claim_index" in node


def remember_statements(doctree: nodes.document, claims: list[Claim]) -> None:
    """Takes the statements of a page for the index, now that docutils has resolved what it can."""
    for box in filter(is_claim, doctree.findall(nodes.container)):
        body, *fields = box.children[1:]
        claim = claims[box["claim_index"]]
        claim.text, claim.statement = plain_text(body), _copies(body)
        for field in fields:
            lines = [nodes.paragraph("", "", *_copies(line)[1:]) for line in field.children]
            if isinstance(field, nodes.Element) and "claim-stated" in field["classes"]:
                claim.stated, claim.stated_nodes = plain_text(lines[0]), _copies(lines[0])
            else:
                claim.conditions = [
                    Condition(condition.name, plain_text(line))
                    for condition, line in zip(claim.conditions, lines, strict=True)
                ]


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
