"""A printed page takes its style and its few lines of script along, in every page of the site."""

import re

import pytest

from book_site import printing
from tests.verified_book.books import sphinx_build

pytestmark = pytest.mark.xdist_group("light")

PAGES = {"index.rst": "Index\n=====\n\n.. toctree::\n\n   sub/page\n", "sub/page.rst": "A\n=\n"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    conf = 'extensions = ["book_site.printing"]\nhtml_theme = "sphinx_book_theme"\n'
    return sphinx_build(tmp_path_factory.mktemp("print"), conf, PAGES).site


@pytest.mark.parametrize("name", ["index.html", "sub/page.html"])
def test_each_page_has_the_style_and_the_script(site, name):
    page = site.joinpath(name).read_text()
    assert re.search(r'<link[^>]*href="[./]*_static/book_site_print\.css', page)
    assert page.count('addEventListener("beforeprint"') == 1
    assert site.joinpath("_static", printing.STYLE.name).is_file()
