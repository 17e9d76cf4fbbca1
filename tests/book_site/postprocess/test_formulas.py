"""Formulas that are rendered when the book is built, and what becomes of those that cannot be."""

import re

import pytest

from tests.verified_book.books import sphinx_build

pytestmark = pytest.mark.xdist_group("light")

CONF = 'extensions = ["book_site.postprocess"]\nhtml_theme = "sphinx_book_theme"\n'
PAGES = {
    "index.rst": "Index\n=====\n\n.. toctree::\n\n   maths\n",
    "maths.rst": (
        "Title :math:`x < y`\n====================\n\n.. math:: y = \\cancel{x}\n   :label: one\n\n"
        "Of :eq:`one`.\n\n.. math::\n\n   a &= b \\\\\n   c &= d\n"
    ),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return sphinx_build(tmp_path_factory.mktemp("formulas"), CONF, PAGES).site


def test_formulas_are_markup_that_is_spoken_and_holds_its_tex(site):
    page = site.joinpath("maths.html").read_text()
    # In the title, the table of contents and twice in the text; TeX in `title` attributes stays.
    tex = re.findall(r'<annotation encoding="application/x-tex">([^<]*)<', page)
    assert {"x &lt; y", r"y = \cancel{x}"} <= set(tex)
    assert len(re.findall(r'<span class="katex-mathml"><math[ >]', page)) == len(tex)
    assert not re.search(r'class="math[^"]*"[^>]*>\\\(', page)
    assert '<span class="eqno">(1)' in page


def test_a_formula_that_cannot_be_rendered_is_named(tmp_path):
    pages = {"index.rst": "Index\n=====\n\n:math:`\\frac{1}`\n"}
    build = sphinx_build(tmp_path, CONF, pages, status=1)
    assert "index.html: KaTeX cannot render '\\\\frac{1}'" in build.log
