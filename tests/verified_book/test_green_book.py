"""A whole book that builds without a warning: what it shows and what it publishes."""

import re
import sys
from importlib import metadata

import pytest

from tests.verified_book.books import Block, Book, Build, Part, Parts, cell, claim, expect, words

pytestmark = pytest.mark.xdist_group("green book")

STRICT = ("-W", "-n", "--keep-going")

BOTH = """\
import time
for number, word in enumerate(("first ", "second\\n", "third\\n", "fourth\\n", "last\\n")):
    print(word, end="", file=sys.stderr if number % 2 else sys.stdout)
    time.sleep({pause})"""


def evidence(*arguments: object) -> str:
    return f"from evidence import Evidence\nEvidence{arguments}"


def chapter(kind: str) -> list[Part]:
    """One of everything that a chapter may have; `kind` keeps ids and labels apart."""
    proof = cell("assert 2 > one")
    return [
        f"# Chapter {kind}",
        claim(f"S{kind}", f"The sum {{math}}`1 + 1` is **two**, see {{claim}}`F{kind}`."),
        "Words in between.",
        cell("one = 1\none + one"),
        expect("2"),
        cell(evidence("equal", 2e-7, 1e-6, "equal: 2.0e-07", "equal: ..."), tags="hide-input"),
        expect("equal: ..."),
        cell(evidence("equal", 1e-9, 2e-9)),
        expect("equal: 1.00e-09, tolerance 2e-09"),
        "Words after it.",
        claim(f"I{kind}", "If so.\n:with luck: there is *some*.", "other", "holds-if"),
        cell(evidence("different", 316.2, 0.5), shows="without luck"),
        expect("different: 316.2, tolerance 0.5"),
        cell(evidence("equal", 0.0, None)),
        expect("equal: 0.0, tolerance None"),
        "## A heading",
        claim(f"F{kind}", "It does not.\n:stated: It does,\nsaid they.", "other", "fails"),
        cell(evidence("different", 0.25, 0.1), shows="as stated"),
        expect("different: 0.25, tolerance 0.1"),
        claim(f"P{kind}", "It is asserted."),
        Block("note", ["Because:", proof]) if kind == "rst" else proof,
        claim(f"L{kind}", "It is derived."),
        Block("derivation", "By {math}`1 + 1 = 2`."),
        cell("assert one, 'linked'"),
        "## Cells of every kind",
        cell("'removed'", tags="remove-cell"),
        cell("'no output'", tags="remove-output"),
        cell("print('no code')", tags="remove-input"),
        expect("no code"),
        cell("raise ValueError('for the reader')", tags="raises-exception, hide-output"),
        expect("ValueError: for the reader"),
        cell("import sys\nprint('a log', file=sys.stderr)", tags="allow-stderr"),
        cell(BOTH.format(pause=0.3), tags="allow-stderr"),
        Block("expect-output", "first third\nlast\nsecond\nfourth", "stderr exact"),
        cell(BOTH.format(pause=0), tags="allow-stderr"),
        Block("expect-output", "first third\nlast\nsecond\nfourth", "stderr exact"),
        cell("never", tags="skip-execution"),
        cell("from IPython.display import HTML\nHTML('<b>shown</b>')"),
        cell("print('\\x1b[31mred\\x1b[0m')\n[0.123456]"),
        expect("red\n[0.123]"),
        "## The end",
        "No cell after this.",
    ]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Book:
    pages: dict[str, Parts] = {
        "index.md": ["# A book", "First, {claim}`Imd`.", Block("claims-index")],
        "one.md": chapter("md"),
        "deep/two.rst": chapter("rst"),
    }
    return Book(tmp_path_factory.mktemp("green"), pages)


@pytest.fixture(scope="module")
def build(book: Book) -> Build:
    return book.build(*STRICT)


PAGES = {"md": "one.html", "rst": "deep/two.html"}


