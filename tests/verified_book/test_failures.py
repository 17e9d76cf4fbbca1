"""Everything that must fail a build does so, and the log has its file, its line, the remedy."""

import re
from dataclasses import dataclass

import pytest
from bs4 import BeautifulSoup

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
)

pytestmark = pytest.mark.xdist_group("failures")

PROOF = cell("proven = 1\nassert proven")
VERDICTS = r"^Give one of holds, holds-if, fails\.$"
NOTES = r"^Give one of book, other\.$"
ONE_WORD = r"^Write one word after the name: claim A3; options below it\.$"


@dataclass(frozen=True)
class Case:
    """Parts of a page of which one is to blame; its message and remedy must match the patterns."""

    parts: Parts
    culprit: Part
    message: str
    remedy: str


def case(*parts: Part, message: str, remedy: str, culprit: int = -1) -> Case:
    return Case(parts, parts[culprit], message, remedy)


def raises(raising: Block, error: str) -> Case:
    remedy = r"^Mend the cell .*; tag it raises-exception if .*\.$"
    return case(raising, message=rf"the cell raised an error\n.*{error}", remedy=remedy)


def is_loud(writing: Block, text: str) -> Case:
    remedy = r"^Silence its cause; tag the cell allow-stderr if .*\.$"
    return case(writing, message=f"the cell wrote to stderr\n{text}", remedy=remedy)


def lacks_block(shown: Block, text: str) -> Case:
    remedy = "^Put an expect-output block after the cell, or run `python -m verified_book accept`"
    return case(
        shown, message=rf"text output without an expect-output block\n{text}", remedy=remedy
    )


def lacks_cell(*parts: Part) -> Case:
    message = "expect-output: no code cell directly before it"
    return case(*parts, message=message, remedy="right after the cell .*; one block a cell")


def differs(shown: Block, block: Block, difference: str) -> Case:
    message = rf"the output differs from the expected one\n{difference}"
    return case(shown, block, message=message, remedy="Mend the code")


def wrong_claim(wrong: Block, message: str, remedy: str) -> Case:
    """A claim that is wrong whatever its proof shows."""
    return case(wrong, PROOF, message=message, remedy=remedy, culprit=0)


def with_options(name: str, **options: str) -> Block:
    return Block("claim", "It is so.", name, options)


def wrong_field(name: str, field: str, fields: str) -> Case:
    """A claim with fields of which one is wrong."""
    message = f"claim: a field :{field}: that is unknown, empty or given twice$"
    remedy = (
        r"^The fields are one :stated:, and for each condition :with NAME: or "
        r":without NAME:, which :otherwise: may follow\.$"
    )
    return wrong_claim(claim(name, f"It is so.\n{fields}"), message, remedy)


def unproven(name: str, *others: Part) -> Case:
    """A claim with no cell of its own."""
    message = f"claim {name} has no proof: no code cell before the next claim or heading$"
    remedy = r"^Put the cells that prove it right after it\.$"
    return case(claim(name), *others, message=message, remedy=remedy, culprit=0)


def cannot_fail(name: str, proof: Block) -> Case:
    message = f"the proof of claim {name} cannot fail: it asserts and expects nothing$"
    remedy = "Assert something in one of its cells"
    return case(claim(name), proof, message=message, remedy=remedy, culprit=0)


def no_such_claim(name: str, text: str, *before: Part) -> Case:
    """A text that refers to a claim in its last line."""
    message = f"a reference to the claim {name}, which does not exist$"
    remedy = "^The claims of the book are: .*raises-md, "
    return Case([*before, text], text.strip().rpartition("\n")[2], message, remedy)


IMAGE = "from IPython.display import SVG\nSVG('<svg viewBox=\"0 0 4 3\"/>')"
TABLE = """\
from IPython.display import HTML
HTML("<table><tr><td>a<td>1<tr><td>b<td>2</table>")"""

