"""What the search looks into: pages, sections, names and terms, each with its text."""

import json

import pytest

from tests.verified_book.books import sphinx_build

pytestmark = pytest.mark.xdist_group("light")

CONF = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parent / "code"))
extensions = ["sphinx.ext.autodoc", "book_site.postprocess", "book_site.search"]
html_theme = "sphinx_book_theme"
exclude_patterns = ["code"]
"""
PAGES = {
    "code/layers.py": 'def half(x):\n    """A half of it."""\n',
    "index.rst": "Index\n=====\n\n.. toctree::\n   :hidden:\n\n   sub/page\n   genindex\n",
    "genindex.rst": "Index\n=====\n",
    "sub/page.rst": (
        "A page\n======\n\nWhat\n----\n\nFormulas: :math:`\\epsilon`.\n\n"
        '.. raw:: html\n\n   <i id="twice">1</i><i id="twice">2</i>\n\n'
        ".. glossary::\n\n   term\n     A word.\n\n.. autofunction:: layers.half\n"
    ),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return sphinx_build(tmp_path_factory.mktemp("search"), CONF, PAGES, "-W").site


def test_each_place_is_known_with_its_text(site):
    data = site.joinpath("_static/book_site_search_data.js").read_text()
    known = json.loads(data.removeprefix("window.verifiedBookSearch(").removesuffix(");\n"))
    assert known["pages"] == [
        ["index.html", "Index"],
        ["sub/page.html", "A page"],
        ["genindex.html", "Index"],
    ]
    assert known["entries"] == [
        [0, "page", "", "Index", ""],
        [1, "page", "", "A page", ""],
        [1, "section", "what", "What", "Formulas: \\epsilon . 12"],
        [1, "term", "term-term", "term", "A word."],
        [1, "name", "layers.half", "layers.half", "layers.half(x) A half of it."],
    ]


def test_the_usual_index_knows_no_word_of_a_page(site):
    assert '"terms": {}' in site.joinpath("searchindex.js").read_text()


def test_an_id_is_of_one_element(site):
    page = site.joinpath("sub/page.html").read_text()
    assert '<i id="twice">1</i><i>2</i>' in page
