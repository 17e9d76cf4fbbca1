"""A whole book that builds without a warning: what it shows and what it publishes."""

import re
import sys
from importlib import metadata

import pytest

from tests.verified_book.books import Block, Book, Build, Part, Parts, cell, claim, expect, words

pytestmark = pytest.mark.xdist_group("green book")

STRICT = ("-W", "-n", "--keep-going")
GLUE = "from myst_nb import glue\nglue('width', 2.54321, display=False)"

BOTH = """\
import time
for number, word in enumerate(("first ", "second\\n", "third\\n", "fourth\\n", "last\\n")):
    print(word, end="", file=sys.stderr if number % 2 else sys.stdout)
    time.sleep({pause})"""


def evidence(*arguments: object) -> str:
    return f"from evidence import Evidence\nEvidence{arguments}"


def solution(label: str, parts: Parts, suffix: str) -> Parts:
    """A solution with cells: gated in MyST, whose cells run at the top level only."""
    if suffix == ".rst":
        return [Block("solution", parts, label)]
    return [Block("solution-start", "", label), *parts, Block("solution-end")]


def linked(kind: str) -> Parts:
    """A statement with links of every kind, for the index on another page."""
    other = {"md": "deep/two", "rst": "../one"}[kind]
    equation = Block("math", "a = b", options={"label": f"equation-{kind}"})
    number = f"{{eq}}`equation-{kind}`"
    footnote = {"md": "noted[^n].\n\n[^n]: A footnote.", "rst": "noted [1]_.\n\n.. [1] A footnote."}
    return [f"By {{doc}}`{other}`, {number}, <https://example.org>, {footnote[kind]}", equation]