# By name, as those of claims below.
OF_OUTPUTS: dict[str, Case] = {
    "a cell raises": raises(cell("1 / 0"), "ZeroDivisionError: division by zero"),
    "a cell raises a group": raises(
        cell("raise ExceptionGroup('two of them', [ValueError('a'), KeyError('b')])"),
        r"ExceptionGroup: two of them \(2 sub-exceptions\)\n.*ValueError: a\n.*KeyError: 'b'",
    ),
    "a cell raises nothing": case(
        cell("calm = 1", tags="raises-exception"),
        message="the cell is tagged raises-exception, but raised nothing",
        remedy="remove the tag",
    ),
    "a wrong digit": differs(
        cell("print('tensor([[0.2500, 0.5000],\\n        [2.5000, 0.1250]])')"),
        expect("tensor([[0.25, 0.5],\n        [2.5, 0.126]])"),
        r"--- expected\n\+\+\+ executed\n@@ .* @@\n"
        r" tensor\(\[\[0\.25, 0\.5\],\n"
        r"-        \[2\.5, 0\.126\]\]\)\n"
        r"\+        \[2\.5000, 0\.1250\]\]\)",
    ),
    "a block after prose": lacks_cell("Prose.", expect("after prose")),
    "two blocks": lacks_cell(cell("6 * 7"), expect("42"), expect("4...")),
    "a vacuous block": case(
        cell("'vacuous'"),
        expect("... ..."),
        message="expect-output: the block agrees with any output",
        remedy="a part of it only",
    ),
    "an empty block": case(
        cell("'empty'"),
        expect(""),
        message="expect-output: the block is empty",
        remedy="Write what the reader must see",
    ),
    "an image of another size": differs(
        cell(IMAGE),
        Block("expect-output", "image/svg+xml 4 x 4", "image"),
        r".*-image/svg\+xml 4 x 4\n\+.* 4 x 3",
    ),
    "an image that nobody asked for": case(
        cell(IMAGE.replace("4 3", "5 6")),
        expect("image/svg+xml 5 x 6"),
        message="expected output, but the cell printed nothing",
        remedy="What it shows is checked where the block says so: image",
    ),
    "a table": differs(cell(TABLE), expect("a  1\nb  3"), r".* a  1\n-b  3\n\+b  2"),
    "a printed text without a block": lacks_block(cell("print('printed')\n3 + 4"), r"printed\n7"),
    "nothing printed": case(
        cell("nothing = 0"),
        expect("nothing is printed"),
        message="expected output, but the cell printed nothing; expected:\nnothing is printed",
        remedy="remove the block",
    ),
    "stderr": is_loud(cell("import sys\nprint('oops', file=sys.stderr)"), "oops"),
    "a warning": is_loud(cell("import warnings\nwarnings.warn('beware')"), ".*UserWarning: beware"),
    "a block after a cell that is not shown": lacks_cell(
        cell("'hidden'", tags="remove-cell"), expect("'hidden'")
    ),
    "an error in a cell that is not shown": raises(
        cell("{}['key']", tags="remove-cell"), "KeyError: 'key'"
    ),
}


def refuted(kind: str) -> dict[str, Case]:
    """Claims that do not hold, on a page of a kind, "md" or "rst", which keeps their ids apart."""
    return {
        "a cell of a claim raises": case(
            claim(f"raises-{kind}"),
            cell("assert not proven_before", tags="hide-input"),
            message=f"claim raises-{kind} no longer holds: the cell raised an error\n.*NameError",
            remedy="Mend the cell",
        ),
        "a block of a claim differs": case(
            claim(f"differs-{kind}"),
            cell("2.5"),
            expect("2.6"),
            message=f"claim differs-{kind} no longer holds: the output differs",
            remedy="Mend the code",
        ),
        "stderr in a proof": case(
            claim(f"noisy-{kind}"),
            cell("import sys\nassert proven\nprint('noise', file=sys.stderr)"),
            message=f"in the proof of claim noisy-{kind}: the cell wrote to stderr\nnoise",
            remedy="Silence its cause",
        ),
        "a missing block in a proof": case(
            claim(f"blockless-{kind}"),
            cell("assert proven\n'no block'"),
            message=f"in the proof of claim blockless-{kind}: text output without an expect-output",
            remedy="Put an expect-output block after the cell",
        ),
    }


