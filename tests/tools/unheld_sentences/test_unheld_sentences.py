"""Which sentences of a lesson nothing holds, in Markdown and in reStructuredText."""

from pathlib import Path

import pytest

from tests.verified_book.books import FRONT_MATTER, Block, cell, page
from tools.unheld_sentences.__main__ import main
from tools.unheld_sentences.lessons import lessons, pages
from tools.unheld_sentences.prose import sentences, split

# MyST-Parser asks docutils so.
pytestmark = pytest.mark.filterwarnings("ignore:nodes.Node.traverse:PendingDeprecationWarning")

HELD = [
    "# All of 3 headings are left out",
    "No number, and nothing that is sure... in GPT-2, in float16, with L1.",
    "It is `all 3`, {math}`n = 3`, {doc}`3`, {eq}`only` and {glue:text}`value:.2f` wide.",
    "It has 3 of them. {chip}`A1` It {chip}`A2` never fails, e.g. here. {chip}`A1`\n{chip}`A2`",
    "Overall, many a finally anyhow.",
    cell("x = 3  # never\nassert x == 3"),
    Block("expect-output", "all 3"),
    Block("math", "x = 3"),
]
NOTE = Block(
    "note", ["In a note it is 4.", Block("exercise", "Show it for all.", "", {"label": "a"})]
)
FIGURE = Block("code-cell", "1 + 1", "ipython3", {"caption": "At 8 it is `9`. So."})
UNHELD = [
    "It is 3.\nAnd so\non, -5 of them, (6) too.",
    "* A point: it cannot be! {chip}`A1` Nor can all the others.",
    NOTE,
    FIGURE,
    "It is **never** so.",
]
EXPECTED = [
    (0, "It is 3. (number)"),
    (1, "And so on, -5 of them, (6) too. (number)"),
    (0, "Nor can all the others. (always)"),
    (0, "In a note it is 4. (number)"),
    (0, "Show it for all. (always)"),
    (0, "At 8 it is 9. (number)"),
    (0, "It is never so. (always)"),
]


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book with a lesson in each format, and pages that are none."""
    folder = tmp_path / "book"
    for name, parts in {
        "part/one.md": [*HELD, *UNHELD],
        "part/two.rst": [*HELD, *UNHELD],
        "proofs/one.md": ["# One", "It is 3."],
        "proofs/two.md": ["# Two", "It is 3."],
        "part/none.md": ["# None", "It is 3."],
        "_build/one.md": ["# Built", "It is 3."],
        "reference/one.md": ["# Manual", "It is 3."],
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(page(parts, Path(name).suffix), encoding="utf-8")
    return folder


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    status = main(arguments)
    return status, capsys.readouterr().out.splitlines()


def test_lessons_have_a_twin_among_the_proofs(book):
    assert [str(each.relative_to(book)) for each in lessons(book)] == [
        "part/one.md",
        "part/two.rst",
    ]
    assert [each.name for each in pages(book)] == ["none.md", "one.md", "two.rst"]


@pytest.mark.parametrize("name", ["one.md", "two.rst"])
def test_what_nothing_holds_is_named_with_its_line(book, capsys, name):
    file = book / "part" / name
    status, lines = said(capsys, "--book", str(book), str(file))
    assert status == 1
    found = [line.removeprefix(f"{file}:").partition(": ") for line in lines[:-1]]
    assert [text for _, _, text in found] == [text for _, text in EXPECTED]
    source = file.read_text().split("\n")
    for number, _, text in found:
        words = text.replace("(6) too. (number)", "").split()
        at = source[int(number) - 1]
        caption = source[int(number)] if text.startswith("At 8") else ""
        assert words[0] in at + caption, (number, text, at)


def test_without_lessons_nothing_is_asked(tmp_path, capsys):
    (tmp_path / "page.md").write_text("# A page\n\nIt is 3.\n")
    status, lines = said(capsys, "--book", str(tmp_path))
    assert (status, lines) == (0, ["0 sentences that nothing holds, in 0 pages"])


def test_all_lessons_are_asked_and_counted(book, capsys):
    status, lines = said(capsys, "--book", str(book))
    assert (status, lines[-1]) == (1, "14 sentences that nothing holds, in 2 pages")
    status, lines = said(capsys, "--book", str(book), "--count")
    assert (status, [line.split()[0] for line in lines]) == (0, ["1", "7", "7", "15"])


def test_a_sentence_may_be_held_otherwise_and_an_exception_may_be_stale(book, capsys):
    held = [text.rpartition(" (")[0] for _, text in EXPECTED]
    listed = "".join(f"'{text}': it is in the paper\n" for text in held)
    (book / "held_otherwise.yml").write_text(listed)
    assert said(capsys, "--book", str(book))[0] == 0
    (book / "held_otherwise.yml").write_text(f"{listed}'It was 3.': a reason\n")
    status, lines = said(capsys, "--book", str(book))
    stale = f"{book}/held_otherwise.yml: no lesson needs it any more: It was 3."
    assert (status, lines[0]) == (1, stale)
    assert said(capsys, "--book", str(book), str(book / "part/one.md"))[0] == 0


@pytest.mark.parametrize("text", ["- a", "a:", "{", "a: 3", "'': b"])
def test_damaged_exceptions_are_named(book, capsys, text):
    (book / "held_otherwise.yml").write_text(text)
    with pytest.raises(SystemExit):
        main(["--book", str(book)])
    assert "held_otherwise.yml: it is no" in capsys.readouterr().err


def test_a_page_that_is_not_there_is_named(book, capsys):
    with pytest.raises(SystemExit):
        main(["--book", str(book), "nowhere.md"])
    assert "there is no nowhere.md" in capsys.readouterr().err


def test_sentences_end_at_full_stops():
    text = 'One, e.g. 1.5 (i.e. a half). "Two!" Is it? (It is.)\nThe rest'
    assert [(each.line, each.text) for each in split(text, 7)] == [
        (7, "One, e.g. 1.5 (i.e. a half)."),
        (7, '"Two!"'),
        (7, "Is it?"),
        (7, "(It is.)"),
        (8, "The rest"),
    ]


def test_a_formula_between_dollars_is_no_prose(tmp_path):
    (tmp_path / "page.md").write_text("A $3$ is\n\n$$\n4\n$$\n\n| 5 |\n| - |\n| 6 |\n")
    [sentence] = sentences(tmp_path / "page.md")
    assert (sentence.text, sentence.words.split()) == ("A 3 is", ["A", "xxx", "is"])


def test_the_front_matter_is_no_prose(tmp_path):
    (tmp_path / "page.md").write_text(f"{FRONT_MATTER}# A page\n\nSo.\n")
    lines = FRONT_MATTER.count("\n")
    assert [(each.line, each.text) for each in sentences(tmp_path / "page.md")] == [
        (lines + 3, "So.")
    ]


def test_an_all_reduce_is_a_name(tmp_path, capsys):
    file = tmp_path / "page.md"
    file.write_text("# A page\n\nAn all-reduce sums gradients. All ranks have them.\n")
    status, lines = said(capsys, "--book", str(tmp_path), str(file))
    assert status == 1
    assert [line.partition(": ")[2] for line in lines[:-1]] == ["All ranks have them. (always)"]
