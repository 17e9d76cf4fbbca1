"""What an author leaves out of a site is gone, with the tags that load it."""

import pytest

from book_site import left_out
from tests.verified_book.books import sphinx_build

pytestmark = pytest.mark.xdist_group("offline")

CONF = 'extensions = ["myst_nb", "book_site.left_out"]\nhtml_theme = "sphinx_book_theme"\n'
LEAVE_OUT = 'book_site_leaves_out = ["**/*.map", "scripts/fontawesome.js*"]\n'
PAGES = {"index.rst": "Index\n=====\n\nWords.\n"}


def test_what_the_author_leaves_out_is_gone_with_its_tags(tmp_path):
    site = sphinx_build(tmp_path, CONF + LEAVE_OUT, PAGES).site
    assert not any("scripts/fontawesome.js" in page.read_text() for page in site.glob("*.html"))
    assert not list(site.rglob("scripts/fontawesome.js*"))
    assert not list(site.rglob("*.map"))
    assert list(site.rglob("fontawesome/webfonts/*.woff2"))


@pytest.mark.parametrize(
    ("page", "left"),
    [
        ('<script src="_static/a/b.js"></script>\n<p>', "<p>"),
        ('<script async src="../_static/a/b.js?v=1"></script><p>', "<p>"),
        ('<script src="_static/a/bxjs"></script>', None),
        ('<script src="_static/c/a/b.js"></script>', None),
        ('<a href="_static/a/b.js">b</a>', None),
    ],
)
def test_tags_of_a_file(page, left):
    assert left_out.tags_of(["a/b.js"]).sub("", page) == (page if left is None else left)
