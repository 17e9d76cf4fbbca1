"""A page of an API is a table; each object has a page, to which references and code lead."""

import html
import re
import zlib
from types import SimpleNamespace

import pytest
from sphinx.util.inventory import InventoryFile

from book_site.api import pages
from book_site.made_pages import MADE
from tests.verified_book.books import sphinx_build, words
from tests.verified_book.hostile import DAMAGES, flipped
from verified_book.sealed import write_sealed

pytestmark = pytest.mark.xdist_group("light")

CONF = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parent / "code"))
extensions = ["sphinx.ext.autodoc", "book_site.api", "book_site.found"]
extensions += ["book_site.search"]
html_theme = "sphinx_book_theme"
exclude_patterns = ["code"]
book_site_api = ["sub/api"]
"""
MODULE = '''\
from inner import Inner


class Norm:
    """Layer norm, eq. 4 of a paper. More of it.

    Says more of :func:`half`.
    """

    def forward(self, x):
        """Does it.

        And more.
        """
        return half(x)

    def first(self):
        """One."""

    def second(self):
        """Two."""


def half(x):
    """A half of ``x``; see :class:`Norm`."""
    return x / 2


class Half:
    """Differs in case alone, as some files may not."""


class LostError(Exception):
    """Nothing is there."""
'''
INNER = '"""Where it is defined."""\n\n\nclass Inner:\n    """Has two names."""\n'
API = """\
Names
=====

All of them.

Layers
------

.. currentmodule:: layers

.. autoclass:: Norm
   :members:

   :Chapter: :doc:`../index`

.. autofunction:: half
.. autoclass:: Half

Between.

.. autoclass:: Inner
.. autoexception:: LostError
"""
INDEX = """\
Index
=====

See :class:`layers.Norm` and :meth:`layers.Norm.forward`, :class:`inner.Inner` and the names.

.. toctree::

   sub/api

.. code-block:: python

   from layers import Norm, half as part
   norm = Norm()
   norm.Norm, part(2), part(Norm=1), half

.. code-block:: python

   Norm, part
