"""Everything that must fail a build does so, and the log has its file, its line, the remedy."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.verified_book.books import (
    CONFIG,
    Block,
    Book,
    Build,
    Part,
    Parts,
    cell,
    claim,
    expect,
    words,
)

pytestmark = pytest.mark.xdist_group("failures")

MEND = "Mend the code"
NO_PROOF = "claim {} has no proof: no code cell before the next claim or heading$"
PUT_CELLS = r"^Put the cells that prove it right after it\.$"
FIELDS = (
    r"^The fields are one :stated:, and for each condition :with NAME: or "
    r":without NAME:, which :otherwise: may follow\.$"
)
ONE_WORD = r"^Write one word after the name: claim A3; options below it\.$"
PROOF = cell("proven = 1\nassert proven")


@dataclass(frozen=True)
class Case:
    """Parts of a page of which one is to blame; its message and remedy must match the patterns."""

    parts: Parts
    culprit: Part
    message: str
    remedy: str


def case(*parts: Part, message: str, remedy: str, culprit: int = -1) -> Case:
    return Case(parts, parts[culprit], message, remedy)


def with_options(name: str, **options: str) -> Block:
    return Block("claim", "It is so.", name, options)


IMAGE = "from IPython.display import SVG\nSVG('<svg viewBox=\"0 0 4 3\"/>')"
TABLE = """\
from IPython.display import HTML
HTML("<table><tr><td>a<td>1<tr><td>b<td>2</table>")"""


# By name; of the kind of page ("md" or "rst"), which keeps the ids of claims apart.
CASES: dict[str, Callable[[str], Case]] = {
    "a cell raises": lambda kind: case(
        cell("1 / 0"),
        message=r"the cell raised an error\n.*ZeroDivisionError: division by zero",
        remedy="tag it raises-exception",
    ),
    "a tagged cell raises": lambda kind: case(
        cell("[][1]", tags="hide-input"),
        message=r"the cell raised an error\n.*IndexError",
        remedy="Mend the cell",
    ),
    "a cell raises nothing": lambda kind: case(
        cell("calm = 1", tags="raises-exception"),
        message="the cell is tagged raises-exception, but raised nothing",
        remedy="remove the tag",
    ),
    "a wrong digit": lambda kind: case(
        cell("print('tensor([[0.2500, 0.5000],\\n        [2.5000, 0.1250]])')"),
        expect("tensor([[0.25, 0.5],\n        [2.5, 0.126]])"),
        message=r"the output differs from the expected one\n"
        r"--- expected\n\+\+\+ executed\n@@ .* @@\n"
        r" tensor\(\[\[0\.25, 0\.5\],\n"
        r"-        \[2\.5, 0\.126\]\]\)\n"
        r"\+        \[2\.5000, 0\.1250\]\]\)",
        remedy=MEND,
    ),
    "a changed shape": lambda kind: case(
        cell("import numpy\nnumpy.ones((2, 3)).shape"),
        expect("(2, 4)"),
        message=r"the output differs from the expected one\n.*-\(2, 4\)\n\+\(2, 3\)",
        remedy=MEND,
    ),
    "a block after prose": lambda kind: case(
        "Prose.",
        expect("after prose"),
        message="expect-output: no code cell directly before it",
        remedy="right after the cell whose output it holds",
    ),
    "two blocks": lambda kind: case(
        cell("6 * 7"),
        expect("42"),
        expect("4..."),
        message="expect-output: no code cell directly before it",
        remedy="one block a cell",
    ),
    "a vacuous block": lambda kind: case(
        cell("'vacuous'"),
        expect("... ..."),
        message="expect-output: the block agrees with any output",
        remedy="a part of it only",
    ),
    "an empty block": lambda kind: case(
        cell("'empty'"),
        expect(""),
        message="expect-output: the block is empty",
        remedy="Write what the reader must see",
    ),
    "an unknown word": lambda kind: case(
        cell("'unknown word'"),
        Block("expect-output", "'unknown word'", "exakt"),
        message="expect-output: unknown word 'exakt'",
        remedy="It may be: `exact`: .*; `image`: ",
    ),
    "white space where it counts": lambda kind: case(
        cell("print('a  b')"),
        Block("expect-output", "a b", "exact"),
        message=r"the output differs from the expected one\n.*-a b\n\+a  b",
        remedy=MEND,
    ),
    "an image of another size": lambda kind: case(
        cell(IMAGE),
        Block("expect-output", "image/svg+xml 4 x 4", "image"),
        message=r"the output differs from the expected one\n.*-image/svg\+xml 4 x 4\n\+.* 4 x 3",
        remedy=MEND,
    ),
    "an image that nobody asked for": lambda kind: case(
        cell(IMAGE.replace("4 3", "5 6")),
        expect("image/svg+xml 5 x 6"),
        message="expected output, but the cell printed nothing",
        remedy="What it shows is checked where the block says so: image",
    ),
    "a table": lambda kind: case(
        cell(TABLE),
        expect("a  1\nb  3"),
        message=r"the output differs from the expected one\n.* a  1\n-b  3\n\+b  2",
        remedy=MEND,
    ),
    "a table without a block": lambda kind: case(
        cell(TABLE.replace("2", "4")),
        message=r"text output without an expect-output block\na  1\nb  4",
        remedy="Put an expect-output block after the cell",
    ),
    "formulas": lambda kind: case(
        cell("from IPython.display import Latex\nLatex('$x^2$')"),
        expect("$x^3$"),
        message=r"the output differs from the expected one\n.*-\$x\^3\$\n\+\$x\^2\$",
        remedy=MEND,
    ),
    "another error than expected": lambda kind: case(
        cell("int('seven')", tags="raises-exception"),
        expect("ValueError: invalid literal for int() with base 10: 'eight'"),
        message=r"the output differs from the expected one\n.*\+ValueError: .* 'seven'",
        remedy=MEND,
    ),
    "a tagged error without a block": lambda kind: case(
        cell("x y", tags="raises-exception"),
        message=r"text output without an expect-output block\nSyntaxError: invalid syntax$",
        remedy="Put an expect-output block after the cell",
    ),
    "stderr that a block asks for": lambda kind: case(
        cell("import sys\nprint('careful', file=sys.stderr)", tags="allow-stderr"),
        Block("expect-output", "carefree", "stderr"),
        message=r"the output differs from the expected one\n.*-carefree\n\+careful",
        remedy=MEND,
    ),
    "a missing block": lambda kind: case(
        cell("'without a block'"),
        message="text output without an expect-output block\n'without a block'",
        remedy="run `python -m verified_book accept`",
    ),
    "a printed text without a block": lambda kind: case(
        cell("print('printed')\n3 + 4"),
        message="text output without an expect-output block\nprinted\n7",
        remedy="run `python -m verified_book accept`",
    ),
    "nothing printed": lambda kind: case(
        cell("nothing = 0"),
        expect("nothing is printed"),
        message="expected output, but the cell printed nothing; expected:\nnothing is printed",
        remedy="remove the block",
    ),
    "stderr": lambda kind: case(
        cell("import sys\nprint('oops', file=sys.stderr)"),
        message="the cell wrote to stderr\noops",
        remedy="allow-stderr",
    ),
    "a warning": lambda kind: case(
        cell("import warnings\nwarnings.warn('beware')"),
        message="the cell wrote to stderr\n.*UserWarning: beware",
        remedy="Silence its cause",
    ),
    "a cell of a claim raises": lambda kind: case(
        claim(f"raises-{kind}"),
        cell("assert not proven_before", tags="hide-input"),
        message=f"claim raises-{kind} no longer holds: the cell raised an error\n.*NameError",
        remedy="Mend the cell",
    ),
    "a block of a claim differs": lambda kind: case(
        claim(f"differs-{kind}"),
        cell("2.5"),
        expect("2.6"),
        message=f"claim differs-{kind} no longer holds: the output differs",
        remedy=MEND,
    ),
    "stderr in a proof": lambda kind: case(
        claim(f"noisy-{kind}"),
        cell("import sys\nassert proven\nprint('noise', file=sys.stderr)"),
        message=f"in the proof of claim noisy-{kind}: the cell wrote to stderr\nnoise",
        remedy="Silence its cause",
    ),
    "a missing block in a proof": lambda kind: case(
        claim(f"blockless-{kind}"),
        cell("assert proven\n'no block'"),
        message=f"in the proof of claim blockless-{kind}: text output without an expect-output",
        remedy="Put an expect-output block after the cell",
    ),
    "a calm proof": lambda kind: case(
        claim(f"calm-{kind}"),
        cell("assert proven, 'calm'", tags="raises-exception"),
        message=f"claim calm-{kind} no longer holds: the cell is tagged raises-exception, but",
        remedy="remove the tag",
    ),
    "no proof": lambda kind: case(
        claim(f"unproven-{kind}"),
        "Only prose.",
        message=NO_PROOF.format(f"unproven-{kind}"),
        remedy=PUT_CELLS,
        culprit=0,
    ),
    "a proof after the next heading": lambda kind: case(
        claim(f"heading-{kind}"),
        "## A heading",
        PROOF,
        message=NO_PROOF.format(f"heading-{kind}"),
        remedy=PUT_CELLS,
        culprit=0,
    ),
    "a proof after the next claim": lambda kind: case(
        claim(f"first-{kind}"),
        claim(f"second-{kind}"),
        cell("assert proven"),
        message=NO_PROOF.format(f"first-{kind}"),
        remedy=PUT_CELLS,
        culprit=0,
    ),
    "a proof that expects nothing": lambda kind: case(
        claim(f"vain-{kind}"),
        cell("vain = 1"),
        message=f"the proof of claim vain-{kind} cannot fail: it asserts and expects nothing$",
        remedy="Assert something in one of its cells",
        culprit=0,
    ),
    "a proof that asserts a constant": lambda kind: case(
        claim(f"constant-{kind}"),
        cell("assert 1 == 1, 'never'"),
        message=f"the proof of claim constant-{kind} cannot fail: it asserts and expects nothing$",
        remedy="Assert something",
        culprit=0,
    ),
    "a proof that does not run": lambda kind: case(
        claim(f"skipped-{kind}"),
        cell("assert proven == 2", tags="skip-execution"),
        message=f"the proof of claim skipped-{kind} cannot fail: it asserts and expects nothing$",
        remedy="Assert something",
        culprit=0,
    ),
    "an unknown verdict": lambda kind: case(
        claim(f"verdict-{kind}", verdict="maybe"),
        cell("assert proven, 1"),
        message="claim: unknown verdict 'maybe'$",
        remedy=r"^Give one of holds, holds-if, fails\.$",
        culprit=0,
    ),
    "an empty verdict": lambda kind: case(
        claim(f"empty-{kind}", verdict=""),
        cell("assert proven, 2"),
        message="claim: unknown verdict ''$",
        remedy=r"^Give one of holds, holds-if, fails\.$",
        culprit=0,
    ),
    "an unknown note": lambda kind: case(
        claim(f"note-{kind}", note="diary"),
        cell("assert proven, 3"),
        message="claim: unknown note 'diary'$",
        remedy=r"^Give one of book, other\.$",
        culprit=0,
    ),
    "an unknown option": lambda kind: case(
        with_options(f"option-{kind}", note="book", verdict="holds", proof="below"),
        cell("assert proven, 4"),
        message="claim: unknown option :proof:",
        remedy=":note:, :verdict:",
        culprit=0,
    ),
    "a missing verdict": lambda kind: case(
        with_options(f"no-verdict-{kind}", note="book"),
        cell("assert proven, 5"),
        message="claim: option :verdict: is missing$",
        remedy=r"^Give one of holds, holds-if, fails\.$",
        culprit=0,
    ),
    "a missing note": lambda kind: case(
        with_options(f"no-note-{kind}", verdict="holds"),
        cell("assert proven, 6"),
        message="claim: option :note: is missing$",
        remedy=r"^Give one of book, other\.$",
        culprit=0,
    ),
    "no id": lambda kind: case(
        claim(""),
        cell("assert proven, 7"),
        message="claim: it has no id$",
        remedy=ONE_WORD,
        culprit=0,
    ),
    "two words for an id": lambda kind: case(
        claim(f"two words-{kind}"),
        cell("assert proven, 8"),
        message=f"claim: 'two words-{kind}' is no id$",
        remedy=ONE_WORD,
        culprit=0,
    ),
    "no statement": lambda kind: case(
        claim(f"silent-{kind}", statement=""),
        cell("assert proven, 9"),
        message=f"claim silent-{kind} states nothing$",
        remedy=r"^Write the statement as its body\.$",
        culprit=0,
    ),
    "a claim that fails says what was stated": lambda kind: case(
        claim(f"unstated-{kind}", verdict="fails"),
        cell("assert proven, 'unstated'", shows="as stated"),
        message=f"claim unstated-{kind} fails, and does not say what was stated",
        remedy=":stated:",
        culprit=0,
    ),
    "a claim that fails has a counterexample": lambda kind: case(
        claim(f"unrefuted-{kind}", "It is so.\n:stated: It is not.", verdict="fails"),
        cell("assert proven, 'unrefuted'"),
        message=f"claim unrefuted-{kind} fails without a counterexample",
        remedy="as printed",
        culprit=0,
    ),
    "a condition that is never dropped": lambda kind: case(
        claim(f"if-{kind}", "It is so.\n:with luck: there is some.", verdict="holds-if"),
        cell("assert proven, 'if'"),
        message=f"claim if-{kind} never drops its condition, with luck",
        remedy=":shows: without luck",
        culprit=0,
    ),
    "a part that no claim has": lambda kind: case(
        claim(f"part-{kind}"),
        cell("assert proven, 'part'", shows="nonsense"),
        message="the cell shows 'nonsense', which is no part$",
        remedy="A cell may have the option :shows:",
    ),
    "an unknown field": lambda kind: case(
        claim(f"field-{kind}", "It is so.\n:state: It is not."),
        cell("assert proven, 'field'"),
        message="claim: a field :state: that is unknown, empty or given twice$",
        remedy=FIELDS,
        culprit=0,
    ),
    "a field given twice": lambda kind: case(
        claim(f"again-{kind}", "It is so.\n:stated: It is not.\n:stated: It is not."),
        cell("assert proven, 'again'"),
        message="claim: a field :stated: that is unknown, empty or given twice$",
        remedy=FIELDS,
        culprit=0,
    ),
    "an empty field": lambda kind: case(
        claim(f"bare-{kind}", "It is so.\n:stated:"),
        cell("assert proven, 'bare'"),
        message="claim: a field :stated: that is unknown, empty or given twice$",
        remedy=FIELDS,
        culprit=0,
    ),
    "what happens otherwise without a condition": lambda kind: case(
        claim(f"otherwise-{kind}", "It is so.\n:otherwise: It is not."),
        cell("assert proven, 'otherwise'"),
        message="claim: a field :otherwise: that is unknown, empty or given twice$",
        remedy=FIELDS,
        culprit=0,
    ),
    "an empty derivation": lambda kind: case(
        Block("derivation"),
        message="derivation: it is empty$",
        remedy=r"^Write the derivation as its body\.$",
    ),
    "a reference to no claim": lambda kind: case(
        f"See {{claim}}`nowhere-{kind}` for more.",
        message=f"a reference to the claim nowhere-{kind}, which does not exist$",
        remedy=f"^The claims of the book are: .*raises-{kind}, ",
    ),
    "a reference to no claim below empty lines": lambda kind: Case(
        [cell("below = 1"), f"\n\nSee {{claim}}`below-{kind}`."],
        f"See {{claim}}`below-{kind}`.",
        f"a reference to the claim below-{kind}, which does not exist$",
        "^The claims of the book are: ",
    ),
    "a reference to no claim in a list": lambda kind: Case(
        [f"- An item.\n- See {{claim}}`listed-{kind}`."],
        f"- See {{claim}}`listed-{kind}`.",
        f"a reference to the claim listed-{kind}, which does not exist$",
        "^The claims of the book are: ",
    ),
    "content in an index": lambda kind: case(
        Block("claims-index", f"- raises-{kind}"),
        message="claims-index: it has no content$",
        remedy=r"^Remove what stands in it\.$",
    ),
    "an option of an index": lambda kind: case(
        Block("claims-index", options={"note": "book"}),
        message="claims-index: unknown option :note:",
        remedy="The options of this directive are: none",
    ),
    "a block after a cell that is not shown": lambda kind: case(
        cell("'hidden'", tags="remove-cell"),
        expect("'hidden'"),
        message="expect-output: no code cell directly before it",
        remedy="right after the cell",
    ),
    "an error in a cell that is not shown": lambda kind: case(
        cell("{}['key']", tags="remove-cell"),
        message=r"the cell raised an error\n.*KeyError: 'key'",
        remedy="Mend the cell",
    ),
}

MARKDOWN_ONLY: dict[str, Callable[[str], Case]] = {
    "a nested cell": lambda kind: Case(
        [Block("note", [cell("'nested'")])],
        cell("'nested'"),
        "code-cell: MyST-NB does not run this cell",
        "top level of a page with a kernelspec",
    ),
}

RST_ONLY: dict[str, Callable[[str], Case]] = {
    "an empty cell": lambda kind: case(
        cell(""), message="code-cell: the cell is empty", remedy="remove it"
    ),
    "an option of a cell": lambda kind: case(
        Block("code-cell", "optional = 1", options={"tag": "x"}),
        message="code-cell: unknown option :tag:",
        remedy="The options of this directive are: :tags:",
    ),
    "a nested cell raises": lambda kind: Case(
        [Block("note", ["Nested:", cell("1 % 0")])],
        cell("1 % 0"),
        "the cell raised an error\n.*ZeroDivisionError",
        "Mend the cell",
    ),
    "a proof in a nested claim": lambda kind: case(
        claim(f"outer-{kind}"),
        Block("note", [claim(f"inner-{kind}"), cell("assert proven, 'inner'")]),
        message=NO_PROOF.format(f"outer-{kind}"),
        remedy=PUT_CELLS,
        culprit=0,
    ),
    "a nested block differs": lambda kind: Case(
        [Block("note", [Block("admonition", [cell("8 * 8"), expect("65")], "Deep")])],
        expect("65"),
        r"the output differs from the expected one\n.*-65\n\+64",
        MEND,
    ),
}

ALL = {
    "md": {name: make("md") for name, make in (CASES | MARKDOWN_ONLY).items()},
    "rst": {name: make("rst") for name, make in (CASES | RST_ONLY).items()},
}
FILES = {"md": "broken.md", "rst": "broken_too.rst"}
TWICE = {"md": claim("twice", "It is said."), "rst": claim("twice", "It is said again.")}

HOOK = """\
def hook():
    raise RuntimeError("in a hook")

