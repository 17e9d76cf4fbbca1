"""A whole book in one PDF: its order, its outline, its links, and what it says where it cannot."""

import shutil

import pytest
from pypdf import PdfReader

from book_site import __main__ as cli
from book_site.printing import pdf
from tests.verified_book.books import FRONT_MATTER, sphinx_build

pytestmark = pytest.mark.xdist_group("light")

CONF = """\
extensions = ["myst_nb", "sphinx_exercise", "book_site.hidden_sources", "book_site.printing"]
html_theme = "sphinx_book_theme"
html_title = "A tiny book"
nb_execution_mode = "off"
"""
FOLD = """\
.. raw:: html

   <details class="claim-proof"><summary>proof</summary><p>It was proven.</p></details>
   <details class="hide"><summary>code</summary><p>It was drawn.</p></details>
   <a href="../second.html">A file</a>
"""
CELL = """\
# Second

```{code-cell} ipython3
:tags: [hide-input]
1 + 1
```

## What

Text.
"""
PAGES = {
    "index.rst": (
        "Start\n=====\n\nOf `that <https://a.org/>`__, and of :ref:`it <there>`.\n\n"
        ".. toctree::\n\n   sub/first\n   second\n"
    ),
    "sub/first.rst": (
        f"First\n=====\n\n.. _there:\n\nSection\n-------\n\nSee :doc:`/second`.\n\n{FOLD}"
    ),
    "second.md": FRONT_MATTER + CELL,
}


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    """What `singlehtml` writes of a book with nodes that extensions name for `html` alone."""
    folder = tmp_path_factory.mktemp("pdf")
    return sphinx_build(folder, CONF, PAGES, "-b", "singlehtml").site / "index.html"


@pytest.fixture(scope="module")
def printed(single, tmp_path_factory):
    if not any(map(shutil.which, pdf.BROWSERS)):
        pytest.skip("the PDF is printed by Chromium")
    file = tmp_path_factory.mktemp("printed") / "book.pdf"
    assert cli.main(["pdf", str(single), str(file)]) == 0
    return PdfReader(file)


def text_of(page) -> str:
    return " ".join(page.extract_text().split())


def titles(items, reader, depth=0):
    """Each entry of an outline with its depth and its page."""
    for item in items:
        if isinstance(item, list):
            yield from titles(item, reader, depth + 1)
        else:
            yield depth, item.title, reader.get_destination_page_number(item) + 1


def test_each_chapter_stands_on_a_page_of_its_own_and_feet_have_numbers(printed):
    texts = [text_of(page) for page in printed.pages]
    starts = ["Start", "First", "Second"]
    assert [text[: len(start)] for text, start in zip(texts, starts, strict=True)] == starts
    assert [text.split()[-1] for text in texts] == ["1", "2", "3"]


def test_the_outline_leads_to_chapters_and_sections(printed):
    assert list(titles(printed.outline, printed)) == [
        (0, "Start", 1),
        *[(1, "First", 2), (2, "Section", 2)],
        *[(1, "Second", 3), (2, "What", 3)],
    ]
    assert printed.metadata.title == "A tiny book"


def test_links_lead_to_their_places_and_to_no_file(printed):
    links = [note.get_object() for page in printed.pages for note in page.get("/Annots", [])]
    assert [link["/A"]["/URI"] for link in links if "/A" in link] == ["https://a.org/"]
    places = [link["/Dest"] for link in links if "/Dest" in link]
    found = [printed.named_destinations[place] for place in places]
    assert [printed.get_destination_page_number(place) + 1 for place in found] == [2, 3]


def test_proofs_are_open_or_left_out_and_sources_closed(printed, single, tmp_path):
    said = text_of(printed.pages[1])
    assert "It was proven." in said
    assert "It was drawn." not in said
    cli.main(["pdf", str(single), str(tmp_path / "brief.pdf"), "--brief"])
    assert "It was proven." not in text_of(PdfReader(tmp_path / "brief.pdf").pages[1])


def test_the_site_that_it_lies_in_offers_it(tmp_path):
    start = tmp_path / "index.html"
    start.write_text("<h1>A</h1>")
    tmp_path.joinpath("a&b.pdf").write_bytes(b"x" * 200_000)
    for _ in range(2):  # a second time changes nothing
        pdf.offer(tmp_path / "a&b.pdf")
        link = '<p class="book-pdf"><a href="a&amp;b.pdf">The book as one PDF</a> (0.2 MB)</p>'
        assert start.read_text() == f"<h1>A</h1>\n{link}"