def of_claims(kind: str) -> dict[str, Case]:
    """What else is wrong with claims."""
    return {
        "no proof": unproven(f"unproven-{kind}", "Only prose."),
        "a proof after the next heading": unproven(f"heading-{kind}", "## A heading", PROOF),
        "a proof that asserts a constant": cannot_fail(
            f"constant-{kind}", cell("assert 1 == 1, 'never'")
        ),
        "a proof that does not run": cannot_fail(
            f"skipped-{kind}", cell("assert proven == 2", tags="skip-execution")
        ),
        "an unknown verdict": wrong_claim(
            claim(f"verdict-{kind}", verdict="maybe"), "claim: unknown verdict 'maybe'$", VERDICTS
        ),
        "an unknown option": wrong_claim(
            with_options(f"option-{kind}", note="book", verdict="holds", proof="below"),
            "claim: unknown option :proof:",
            ":note:, :verdict:",
        ),
        "a missing verdict": wrong_claim(
            with_options(f"no-verdict-{kind}", note="book"),
            "claim: option :verdict: is missing$",
            VERDICTS,
        ),
        "no id": wrong_claim(claim(""), "claim: it has no id$", ONE_WORD),
        "no statement": wrong_claim(
            claim(f"silent-{kind}", statement=""),
            f"claim silent-{kind} states nothing$",
            r"^Write the statement as its body\.$",
        ),
        "a claim that fails says what was stated": case(
            claim(f"unstated-{kind}", verdict="fails"),
            cell("assert proven, 'unstated'", shows="as stated"),
            message=f"claim unstated-{kind} fails, and does not say what was stated",
            remedy=":stated:",
            culprit=0,
        ),
        "a part that no claim has": case(
            claim(f"part-{kind}"),
            cell("assert proven, 'part'", shows="nonsense"),
            message="the cell shows 'nonsense', which is no part$",
            remedy="A cell may have the option :shows:",
        ),
        "an unknown field": wrong_field(f"field-{kind}", "state", ":state: It is not."),
        "an empty derivation": case(
            Block("derivation"),
            message="derivation: it is empty$",
            remedy=r"^Write the derivation as its body\.$",
        ),
        "a reference to no claim": no_such_claim(
            f"nowhere-{kind}", f"See {{claim}}`nowhere-{kind}` for more."
        ),
        "a reference to no claim below empty lines": no_such_claim(
            f"below-{kind}", f"\n\nSee {{claim}}`below-{kind}`.", cell("below = 1")
        ),
        "content in an index": case(
            Block("claims-index", f"- raises-{kind}"),
            message="claims-index: it has no content$",
            remedy=r"^Remove what stands in it\.$",
        ),
    }


MARKDOWN_ONLY: dict[str, Case] = {
    "a nested cell": Case(
        [Block("note", [cell("'nested'")])],
        cell("'nested'"),
        "code-cell: MyST-NB does not run this cell",
        "top level of a page with a kernelspec",
    ),
}

RST_ONLY: dict[str, Case] = {
    "an empty cell": case(cell(""), message="code-cell: the cell is empty", remedy="remove it"),
    "an option of a cell": case(
        Block("code-cell", "optional = 1", options={"tag": "x"}),
        message="code-cell: unknown option :tag:",
        remedy="The options of this directive are: :tags:",
    ),
    "a nested cell raises": Case(
        [Block("note", ["Nested:", cell("1 % 0")])],
        cell("1 % 0"),
        "the cell raised an error\n.*ZeroDivisionError",
        "Mend the cell",
    ),
    "a proof in a nested claim": unproven(
        "outer-rst", Block("note", [claim("inner-rst"), cell("assert proven, 'inner'")])
    ),
    "a nested block differs": Case(
        [Block("note", [Block("admonition", [cell("8 * 8"), expect("65")], "Deep")])],
        expect("65"),
        r"the output differs from the expected one\n.*-65\n\+64",
        "Mend the code",
    ),
}

