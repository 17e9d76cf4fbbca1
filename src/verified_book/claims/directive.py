"""The directives `claim`, a statement that the cells after it prove, and `derivation`.

Its body is the statement that is true. Fields at its end, each in a line of its own, add what was
stated or is believed where it differs (`:stated: ...`), and what the statement needs (`:with a
bias: ...` or `:without dropout: ...`, a field for each condition). A condition has two slots where
`:otherwise: ...` follows it: what is needed, in words if its name does not say it, and what happens
if it is not so.
"""

import re
from dataclasses import dataclass

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx

from verified_book.claims.claim import VERDICTS, Claim, Condition
from verified_book.claims.domain import ClaimsDomain, claims_domain
from verified_book.directives import CheckedDirective

_KNOWN = re.compile("stated$|otherwise$|with(out)? ")
_FIELD = re.compile(r":(?P<name>[a-z][^:`]*):(?:\s+(?P<text>\S.*))?")


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
        for each in fields:
            if each not in (stated, *conditions) or not (each.text or each.otherwise):
                self.fail(
                    f"claim: a field :{each.name}: that is unknown, empty or given twice",
                    "The fields are one :stated:, and for each condition :with NAME: or "
                    ":without NAME:, which :otherwise: may follow.",
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

        # A sign may lead here from a sentence that denies the belief, and is right.
        words = {**VERDICTS, "fails": "the belief fails"}.get(claim.verdict, claim.verdict)
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
        if stated:
            believed = self._inline(claim.stated_title, stated)
            box.insert(1, nodes.container("", believed, classes=["claim-stated"]))
        if conditions:
            texts = [self._condition(each) for each in conditions]
            box += nodes.container("", *texts, classes=["claim-conditions"])
        self.set_source_info(box)
        return [box]

    def _condition(self, field: "_Field") -> nodes.paragraph:
        """A condition as a line: its name, or what it needs and what happens otherwise."""
        if field.otherwise is None:
            return self._inline(f"{field.name}: ", field)
        line = self._inline("Needs: ", field)
        if not field.text:
            words = re.sub("^with(out)? ", lambda found: "no " * bool(found[1]), field.name)
            line += nodes.Text(f"{words}.")
        line += self._inline(" Otherwise: ", field.otherwise).children
        return line

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


@dataclass
class _Field:
    """A field at the end of a claim's body: its name, its lines, and the place of the first.

    Attributes:
        otherwise: The field that says what happens where this one, a condition, is not met.
    """

    name: str
    lines: list[str]
    first: int
    otherwise: "_Field | None" = None

    @property
    def text(self) -> str:
        """Its content on one line."""
        return " ".join(self.lines).strip()


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
    fields: list[_Field] = []
    for place, match in found.items():
        lines = [match["text"] or ""]
        for line in content[place + 1 :]:
            if not line.strip() or _FIELD.fullmatch(line):
                break
            lines.append(line.strip())
        field = _Field(" ".join(match["name"].split()), lines, place)
        before = fields[-1] if fields else field
        if field.name == "otherwise" and before.name[:4] == "with" and not before.otherwise:
            before.otherwise = field
        else:
            fields.append(field)
    return min(found, default=len(content)), fields


class DerivationDirective(CheckedDirective):
    """A proof in words and formulas among the cells of a claim, where a cell can only test."""

    def run(self) -> list[nodes.Node]:
        """Makes its box."""
        self.check_options()
        if not self.content:
            self.fail("derivation: it is empty", "Write the derivation as its body.")
        box = nodes.container(classes=["claim-derivation"])
        self.set_source_info(box)
        self.state.nested_parse(self.content, self.content_offset, box)
        return [box]


def is_derivation(node: nodes.Node) -> bool:
    """Whether a doctree node is the box of a derivation."""
    return isinstance(node, nodes.container) and "claim-derivation" in node["classes"]


def is_claim(node: nodes.Node) -> bool:
    """Whether a doctree node is the box of a claim."""
    return isinstance(node, nodes.container) and "claim_index" in node


def remember_statements(doctree: nodes.document, claims: list[Claim]) -> None:
    """Takes the statements of a page for the index, now that docutils has resolved what it can."""
    for box in filter(is_claim, doctree.findall(nodes.container)):
        claim = claims[box["claim_index"]]
        for part in box.findall(nodes.container):
            if "claim-body" in part["classes"]:
                claim.text, claim.statement = plain_text(part), _copies(part)
            elif "claim-stated" in part["classes"]:
                line = _unlabelled(part.children[0])
                claim.stated, claim.stated_nodes = plain_text(line), line.children
            elif "claim-conditions" in part["classes"]:
                claim.condition_nodes = _copies(part)
                claim.conditions = [
                    Condition(condition.name, plain_text(_unlabelled(line)))
                    for condition, line in zip(claim.conditions, part.children, strict=True)
                ]


def _unlabelled(line: nodes.Node) -> nodes.paragraph:
    """A copy of a field's line without what stands before it."""
    return nodes.paragraph("", "", *_copies(line)[1:])


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
    """Registers the directives by both of their names."""
    for name, directive in (("claim", ClaimDirective), ("derivation", DerivationDirective)):
        app.add_directive(name, directive)
        app.add_directive_to_domain(ClaimsDomain.name, name, directive)