def chapter(kind: str) -> list[Part]:
    """One of everything that a chapter may have; `kind` keeps ids and labels apart."""
    proof = cell("assert 2 > one")
    exercise = Block("exercise", "How much is six times seven?", options={"label": f"six-{kind}"})
    return [
        f"# Chapter {kind} with {{claim}}`S{kind}` in its title",
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
        claim(f"L{kind}", linked(kind)),
        Block("derivation", "By {math}`1 + 1 = 2`."),
        cell("assert one, 'linked'"),
        "## Cells of every kind",
        cell(GLUE),
        "It is {glue:text}`width:.2f` wide.",
        cell("'removed'", tags="remove-cell"),
        cell("'no output'", tags="remove-output"),
        cell("print('no code')", tags="remove-input"),
        expect("no code"),
        cell("raise ValueError('for the reader')", tags="raises-exception, hide-output"),
        expect("ValueError: for the reader"),
        cell("raise ExceptionGroup('for all', [ValueError('a')])", tags="raises-exception"),
        expect("ExceptionGroup: for all (1 sub-exception)"),
        cell("import sys\nprint('a log', file=sys.stderr)", tags="allow-stderr"),
        cell(BOTH.format(pause=0.3), tags="allow-stderr"),
        Block("expect-output", "first third\nlast\nsecond\nfourth", "stderr exact"),
        cell(BOTH.format(pause=0), tags="allow-stderr"),
        Block("expect-output", "first third\nlast\nsecond\nfourth", "stderr exact"),
        cell("never", tags="skip-execution"),
        cell("from IPython.display import HTML\nHTML('<b>shown</b>')"),
        cell("print('\\x1b[31mred\\x1b[0m')\n[0.123456]"),
        expect("red\n[0.123]"),
        exercise,
        *solution(f"six-{kind}", ["Multiply:", cell("6 * 7"), expect("42")], kind),
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


def row_of(build: Build, name: str) -> str:
    """A claim's row in the index."""
    index = build.article("index.html")
    (found,) = [row for row in re.findall(r"<tr.*?</tr>", index, re.DOTALL) if f">{name}<" in row]
    return found


def test_it_is_green_and_says_what_it_checked(build: Build):
    assert build.status == 0, build.log
    summary = "32 outputs as expected, 4 not checked, 10 claims settled"
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


def test_a_claim_shows_its_id_note_verdict_and_evidence(text: str, kind: str):
    name = f"S{kind}"
    box = claim_box(text, name)
    assert f'<a class="claim-id reference internal" href="#claim-{name.lower()}">' in box
    assert words(box).startswith(
        f'settled-holds docutils container"> holds {name} this book The sum'
    )
    assert "one input; largest error 1e-09 , 2e-09 allowed proof · 3 cells" in words(box)


def test_each_verdict_has_its_words(text: str, kind: str):
    box = words(claim_box(text, f"I{kind}"))
    assert f"holds if I{kind} other notes" in box
    assert "with luck: there is some . without luck: off by 320 one input; no difference" in box
    box = words(claim_box(text, f"F{kind}"))
    assert f"fails F{kind} other notes" in box
    assert "✗ It does, said they. as stated: off by 0.25 In fact: It does" in box
    assert "as expected in one cell" in words(claim_box(text, f"P{kind}"))


def test_the_frame_of_a_claim_ends_after_its_last_cell(text: str):
    frame = text[text.index('<div class="settled settled-holds docutils') :]
    inside = frame[: frame.index("<p>Words after it.</p>")]
    assert "Words in between." in inside
    assert inside.count("<div") == inside.count("</div>")
    rest = text[text.index("Cells of every kind") :]
    assert "settled" not in rest


OWN = r"(?:claims?|settled|evidence|number)(?:-[\w-]+)?"


def own_classes(html: str) -> set[str]:
    """The classes of this extension on a page."""
    names = " ".join(re.findall(r'class="([^"]*)"', html)).split()
    return {name for name in names if re.fullmatch(OWN, name)}


def test_what_has_a_look_is_there(build: Build, text: str):
    sheet = (build.site / "_static/verified_book.css").read_text(encoding="utf-8")
    styled = set(re.findall(rf"\.({OWN})(?![\w-])", sheet))
    index = own_classes(build.article("index.html"))
    assert index >= {
        *("claims-counts", "claims-index", "claims-listing", "claims-heading"),
        *("claim-verdict", "claim-stated", "claim-evidence", "number"),
        *("claim-holds", "claim-holds-if", "claim-fails"),
    }
    red, by_script = {"claim-broken", "settled-broken"}, {"claim-switch"}
    chips = {"claim-chip", "claim-number"}  # tests/verified_book/claims/test_chips.py
    lacking = styled - own_classes(text) - index
    assert lacking == red | by_script | chips


def test_a_derivation_stands_in_the_proof_and_strengthens_the_claim(
    build: Build, text: str, kind: str
):
    box = claim_box(text, f"L{kind}")
    assert '<div class="claim-derivation docutils container">' in box
    assert "derived; as expected in one cell proof · derivation · 1 cell By" in words(box)
    claims = {item["id"]: item["strength"]["kind"] for item in build.claims}
    assert claims[f"L{kind}"] == "derived"
    assert claims[f"P{kind}"] == "input"


def test_references_link_to_claims_by_id(build: Build, text: str, kind: str):
    link = f'href="#claim-f{kind}" title="It does not."><span>Claim F{kind}</span></a>'
    assert link in claim_box(text, f"S{kind}")
    assert 'href="one.html#claim-imd" title="If so."><span>Claim Imd</span></a>' in build.article(
        "index.html"
    )


def test_a_reference_in_a_title_is_text_where_titles_are_repeated(build: Build, kind: str):
    title = f"Chapter {kind} with Claim S{kind} in its title"
    assert title in words(build.sidebar("index.html"))
    shown = words(build.article(PAGES[kind]))
    assert title in shown


def test_values_are_pasted_into_prose(text: str):
    assert "It is 2.54 wide." in words(text)


def test_tags_show_and_hide_cells(text: str):
    section = text[text.index("Cells of every kind") : text.index('class="exercise')]
    assert "removed" not in section
    assert section.count("no output") == 1  # the code
    assert section.count("no code") == 1  # the output
    assert "ValueError: for the reader" in re.sub(r"<[^>]+>", "", section)
    assert "Show code cell output" in section
    assert 'class="output stderr' in section
    assert "never" in section
    assert "<b>shown</b>" in section
    assert "[0.123456]" in section


def test_an_exercise_has_its_solution_with_the_output(text: str, kind: str):
    exercise = text[text.index('class="exercise') :]
    assert re.search(r"Exercise \d.*How much is six times seven\?", words(exercise))
    solved = text[text.index('class="solution') :]
    inside = solved[: solved.index("The end")]
    assert re.search(r"Solution to Exercise \d.*Multiply: 6 \* 7 42", words(inside))


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


def test_the_index_shows_statements_with_links_that_lead_from_there(build: Build):
    row = row_of(build, "Srst")
    assert r'<span class="math notranslate nohighlight">\(1 + 1\)</span>' in row
    assert '<a class="reference internal" href="deep/two.html#claim-frst"' in row
    assert "one input; largest error 1e-09 , 2e-09 allowed" in words(row)
    assert words(row).endswith("Chapter rst with Claim Srst in its title")


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
    asserted = claims["Prst"]
    assert (asserted["error"], asserted["measured"]) == (None, ["as expected in one cell"])
    assert [each["kind"] for each in asserted["evidence"]] == ["checked"]


@pytest.mark.parametrize(("kind", "other"), [("md", "rst"), ("rst", "md")])
def test_links_in_a_statement_lead_from_the_index_too(build: Build, kind: str, other: str):
    row = row_of(build, f"L{kind}")
    assert f'href="{PAGES[other]}"' in row
    assert f'href="{PAGES[kind]}#equation-equation-{kind}"' in row
    assert 'href="https://example.org"' in row
    assert r"\[a = b\]" in row
    assert not re.search('footnote| id=|href="#', row)
    text = {item["id"]: item["text"] for item in build.claims}[f"L{kind}"]
    assert text.endswith("$a = b$")