# What is wrong with outputs and with claims is known to the same code in both languages.
IN_BOTH = ["a wrong digit", "a block after prose", "two blocks", "an empty block", "stderr"]
ALL = {
    "md": OF_OUTPUTS | refuted("md") | of_claims("md") | MARKDOWN_ONLY,
    "rst": {name: OF_OUTPUTS[name] for name in IN_BOTH} | refuted("rst") | RST_ONLY,
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
    names = [f"{name}-{kind}" for name in ("differs", "raises") for kind in FILES]
    assert f"{summary}{', '.join(names)}\n" in build.log


def test_the_site_is_written_all_the_same(build: Build):
    assert "ZeroDivisionError" in build.pages["broken.html"]
    proven = {claim["id"] for claim in build.claims if claim["proven"]}
    broken = "unproven-md heading-md constant-md skipped-md raises-rst differs-rst".split()
    assert proven.isdisjoint(broken)
    assert proven >= {f"{name}-{kind}" for name in ("noisy", "blockless") for kind in FILES}


@pytest.mark.parametrize(
    ("name", "kind", "broken"),
    [("differs", "rst", True), ("unproven", "md", True), ("noisy", "md", False)],
)
def test_a_claim_that_no_longer_holds_looks_so(build: Build, name: str, kind: str, broken: bool):
    text = build.pages[FILES[kind].replace(f".{kind}", ".html")]
    assert '<details class="claim-proof" open>' in text
    page = BeautifulSoup(text, "html.parser")
    box = page.select_one(f"#claim-{name}-{kind}")
    frame = box.find_parent(class_="settled")
    assert "settled-holds" in frame["class"]
    assert ("settled-broken" in frame["class"]) is broken
    assert ("claim-broken" in box["class"]) is broken
    said = "Not proven in this build: see its log." in box.select_one(".claim-evidence").get_text()
    assert said is broken


DIES = "time.sleep(1.5)  # the kernel has said that it began\nos._exit(1)"
STRICT = "---\nexecution: {allow_errors: false}\n"
SLEEPS, RAISES = "import time\ntime.sleep(60)", "raise ValueError"


# Its third cell takes too long, and much is expected of those after it.
LATE: Parts = [
    "# Late",
    claim("early"),
    cell("early = 1\nassert early"),
    claim("slow", "It is slow."),
    *(cell("early"), expect("1")),
    *(cell(SLEEPS), expect("done")),
    claim("later", "It is later."),
    cell("assert early == 1"),
    *(cell("'later'"), expect("'later'")),
]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Book, Build]:
    excluded = ["# Excluded", claim("excluded"), cell("assert pages"), cell("3"), expect("3")]
    pages: dict[str, Parts] = {
        "index.md": ["# Slow"],
        "late.rst": LATE,
        "dead.md": ["# Dead", cell("import os, time"), cell(DIES), expect("1"), cell("2")],
        "strict.md": ["# Strict", cell(RAISES), cell("print(1)\n2"), expect("1\n2")],
        "excluded.md": excluded,
    }
    config = CONFIG.replace("timeout: 60", "timeout: 4, exclude_patterns: [excluded*]")
    book = Book(tmp_path_factory.mktemp("stopped"), pages, config)
    book.texts["strict.md"] = book.texts["strict.md"].replace("---\n", STRICT, 1)
    book.write("book/strict.md", book.texts["strict.md"])
    return book, book.build()


@pytest.mark.parametrize(
    ("file", "code", "message", "remedy"),
    [
        ("late.rst", SLEEPS, ".* past its time limit of 4 seconds; no later", r"execute\.timeout"),
        ("dead.md", DIES, "DeadKernelError in this cell or the one after", "too little memory"),
        ("strict.md", RAISES, "the cell raised an error\n", "Mend the cell"),
    ],
    ids=["too slow", "the kernel dies", "the first error ends it"],
)
def test_the_cell_that_stops_its_page_is_named(
    stopped: tuple[Book, Build], file: str, code: str, message: str, remedy: str
):
    book, build = stopped
    assert build.status == 1
    (failure,) = [failure for failure in build.failures if failure.file == file]
    assert failure.line == book.line_of(cell(code), file)
    assert re.match(message, failure.message)
    assert file == "strict.md" or failure.message.endswith("; no later cell has run")
    assert re.search(remedy, failure.remedy)


def test_a_page_that_is_excluded_from_execution(stopped: tuple[Book, Build]):
    _, build = stopped
    assert not [failure for failure in build.failures if failure.file == "excluded.md"]
    for what in ("1 expected block(s) not checked", "1 claim(s) not proven"):
        warning = f"excluded.md: WARNING: verified_book: {what}, since the page is not executed\n"
        assert warning in build.log
    assert not {item["id"]: item["proven"] for item in build.claims}["excluded"]


def test_claims_of_cells_that_did_not_run_are_not_proven(stopped: tuple[Book, Build]):
    _, build = stopped
    proven = {claim["id"]: claim["proven"] for claim in build.claims}
    assert [proven[name] for name in ("early", "slow", "later")] == [True, False, False]
