"""Where the site will be: in pages, previews, the site map, and the page for what is missing."""

import re
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from sphinx.errors import ConfigError

from book_site import address
from tests.verified_book.books import sphinx_build

pytestmark = pytest.mark.xdist_group("light")

TEMPLATE = Path(__file__).parents[2] / "book" / "_templates" / "404.html"
CONF = """
extensions = ["book_site.address", "sphinxext.opengraph", "sphinx_sitemap"]
html_theme = "sphinx_book_theme"
project = "A book"
html_baseurl = "https://book.example/it/"
ogp_social_cards = {"enable": False}
sitemap_url_scheme = "{link}"
sitemap_excludes = ["404.html", "search.html", "genindex.html"]
suppress_warnings = ["sitemap.configuration"]
templates_path = ["_templates"]
html_additional_pages = {"404": "404.html"}
"""
PAGES = {
    "index.rst": "Index\n=====\n\nThe *first* paragraph.\n\n.. toctree::\n\n   sub/page\n",
    "_templates/404.html": TEMPLATE.read_text(encoding="utf-8"),
    "sub/page.rst": "A page\n======\n\nWhat it says.\n",
}


def meta(page):
    return dict(re.findall(r'<meta (?:name|property)="([^"]*)" content="([^"]*)" ?/>', page))


def test_the_environment_says_where_the_site_is(tmp_path, monkeypatch):
    monkeypatch.setenv(address.URL, "https://else.example/there")
    site = sphinx_build(tmp_path, CONF, PAGES, "-W").site
    page = site.joinpath("sub/page.html").read_text()
    assert 'rel="canonical" href="https://else.example/there/sub/page.html"' in page
    assert meta(page)["og:url"] == "https://else.example/there/sub/page.html"
    tree = ElementTree.parse(site / "sitemap.xml")
    assert {node.text for node in tree.iter() if node.tag.endswith("loc")} == {
        "https://else.example/there/index.html",
        "https://else.example/there/sub/page.html",
    }
    missing = site.joinpath("404.html").read_text()
    head, base, rest = missing.partition('<base href="https://else.example/there/404.html" />')
    assert base
    assert not re.search('(href|src)="', head)
    assert "There is no such page" in rest
    assert 'href="search.html"' in rest


def test_without_an_address_the_site_works_anywhere(tmp_path):
    site = sphinx_build(tmp_path, CONF.replace("https://book.example/it/", ""), PAGES, "-W").site
    assert not site.joinpath("sitemap.xml").exists()
    assert "<base " not in site.joinpath("404.html").read_text()
    page = site.joinpath("index.html").read_text()
    assert "canonical" not in page
    assert meta(page)["description"].startswith("The first paragraph.")


@pytest.mark.parametrize("wrong", ["book.example", "https://a.org/?page=1"])
def test_what_is_no_address_is_named(wrong):
    with pytest.raises(ConfigError, match=rf"{re.escape(repr(wrong))} .* VERIFIED_BOOK_URL or"):
        address.take_address(None, SimpleNamespace(html_baseurl=wrong))
