"""On paper the descriptions of an API stand together, where the site only lists them."""

import re

import pytest

from book_site.paper import assembly
from tests.verified_book.books import sphinx_build, words

pytestmark = pytest.mark.xdist_group("light")

CONF = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parent / "code"))
extensions = ["sphinx.ext.autodoc", "book_site.api", "book_site.paper"]
html_theme = "sphinx_book_theme"
exclude_patterns = ["code"]
book_site_api = ["sub/api"]
"""
PAGES = {
    "code/parts.py": (
        'class Norm:\n    """Norms."""\n\n'
        'def half(x):\n    """Not :class:`Norm`."""\n    return x / 2\n'
    ),
    "sub/api.rst": (
        "Names\n=====\n\n.. currentmodule:: parts\n\n.. autoclass:: Norm\n.. autofunction:: half\n"
    ),
    "index.rst": (
        "Index\n=====\n\nOf :func:`parts.half`.\n\n.. code-block:: python\n\n"
        "   from parts import half\n   half(2)\n\n.. toctree::\n\n   sub/api\n"
    ),
}


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return assembly.assemble(sphinx_build(tmp_path_factory.mktemp("book"), CONF, PAGES).site)


def test_descriptions_take_the_place_of_the_list(book):
    names = book.page[book.page.index("1 Names</h1>") :]
    assert 'id="sub-api--parts.Norm"' in names
    assert "half ( x ) Not Norm ." in words(names)
    assert "return" not in names
    assert "api-summary" not in names
    assert names.count("Norms.") == 1


def test_links_lead_to_them(book):
    links = re.findall(r'href="(#[^"]*parts[^"]*)"', book.page)
    assert links == ["#sub-api--parts.half", "#sub-api--parts.Norm"]


def test_code_has_neither_links_nor_numbers_of_pages(book):
    [code] = re.findall(r"<pre>.*?</pre>", book.page, re.DOTALL)
    assert "<a" not in code
    assert "page-number" not in code