"""
CODE = {"code/layers.py": MODULE, "code/inner.py": INNER}
PAGES = {"index.rst": INDEX, "sub/api.rst": API, **CODE}
HALVES = ["layers.half-function.html", "layers.Half.html"]
NAMES = ["Norm", "half", "Half", "Inner", "LostError"]
ADDRESSES = ["layers.Norm.html", *HALVES, "layers.Inner.html", "layers.LostError.html"]


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    return sphinx_build(tmp_path_factory.mktemp("api"), CONF, PAGES)


def test_the_page_lists_names_with_their_first_sentences(build):
    article = build.article("sub/api.html")
    rows = re.findall(r'<tr[^>]* id="([^"]*)".*?href="([^"]*)".*?</tr>', article, re.DOTALL)
    assert rows == [*zip([f"layers.{name}" for name in NAMES], ADDRESSES, strict=True)]
    assert "Norm Layer norm, eq. 4 of a paper. half A half of x ; see Norm ." in words(article)
    assert "More of it" not in article
    assert article.count("<table") == 2


def test_an_object_has_a_page_with_all_that_is_said_of_it(build):
    article = build.article("sub/layers.Norm.html")
    assert re.findall(r"<h1>(.*?)<", article) == ["Norm"]
    assert "Says more of" in article
    assert 'href="layers.half-function.html#layers.half"' in article
    assert 'href="../index.html"' in article
    assert 'href="api.html#layers"' in article
    # A table of its methods leads to them.
    assert 'href="#layers.Norm.second"' in article
    assert 'id="layers.Norm.second"' in article


def test_its_source_is_there_without_what_the_page_says(build):
    source = build.article("sub/layers.Norm.html").partition("<details")[2]
    assert "layers.py, line 4" in source
    assert html.unescape(words(source)).endswith(
        "class Norm : def forward ( self , x ): return half ( x ) "
        'def first ( self ): """One.""" def second ( self ): """Two."""'
    )


def test_references_lead_to_the_pages(build):
    article = build.article("index.html")
    assert 'href="sub/layers.Norm.html#layers.Norm"' in article
    assert 'href="sub/layers.Norm.html#layers.Norm.forward"' in article
    # What is defined elsewhere has one page.
    assert 'href="sub/layers.Inner.html#layers.Inner"' in article
    with build.site.joinpath("objects.inv").open("rb") as stream:
        inventory = InventoryFile.load(stream, "", lambda base, uri: uri)
    assert inventory["py:class"]["layers.Norm"][2] == "sub/layers.Norm.html#layers.Norm"
    assert inventory["py:method"]["layers.Norm.first"][2].startswith("sub/layers.Norm.html#")


def test_code_leads_to_what_it_imports(build):
    first, second = re.findall(r"<pre>(.*?)</pre>", build.article("index.html"), re.DOTALL)
    to = '<a class="api" href="sub/layers.'
    assert re.findall(r'<a class="api"[^>]*>(\w+)', first) == ["Norm", "part"]
    assert f'{to}Norm.html">Norm</a>' in first
    # A class leads there from every block, but is one stop of the keyboard.
    assert re.findall(r"<a .*?</a>", second) == [f'{to}Norm.html" tabindex="-1">Norm</a>']


def test_a_sidebar_lists_the_names_of_one_section_at_most(build):
    assert "api.html" in build.sidebar("index.html")
    assert "layers.half" not in build.sidebar("index.html")
    beside = build.sidebar("sub/layers.Norm.html")
    assert re.findall(r'href="([^"]*)"', beside) == ["api.html", "#", *ADDRESSES[1:]]
    assert re.findall(r'current active"><a[^>]*>(\w+)', beside) == ["Norm"]


def test_a_page_leads_to_its_neighbors(build):
    page = build.pages["sub/layers.half-function.html"]
    assert re.search(r'class="left-prev"\s+href="layers.Norm.html"', page)
    assert re.search(r'class="right-next"\s+href="layers.Half.html"', page)


def test_a_page_is_described_by_its_first_sentence(build):
    said = re.search(
        r'name="description" content="([^"]*)"', build.pages["sub/layers.half-function.html"]
    )
    assert said is not None
    assert said[1] == "half, in layers: A half of x; see Norm."


def test_the_search_finds_the_pages(build):
    data = build.site.joinpath("_static/book_site_search_data.js").read_text()
    assert '["sub/layers.Norm.html","Norm"]' in data
    assert '"name","layers.Norm","layers.Norm","' in data
    assert '"page","","Norm"' not in data


def test_a_name_that_is_gone_takes_its_page_along(tmp_path):
    site = sphinx_build(tmp_path, CONF, PAGES).site
    assert site.joinpath("sub/layers.half-function.html").is_file()
    fewer = {
        "index.rst": INDEX,
        "sub/api.rst": API.replace(".. autofunction:: half\n", ""),
        **CODE,
        "code/layers.py": MODULE.replace(":func:`half`", "half").replace(":class:`Norm`", "Norm"),
    }
    site = sphinx_build(tmp_path, CONF, fewer).site
    assert not site.joinpath("sub/layers.half-function.html").exists()
    assert site.joinpath("sub/layers.Norm.html").is_file()


def test_a_build_of_another_page_leaves_the_pages(tmp_path):
    before = sphinx_build(tmp_path, CONF, PAGES).article("sub/layers.Norm.html")
    build = sphinx_build(tmp_path, CONF, {**PAGES, "index.rst": f"{INDEX}\nMore.\n"})
    assert "More." in build.article("index.html")
    assert 'href="sub/layers.Norm.html#layers.Norm"' in build.article("index.html")
    assert build.article("sub/layers.Norm.html") == before
    assert b"sub/layers" in zlib.decompress(
        build.site.joinpath("objects.inv").read_bytes().split(b"\n", 4)[4]
    )


def test_a_build_without_a_change_leaves_the_search_whole(tmp_path):
    found = [
        (build.site / "_static/book_site_search_data.js").read_text()
        for build in (sphinx_build(tmp_path, CONF, PAGES), sphinx_build(tmp_path, CONF, {}))
    ]
    assert "sub/layers.Norm.html" in found[0]
    assert found[1] == found[0]


def test_what_is_known_of_the_pages_is_made_anew_where_it_is_damaged(tmp_path):
    first = sphinx_build(tmp_path, CONF, PAGES)
    record = first.site / ".doctrees" / MADE
    whole = record.read_bytes()
    index = (first.site / "_static/book_site_search_data.js").read_text()
    for name in ("half", "another form", "a pipe", "a link to nothing"):
        DAMAGES[name](record)
        again = sphinx_build(tmp_path, CONF, {})
        assert record.read_bytes() == whole
        assert (again.site / "_static/book_site_search_data.js").read_text() == index
        assert f"{MADE} is damaged: the pages of all objects are written again" in again.log
        assert again.pages.keys() == first.pages.keys()


def test_no_page_goes_that_a_damaged_record_names(tmp_path):
    record, page = tmp_path / MADE, tmp_path / "page.html"
    page.touch()
    builder = SimpleNamespace(name="html", get_outfilename=lambda name: tmp_path / f"{name}.html")
    env = SimpleNamespace(doctreedir=tmp_path, found_docs={"api"})
    config = SimpleNamespace(book_site_api=["api"])
    app = SimpleNamespace(doctreedir=tmp_path, builder=builder, env=env, config=config)
    write_sealed(record, ["qage"])
    for data in flipped(record.read_bytes(), most=2000):
        record.write_bytes(data)
        pages._remove_former(app, {"api.made"})
        assert page.exists()
    assert pages.outdated(app, env) == []
    record.write_text('["page"]')
    assert pages.outdated(app, env) == ["api"]
    assert pages.outdated(app, env) == ["api"]  # until they are written
    pages._remove_former(app, {"api.made"})
    assert page.exists()
    assert pages.outdated(app, env) == []


@pytest.mark.parametrize("builder", ["dirhtml", "singlehtml"])
def test_other_sites_are_whole(tmp_path, builder):
    build = sphinx_build(tmp_path, CONF.replace('"book_site.search"', ""), PAGES, "-b", builder)
    if builder == "singlehtml":
        assert 'id="layers.Norm"' in build.article("index.html")
    else:
        article = build.article("sub/layers.Norm/index.html")
        assert 'href="../layers.half-function/#layers.half"' in article
        assert 'href="../../"' in article
