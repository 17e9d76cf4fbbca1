"""A whole book in one PDF: its order, its numbers, its links, and what it says where it cannot."""

import shutil
from pathlib import Path

import pytest
from pypdf import PdfReader

from book_site import __main__ as cli
from book_site.paper import assembly, pdf
from tests.verified_book.books import sphinx_build
from tests.verified_book.hostile import DAMAGES

pytestmark = pytest.mark.xdist_group("light")

CONF = """\
extensions = ["book_site.paper"]
html_theme = "sphinx_book_theme"
html_title = "A tiny book"
"""
FOLD = """\
.. raw:: html

   <details class="claim-proof"><summary>proof</summary><p>It was proven.</p></details>
   <svg><path id="dot"/><use xlink:href="#dot"/><a xlink:href="../second.html#what"></a></svg>
   <details class="hide"><summary>code</summary><p>It was drawn.</p></details>
"""
PAGES = {
    "index.rst": (
        "Start\n=====\n\nOf `that <https://a.org/>`__, and of :ref:`it <there>`.\n\n"
        ".. toctree::\n   :caption: Part one\n\n   sub/first\n\n"
        ".. toctree::\n   :caption: Part two\n\n   second\n"
    ),
    "sub/first.rst": f"First\n=====\n\nSection\n-------\n\nSee :doc:`/second`.\n\n{FOLD}",
    "second.rst": (
        "Second\n======\n\nWhat\n----\n\nText.\n\n.. _there:\n\nSection\n-------\n\nEnd.\n"
    ),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return sphinx_build(tmp_path_factory.mktemp("pdf"), CONF, PAGES).site


@pytest.fixture
def site(built, tmp_path):
    return Path(shutil.copytree(built, tmp_path / "site"))


@pytest.fixture(scope="module")
def printed(built, tmp_path_factory):
    if not any(map(shutil.which, pdf.BROWSERS)):
        pytest.skip("the PDF is printed by Chromium")
    file = tmp_path_factory.mktemp("printed") / "book.pdf"
    assert pdf.write(built, file) == len(PdfReader(file).pages)
    return PdfReader(file)


def text_of(page) -> str:
    return " ".join(page.extract_text().split())


def bookmarks(items, depth=0):
    """Each bookmark with its depth."""
    for item in items:
        if isinstance(item, list):
            yield from bookmarks(item, depth + 1)
        else:
            yield depth, item


def test_chapters_stand_in_the_order_of_the_book_each_on_a_page_of_its_own(printed):
    texts = [text_of(page) for page in printed.pages]
    starts = ["A tiny book", "Contents", "Start", "1 First", "2 Second"]
    assert [text[: len(start)] for text, start in zip(texts, starts, strict=True)] == starts


def test_the_contents_and_the_feet_have_numbers(printed):
    contents = text_of(printed.pages[1])
    for line in ("Start 3", "1 First 4", "1.1 Section 4", "2 Second 5", "2.2 Section 5"):
        assert line in contents
    assert [text_of(page).split()[-1] for page in printed.pages] == ["1", "2", "3", "4", "5"]


def test_a_link_leads_to_its_place_and_says_the_page(printed):
    assert "and of it (p. 5)." in text_of(printed.pages[2])
    assert "See Second (p. 5)." in text_of(printed.pages[3])
    links = [note.get_object() for note in printed.pages[2]["/Annots"]]
    outside = [link["/A"]["/URI"] for link in links if "/A" in link and "/URI" in link["/A"]]
    assert outside == ["https://a.org/"]
    (inside,) = [link["/Dest"] for link in links if "/Dest" in link]
    place = printed.named_destinations[inside]
    assert printed.get_destination_page_number(place) == 4


def test_bookmarks_lead_to_parts_chapters_and_sections(printed):
    assert [
        (depth, item.title, printed.get_destination_page_number(item) + 1)
        for depth, item in bookmarks(printed.outline)
    ] == [
        (0, "Start", 3),
        *[(0, "Part one", 4), (1, "1 First", 4), (2, "1.1 Section", 4)],
        *[(0, "Part two", 5), (1, "2 Second", 5), (2, "2.1 What", 5), (2, "2.2 Section", 5)],
    ]
    assert printed.metadata.title == "A tiny book"


def test_proofs_are_open_or_left_out_and_sources_closed(printed, built):
    assert "It was proven." in text_of(printed.pages[3])
    assert "It was drawn." not in text_of(printed.pages[3])
    assert "It was proven." not in assembly.assemble(built, folds=False).page


def test_a_drawing_keeps_its_ids_and_its_links_lead_on(built):
    page = assembly.BeautifulSoup(assembly.assemble(built).page, "html.parser")
    drawing = page.select_one("svg")
    assert drawing.select_one("use")["xlink:href"] == "#dot"
    assert drawing.select_one("[id]")["id"] == "dot"
    assert drawing.select_one("a")["xlink:href"] == "#second--what"
    assert drawing.get_text() == ""  # no number of a page fits into it


def test_ids_of_pages_do_not_collide(built):
    page = assembly.BeautifulSoup(assembly.assemble(built).page, "html.parser")
    ids = [tag["id"] for tag in page.select("[id]")]
    assert {"sub-first--section", "second--section"} <= set(ids)
    assert len(ids) == len(set(ids))


def test_pages_of_like_names_keep_their_ids(tmp_path):
    names = ["index", "a/b", "a-b", "a/b/c", "a-b/c", "a/b-c"]
    links = "".join(f'<a class="reference internal" href="{name}.html">.</a>' for name in names)
    for name in names:
        page = tmp_path / f"{name}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        text = f'<h1>{name}</h1><section id="x"><h2>{name}</h2></section>'
        page.write_text(f'<nav class="bd-links">{links}</nav><article>{text}</article>')
    book = assembly.assemble(tmp_path)
    places = [(chapter.anchor, chapter.sections[0].anchor) for chapter in book.chapters]
    assert len({*places}) == len(places) == len(names)
    page = assembly.BeautifulSoup(book.page, "html.parser")
    for (start, section), name in zip(places, names, strict=True):
        assert [tag.h1.get_text().split()[-1] for tag in page.find_all(id=start)] == [name]
        assert [tag.h2.get_text().split()[-1] for tag in page.find_all(id=section)] == [name]


def test_the_first_page_offers_it_where_it_was_made(site, capsys, monkeypatch):
    monkeypatch.setattr(pdf, "write", lambda site, target, folds: target.write_bytes(b"x" * 5) + 7)
    before = site.joinpath("index.html").read_text()
    for _ in range(2):  # a second time changes nothing
        assert cli.main(["pdf", str(site)]) == 0
        page = site.joinpath("index.html").read_text()
        assert page.count('<a href="book.pdf">The book as one PDF</a> (12 pages, 0.0 MB)') == 1
        assert "12 pages" in capsys.readouterr().out
    assert cli.main(["pdf", str(site), "--out", str(site.parent / "a.pdf")]) == 0
    assert site.joinpath("index.html").read_text() == before


def test_without_a_built_book_it_says_so(tmp_path, capsys):
    assert cli.main(["pdf", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said == (
        f"book_site: {tmp_path / 'index.html'}: there is no such file; build the book first\n"
    )


def test_without_chapters_it_says_so(tmp_path, capsys):
    tmp_path.joinpath("index.html").write_text("<article></article>")
    assert cli.main(["pdf", str(tmp_path)]) == 2
    assert "lists no chapters" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["index.html", "second.html"])
@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_page_is_named(site, monkeypatch, capsys, kind, name):
    DAMAGES[kind](site / name)
    monkeypatch.setattr(pdf, "_page", lambda site, book: pytest.skip("what is left can be printed"))
    assert cli.main(["pdf", str(site)]) == 2
    assert f"{site / name}: " in capsys.readouterr().err


@pytest.mark.parametrize("target", ["", "index.html/a.pdf"])
def test_a_place_that_cannot_be_written_is_named(site, monkeypatch, capsys, target):
    monkeypatch.setattr(pdf, "_page", lambda site, book: _nothing())
    monkeypatch.setattr(pdf, "_print", lambda page: b"")
    monkeypatch.setattr(pdf, "PdfReader", lambda file: None)
    monkeypatch.setattr(pdf, "_pages_of", lambda reader: {})
    monkeypatch.setattr(
        pdf, "_finish", lambda printed, book, pages, file: file.write_bytes(b"") or 1
    )
    assert cli.main(["pdf", str(site), "--out", str(site / target)]) == 2
    assert capsys.readouterr().err.startswith(f"book_site: {site}")


def test_without_chromium_it_says_so(built, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert cli.main(["pdf", str(built), "--out", str(tmp_path / "a.pdf")]) == 2
    said = capsys.readouterr().err
    assert "printed by Chromium; install one of chromium, chromium-browser, google-chrome" in said


def test_numbers_that_do_not_settle_are_an_error(built, tmp_path, monkeypatch, capsys):
    sheets = iter(range(100))
    monkeypatch.setattr(pdf, "_page", lambda site, book: _nothing())
    monkeypatch.setattr(pdf, "_print", lambda page: b"")
    monkeypatch.setattr(pdf, "PdfReader", lambda file: None)
    monkeypatch.setattr(pdf, "_pages_of", lambda reader: {"a": next(sheets)})
    assert cli.main(["pdf", str(built), "--out", str(tmp_path / "a.pdf")]) == 2
    assert "still change after 4 printings" in capsys.readouterr().err


class _nothing:  # noqa: N801
    """A browser that shows nothing."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def evaluate(self, *_):
        return None