get_ipython().events.register("post_execute", hook)"""


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Book:
    pages: dict[str, Parts] = {"index.md": ["# A broken book"]}
    for kind, cases in ALL.items():
        parts: list[Part] = ["# Broken", PROOF]
        for name, broken in cases.items():
            parts += [f"## {name}", *broken.parts]
        pages[FILES[kind]] = [*parts, "## Twice", TWICE[kind], cell("assert proven != 2")]
    pages["hook.md"] = ["# Hook", cell(HOOK)]
    pages["plain.md"] = []
    made = Book(tmp_path_factory.mktemp("broken"), pages)
    made.write("book/plain.md", "# Without front matter\n\n```{code-cell}\n1\n```\n")
    return made


@pytest.fixture(scope="module")
def build(book: Book) -> Build:
    return book.build()


@pytest.fixture(scope="module")
def second_build(book: Book, build: Build) -> Build:
    return book.build()


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for kind, cases in ALL.items() for name in cases]
)
def test_is_named_with_file_line_and_remedy(book: Book, build: Build, name: str, kind: str):
    broken, file = ALL[kind][name], FILES[kind]
    line = book.line_of(broken.culprit, file)
    there = [failure for failure in build.failures if (failure.file, failure.line) == (file, line)]
    assert len(there) == 1, build.log
    assert re.match(broken.message, there[0].message, re.DOTALL), there[0].message
    assert re.search(broken.remedy, there[0].remedy), there[0].remedy


@pytest.mark.parametrize(("kind", "other"), [("md", "rst"), ("rst", "md")])
def test_two_claims_with_one_id(book: Book, build: Build, kind: str, other: str):
    place = (FILES[kind], book.line_of(TWICE[kind], FILES[kind]))
    (failure,) = [f for f in build.failures if (f.file, f.line) == place]
    line = book.line_of(TWICE[other], FILES[other])
    message = f"two claims with the id twice; the other is at .*/{FILES[other]}:{line}"
    assert re.fullmatch(message, failure.message)
    assert failure.remedy == "Give one of them another id."


def test_an_error_in_a_display_hook(book: Book, build: Build):
    failure, *_ = [failure for failure in build.failures if failure.file == "hook.md"]
    assert failure.line == book.line_of(cell(HOOK), "hook.md")
    assert "RuntimeError: in a hook" in failure.message


def test_a_cell_on_a_page_without_front_matter(build: Build):
    (failure,) = [failure for failure in build.failures if failure.file == "plain.md"]
    assert failure.line == 3
    assert failure.message == "code-cell: MyST-NB does not run this cell"


def test_nothing_else_fails(book: Book, build: Build):
    expected = {
        (FILES[kind], book.line_of(broken.culprit, FILES[kind]))
        for kind, cases in ALL.items()
        for broken in cases.values()
    }
    expected |= {(FILES[k], book.line_of(part, FILES[k])) for k, part in TWICE.items()}
    expected |= {("hook.md", book.line_of(cell(HOOK), "hook.md")), ("plain.md", 3)}
    assert {(failure.file, failure.line) for failure in build.failures} == expected


def test_the_build_fails_and_says_how_much(build: Build):
    assert build.status == 1
    summary = (
        f"ERROR: {len(build.failures)} failed check(s) in the book; claims that no longer hold: "
    )
    names = [f"{name}-{kind}" for name in ("calm", "differs", "raises") for kind in FILES]
    assert f"{summary}{', '.join(names)}\n" in build.log


def test_the_site_is_written_all_the_same(build: Build):
    assert "ZeroDivisionError" in build.pages["broken.html"]
    proven = {claim["id"] for claim in build.claims if claim["proven"]}
    for name in (
        "unproven",
        "heading",
        "first",
        "vain",
        "constant",
        "skipped",
        "raises",
        "differs",
        "calm",
    ):
        assert not {f"{name}-md", f"{name}-rst"} & proven, name
    for name in ("second", "noisy", "blockless"):
        assert {f"{name}-md", f"{name}-rst"} <= proven, name


@pytest.mark.parametrize("kind", FILES)
def test_a_claim_that_no_longer_holds_looks_so(build: Build, kind: str):
    page = build.pages[FILES[kind].replace(f".{kind}", ".html")]
    assert '<details class="claim-proof" open>' in page
    for name, broken in (("differs", True), ("unproven", True), ("noisy", False)):
        frame = page[: page.index(f'id="claim-{name}-{kind}"')].rpartition("<div class=")[0]
        frame = frame.rpartition('<div class="settled')[2]
        assert frame.startswith(" settled-holds settled-broken docutils" if broken else " settled-")
        assert ("settled-broken" in frame) is broken
        box = page[page.index(f'id="claim-{name}-{kind}"') :].partition(
            '<div class="claim-evidence'
        )
        start = page[: page.index(f'id="claim-{name}-{kind}"')].rpartition("<div")[2]
        assert ("claim-broken" in start) is broken
        said = "Not proven in this build: see its log." in box[2].partition("</div>")[0]
        assert said is broken


def test_an_unchanged_build_fails_again_without_running_a_cell(build: Build, second_build: Build):
    assert second_build.status == 1
    assert second_build.executed == set()
    assert second_build.failures == build.failures


DIES = "time.sleep(1.5)  # the kernel has said that it began\nos._exit(1)"
STRICT = "---\nexecution: {allow_errors: false}\n"
STRICT_PAGE = ["# Strict", cell("raise ValueError"), cell("print(1)\n2"), expect("1\n2")]


def late_page(kind: str) -> list[Part]:
    """A page whose third cell takes too long, and which expects much of those after it."""
    return [
        "# Late",
        claim(f"early-{kind}"),
        cell("early = 1\nassert early"),
        claim(f"slow-{kind}", "It is slow."),
        cell("early"),
        expect("1"),
        cell("import time\ntime.sleep(60)"),
        expect("done"),
        claim(f"later-{kind}", "It is later."),
        cell("assert early == 1"),
        cell("'later'"),
        expect("'later'"),
    ]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Book, Build]:
    pages: dict[str, Parts] = {"index.md": ["# Slow"]}
    pages |= {f"late.{kind}": late_page(kind) for kind in ("md", "rst")}
    del pages["late.rst"]
    pages["later.rst"] = late_page("rst")
    pages["dead.md"] = ["# Dead", cell("import os, time"), cell(DIES), expect("1"), cell("2")]
    pages["excluded.md"] = [
        "# Excluded",
        claim("excluded"),
        cell("assert pages"),
        cell("3"),
        expect("3"),
    ]
    config = CONFIG.replace("timeout: 60", "timeout: 4, exclude_patterns: [excluded*]")
    pages["strict.md"] = STRICT_PAGE
    book = Book(tmp_path_factory.mktemp("stopped"), pages, config)
    book.write("book/strict.md", book.texts["strict.md"].replace("---\n", STRICT, 1))
    return book, book.build()


def test_a_kernel_that_dies(stopped: tuple[Book, Build]):
    book, build = stopped
    (failure,) = [failure for failure in build.failures if failure.file == "dead.md"]
    assert failure.line == book.line_of(cell(DIES), "dead.md")
    assert (
        failure.message == "DeadKernelError in this cell or the one after it; no later cell has run"
    )
    assert "too little memory" in failure.remedy


def test_a_page_that_stops_at_its_first_error(stopped: tuple[Book, Build]):
    book, build = stopped
    (failure,) = [failure for failure in build.failures if failure.file == "strict.md"]
    assert failure.line == book.line_of(cell("raise ValueError"), "strict.md") + 1
    assert failure.message.startswith("the cell raised an error\n")


def test_a_page_that_is_excluded_from_execution(stopped: tuple[Book, Build]):
    _, build = stopped
    assert not [failure for failure in build.failures if failure.file == "excluded.md"]
    for what in ("1 expected block(s) not checked", "1 claim(s) not proven"):
        warning = f"excluded.md: WARNING: verified_book: {what}, since the page is not executed\n"
        assert warning in build.log
    assert not {item["id"]: item["proven"] for item in build.claims}["excluded"]


@pytest.fixture(scope="module")
def unexecuted(tmp_path_factory: pytest.TempPathFactory) -> Build:
    pages = {
        "index.md": [
            "# A book",
            claim("open"),
            PROOF,
            cell("1"),
            expect("2"),
            Block("claims-index"),
        ]
    }
    config = CONFIG.replace("execute_notebooks: cache", "execute_notebooks: 'off'")
    return Book(tmp_path_factory.mktemp("off"), pages, config).build("-W", "-n")


def test_a_build_that_runs_no_cells_proves_no_claim(unexecuted: Build):
    assert unexecuted.status == 0
    assert "0 outputs as expected, 0 not checked, 0 claims settled" in unexecuted.log
    assert [item["proven"] for item in unexecuted.claims] == [False]
    text = words(unexecuted.article("index.html"))
    assert text.count("Not proven in this build: see its log.") == 2  # in its box and in the index


@pytest.mark.parametrize("file", ["late.md", "later.rst"])
def test_a_cell_that_runs_past_its_time_limit(stopped: tuple[Book, Build], file: str):
    book, build = stopped
    (failure,) = [failure for failure in build.failures if failure.file == file]
    assert failure.line == book.line_of(cell("import time\ntime.sleep(60)"), file)
    assert "past its time limit of 4 seconds; no later cell has run" in failure.message
    assert "execute.timeout" in failure.remedy
    assert build.status == 1


def test_claims_of_cells_that_did_not_run_are_not_proven(stopped: tuple[Book, Build]):
    _, build = stopped
    proven = {claim["id"]: claim["proven"] for claim in build.claims}
    for kind in ("md", "rst"):
        names = [f"early-{kind}", f"slow-{kind}", f"later-{kind}"]
        assert [proven[name] for name in names] == [True, False, False]
