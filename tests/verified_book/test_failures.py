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


@dataclass(frozen=True)
class Case:
    """Parts of a page of which one is to blame; its message and remedy must match the patterns."""

    parts: Parts
    culprit: Part
    message: str
    remedy: str


def case(*parts: Part, message: str, remedy: str, culprit: int = -1) -> Case:
    return Case(parts, parts[culprit], message, remedy)


def differs(shown: Block, block: Block, difference: str) -> Case:
    message = rf"the output differs from the expected one\n{difference}"
    return case(shown, block, message=message, remedy="Mend the code")


def unproven(name: str, *others: Part) -> Case:
    """A claim with no cell of its own."""
    message = f"claim {name} has no proof: no code cell before the next claim or heading$"
    remedy = r"^Put the cells that prove it right after it\.$"
    return case(claim(name), *others, message=message, remedy=remedy, culprit=0)


IMAGE = "from IPython.display import SVG\nSVG('<svg viewBox=\"0 0 4 3\"/>')"
TABLE = """\
from IPython.display import HTML
HTML("<table><tr><td>a<td>1<tr><td>b<td>2</table>")"""

# By name, as those of claims below.
OF_OUTPUTS: dict[str, Case] = {
    "a wrong digit": differs(
        cell("print('tensor([[0.2500, 0.5000],\\n        [2.5000, 0.1250]])')"),
        expect("tensor([[0.25, 0.5],\n        [2.5, 0.126]])"),
        r"--- expected\n\+\+\+ executed\n@@ .* @@\n"
        r" tensor\(\[\[0\.25, 0\.5\],\n"
        r"-        \[2\.5, 0\.126\]\]\)\n"
        r"\+        \[2\.5000, 0\.1250\]\]\)",
    ),
    "a block after prose": case(
        *("Prose.", expect("after prose")),
        message="expect-output: no code cell directly before it",
        remedy="right after the cell .*; one block a cell",
    ),
    "an image of another size": differs(
        cell(IMAGE),
        Block("expect-output", "image/svg+xml 4 x 4", "image"),
        r".*-image/svg\+xml 4 x 4\n\+.* 4 x 3",
    ),
    "a table": differs(cell(TABLE), expect("a  1\nb  3"), r".* a  1\n-b  3\n\+b  2"),
    "a printed text without a block": case(
        cell("print('printed')\n3 + 4"),
        message=r"text output without an expect-output block\nprinted\n7",
        remedy="^Put an expect-output block after the cell, or run `python -m verified_book",
    ),
    "stderr": case(
        cell("import sys\nprint('oops', file=sys.stderr)"),
        message="the cell wrote to stderr\noops",
        remedy=r"^Silence its cause; tag the cell allow-stderr if .*\.$",
    ),
    "an error in a cell that is not shown": case(
        cell("{}['key']", tags="remove-cell"),
        message="the cell raised an error\n.*KeyError: 'key'",
        remedy=r"^Mend the cell .*; tag it raises-exception if .*\.$",
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
    }


def of_claims(kind: str) -> dict[str, Case]:
    """What else is wrong with claims."""
    return {
        "no proof": unproven(f"unproven-{kind}", "Only prose."),
        "a proof after the next heading": unproven(f"heading-{kind}", "## A heading", PROOF),
        "a proof that does not run": case(
            *(claim(f"skipped-{kind}"), cell("assert proven == 2", tags="skip-execution")),
            message=f"the proof of claim skipped-{kind} cannot fail: it asserts and",
            remedy="Assert something in one of its cells",
            culprit=0,
        ),
        "an unknown verdict": case(
            *(claim(f"verdict-{kind}", verdict="maybe"), PROOF),
            message="claim: unknown verdict 'maybe'$",
            remedy=r"^Give one of holds, holds-if, fails\.$",
            culprit=0,
        ),
        "a part that no claim has": case(
            claim(f"part-{kind}"),
            cell("assert proven, 'part'", shows="nonsense"),
            message="the cell shows 'nonsense', which is no part$",
            remedy="A cell may have the option :shows:",
        ),
        "an unknown field": case(
            *(claim(f"field-{kind}", "It is so.\n:state: It is not."), PROOF),
            message="claim: a field :state: that is unknown, empty or given twice$",
            remedy="^The fields are one :stated:, and for each condition :with NAME: or ",
            culprit=0,
        ),
        "two claims with one address": case(
            *(claim(f"dot-{kind}"), PROOF, "## Again", claim(f"dot.{kind}"), PROOF),
            message=f"claim dot-{kind} and claim dot.{kind} have the same address, #claim-dot-",
            remedy="an id that differs in its letters a-z and digits",
            culprit=3,
        ),
        "a reference to no claim": case(
            f"See {{claim}}`nowhere-{kind}` for more.",
            message=f"a reference to the claim nowhere-{kind}, which does not exist$",
            remedy="^The claims of the book are: .*raises-md, ",
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
}

# What is wrong with outputs and with claims is known to the same code in both languages.
IN_BOTH = ["a wrong digit", "a block after prose", "stderr"]
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
    return Book(tmp_path_factory.mktemp("broken"), pages)


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


def test_nothing_else_fails(book: Book, build: Build):
    expected = {
        (FILES[kind], book.line_of(broken.culprit, FILES[kind]))
        for kind, cases in ALL.items()
        for broken in cases.values()
    }
    expected |= {(FILES[k], book.line_of(part, FILES[k])) for k, part in TWICE.items()}
    expected |= {("hook.md", book.line_of(cell(HOOK), "hook.md"))}
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
    assert proven.isdisjoint("unproven-md heading-md skipped-md raises-rst differs-rst".split())
    assert proven >= {"noisy-md", "noisy-rst"}


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


LATE: Parts = [
    *("# Late", claim("early"), cell("early = 1\nassert early")),
    *(claim("slow"), cell("early"), expect("1"), cell(SLEEPS), expect("done")),
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


def test_claims_of_cells_that_did_not_run_are_not_proven(stopped: tuple[Book, Build]):
    _, build = stopped
    assert {claim["id"]: claim["proven"] for claim in build.claims} == {
        **{"early": True, "slow": False, "excluded": False}
    }


def test_a_page_that_is_excluded_from_execution(stopped: tuple[Book, Build]):
    _, build = stopped
    assert not [failure for failure in build.failures if failure.file == "excluded.md"]
    for what in ("1 expected block(s) not checked", "1 claim(s) not proven"):
        warning = f"excluded.md: WARNING: verified_book: {what}, since the page is not executed\n"
        assert warning in build.log
