"""Descriptions, previews, a site map, a page for what is missing; one id for one element."""

import re
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from sphinx.errors import ConfigError

from book_site import found
from tests.verified_book.books import sphinx_build

pytestmark = pytest.mark.xdist_group("light")

CONF = (
    'extensions = ["book_site.found", "book_site.postprocess", "book_site.search"]\n'
    'html_theme = "sphinx_book_theme"\nproject = "A book"\n'
)
PAGES = {
    "index.rst": (
        "Index\n=====\n\nShort.\n\n"
        'The *first* paragraph of "some" length, which says what it is.\n\n'
        ".. toctree::\n\n   sub/page\n"
    ),
    "sub/page.rst": (
        "A page\n======\n\nWhat\n----\n\nFormulas: :math:`\\epsilon`.\n\n"
        '.. raw:: html\n\n   <i id="twice">1</i><i id="twice">2</i>\n'
    ),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    conf = CONF + 'html_baseurl = "https://book.example/it/"\n'
    return sphinx_build(tmp_path_factory.mktemp("found"), conf, PAGES).site


def meta(page):
    return dict(re.findall(r'<meta (?:name|property)="([^"]*)" content="([^"]*)" ?/>', page))


def test_a_page_is_described_by_its_first_paragraph(site):
    about = meta(site.joinpath("index.html").read_text())
    says = "The first paragraph of “some” length, which says what it is."
    assert about["description"] == about["og:description"] == says
    assert about["og:url"] == "https://book.example/it/index.html"
    assert (about["og:title"], about["og:type"]) == ("Index", "website")


def test_a_page_without_one_says_where_it_belongs(site):
    about = meta(site.joinpath("sub/page.html").read_text())
    assert about["description"] == "A page: a page of A book."


def test_the_usual_index_knows_no_word_of_a_page(site):
    data = site.joinpath("_static/book_site_search_data.js").read_text()
    assert "which says what it is" in data
    assert '"terms": {}' in site.joinpath("searchindex.js").read_text()


def test_the_site_map_has_every_page(site):
    tree = ElementTree.parse(site / "sitemap.xml")
    found_there = [node.text for node in tree.iter() if node.tag.endswith("loc")]
    assert found_there == [
        "https://book.example/it/index.html",
        "https://book.example/it/sub/page.html",
    ]


def test_a_page_says_where_it_is(site):
    page = site.joinpath("sub/page.html").read_text()
    assert '<link rel="canonical" href="https://book.example/it/sub/page.html"' in page


def test_the_environment_may_say_where_the_site_is(tmp_path, monkeypatch):
    monkeypatch.setenv(found.URL, "https://else.example/there")
    site = sphinx_build(tmp_path, CONF + 'html_baseurl = "https://book.example/it/"\n', PAGES).site
    page = site.joinpath("sub/page.html").read_text()
    assert 'rel="canonical" href="https://else.example/there/sub/page.html"' in page
    assert meta(page)["og:url"] == "https://else.example/there/sub/page.html"
    assert "<loc>https://else.example/there/index.html</loc>" in (site / "sitemap.xml").read_text()


@pytest.mark.parametrize("address", ["book.example", "ftp://a.org/", "https://a.org/?page=1"])
def test_what_is_no_address_is_named(address):
    with pytest.raises(ConfigError, match=rf"{re.escape(repr(address))} .* VERIFIED_BOOK_URL or"):
        found.find_address(None, SimpleNamespace(html_baseurl=address))


def test_what_is_missing_has_a_page_that_finds_its_files(site):
    page = site.joinpath("404.html").read_text()
    assert page.count('<base href="https://book.example/it/" />') == 1
    assert "There is no such page" in page


def test_without_an_address_there_is_no_site_map(tmp_path):
    site = sphinx_build(tmp_path, CONF, PAGES).site
    assert not site.joinpath("sitemap.xml").exists()
    assert "<base " not in site.joinpath("404.html").read_text()
    assert "canonical" not in site.joinpath("index.html").read_text()
    assert "og:url" not in meta(site.joinpath("index.html").read_text())


def test_an_id_is_of_one_element(site):
    page = site.joinpath("sub/page.html").read_text()
    assert '<i id="twice">1</i><i>2</i>' in page


def test_the_search_knows_the_sections(site):
    data = site.joinpath("_static/book_site_search_data.js").read_text()
    assert '[1,"section","what","What","Formulas: \\\\epsilon . 12"]' in data
    assert '["sub/page.html","A page"]' in data


def test_whole_words_are_kept():
    assert found.shortened("one, two three", 8) == "one …"