@pytest.fixture(params=PAGES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def text(build: Build, kind: str) -> str:
    """The chapter that the site shows, without the theme around it."""
    return build.article(PAGES[kind])


def claim_box(text: str, name: str) -> str:
    """A claim's frame with its proof."""
    frames = text.split('<div class="settled')
    (found,) = [frame for frame in frames if f'id="claim-{name.lower()}"' in frame]
    return found


def test_it_is_green_and_says_what_it_checked(build: Build):
    assert build.status == 0, build.log
    summary = "28 outputs as expected, 4 not checked, 10 claims settled"
    assert f"verified_book: {summary}\n" in build.log
    for kind in ("html", "stderr"):
        assert re.search(f"not checked: 2 {kind} \\(deep/two.rst \\d+; one.md \\d+\\)\n", build.log)
    assert build.failures == []


def test_expected_blocks_leave_no_trace(build: Build):
    for path in build.site.rglob("*"):
        if path.suffix in (".html", ".js") and path.is_file():
            page = path.read_text(encoding="utf-8", errors="replace")
            assert "expect-output" not in page, path
            assert "expected_output" not in page, path
            assert "1.00e-09" not in page, path  # written in expected blocks only


def test_each_verdict_has_its_words(text: str, kind: str):
    box = words(claim_box(text, f"I{kind}"))
    assert f"holds if I{kind} other notes" in box
    assert "with luck: there is some . without luck: off by 320 one input; no difference" in box
    box = words(claim_box(text, f"F{kind}"))
    assert f"fails F{kind} other notes" in box
    assert "✗ It does, said they. as stated: off by 0.25 In fact: It does" in box
    assert "as expected in one cell" in words(claim_box(text, f"P{kind}"))


def test_tags_show_and_hide_cells(text: str):
    section = text[text.index("Cells of every kind") : text.index("The end")]
    assert "removed" not in section
    assert section.count("no output") == 1  # the code
    assert section.count("no code") == 1  # the output
    assert "ValueError: for the reader" in re.sub(r"<[^>]+>", "", section)
    assert "Show code cell output" in section
    assert 'class="output stderr' in section
    assert "never" in section
    assert "<b>shown</b>" in section
    assert "[0.123456]" in section


def test_the_index_counts_and_lists_every_claim(build: Build):
    index = build.article("index.html")
    counts, book, other = re.findall(r"<tbody>.*?</tbody>", index, re.DOTALL)
    assert words(counts) == "this book 6 0 0 6 other notes 0 2 2 4 all 6 2 2 10"
    first = re.compile(r"<tr[^>]*><td>(.*?)</td>", re.DOTALL)
    assert [words(cell) for cell in first.findall(book)] == [
        *["Lmd", "Lrst", "Pmd"],
        *["Prst", "Smd", "Srst"],
    ]
    assert [words(cell) for cell in first.findall(other)] == ["Fmd", "Frst", "Imd", "Irst"]
    assert index.index("This book") < index.index("Other notes")


def test_the_list_of_claims_is_published_as_json(build: Build):
    python = ".".join(map(str, sys.version_info[:3]))
    one_input = {"kind": "input", "number": None, "held": None}
    claims = {item["id"]: item for item in build.claims}
    assert [item["number"] for item in build.claims] == list(range(1, 11))
    assert claims["Imd"] == {
        "id": "Imd",
        "number": 2,
        "note": "other",
        "verdict": "holds-if",
        "text": "If so.",
        "page": "one.html#claim-imd",
        "error": 0.0,
        "tolerance": None,
        "versions": {"python": python, "numpy": metadata.version("numpy")},
        "proven": True,
        "stated": None,
        "conditions": [{"name": "with luck", "text": "there is some."}],
        "strength": one_input,
        "measured": ["one input; no difference", "without luck: off by 320"],
        "evidence": [
            {
                **{"part": "condition", "label": "without luck"},
                **{"kind": "different", "error": 316.2, "tolerance": 0.5, "strength": one_input},
            },
            {
                **{"part": "statement", "label": "holds"},
                **{"kind": "equal", "error": 0.0, "tolerance": None, "strength": one_input},
            },
        ],
    }
    assert claims["Fmd"]["stated"] == "It does, said they."
    frst = [claims["Frst"][name] for name in ("page", "error", "tolerance")]
    assert frst == ["deep/two.html#claim-frst", 0.25, 0.1]
    assert claims["Srst"]["text"] == "The sum $1 + 1$ is two, see Claim Frst."
    assert claims["Lmd"]["strength"]["kind"] == "derived"
    asserted = claims["Prst"]
    assert (asserted["error"], asserted["measured"]) == (None, ["as expected in one cell"])
    assert [each["kind"] for each in asserted["evidence"]] == ["checked"]
