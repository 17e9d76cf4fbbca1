"""A site that asks another host for MathJax is noticed."""

import re
from importlib import metadata
from pathlib import Path

import pytest
from sphinx.errors import ExtensionError

from tests.verified_book.books import sphinx_build
from verified_book import offline

pytestmark = pytest.mark.xdist_group("offline")

CONF = 'extensions = ["verified_book.offline"]\nhtml_theme = "sphinx_book_theme"\n'
PAGES = {
    "index.rst": "Index\n=====\n\n.. toctree::\n\n   maths\n",
    "maths.rst": "Title :math:`x`\n===============\n\n.. math:: y = \\cancel{x}\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("offline")
    return sphinx_build(folder, CONF, PAGES).site


def test_every_page_has_the_mathjax_of_the_site_and_names_no_other_host(site):
    pages = {file.name: file.read_text() for file in site.glob("*.html")}
    assert {"index.html", "maths.html", "search.html", "genindex.html"} <= pages.keys()
    for page in pages.values():
        assert re.search(r'<script [^>]*src="_static/mathjax/tex-chtml\.js\?v=\w+"', page)
        resources = re.findall(r'<(?:script|link|img|iframe)[^>]* (?:src|href)="([^"]*)"', page)
        assert not [name for name in resources if re.match(r"(?:https?:)?//", name)]
    mathjax = site / "_static" / "mathjax"
    assert mathjax.joinpath("output/chtml/fonts/woff-v2/MathJax_Math-Italic.woff").is_file()
    assert mathjax.joinpath("input/tex/extensions/cancel.js").is_file()
    assert "Apache License" in mathjax.joinpath("NOTICE.txt").read_text()


def test_a_missing_package_is_named(monkeypatch):
    def files(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(offline.metadata, "files", files)
    with pytest.raises(ExtensionError, match="pip install sphinx-mathjax-offline"):
        offline.mathjax_files()


HIDE = """\
from importlib import metadata
_files = metadata.files
def files(name):
    if name == "sphinx-mathjax-offline":
        raise metadata.PackageNotFoundError(name)
    return _files(name)
metadata.files = files
"""


def test_a_choice_of_the_author_stays_and_needs_no_package(tmp_path):
    own = 'html_math_renderer = "mathjax"\nmathjax_path = "own/m.js"\n'
    site = sphinx_build(tmp_path, HIDE + CONF + own, PAGES).site
    scripts = re.findall(r'<script [^>]*src="([^"?]*)', site.joinpath("maths.html").read_text())
    assert "_static/own/m.js" in scripts
    assert not site.joinpath("_static/mathjax").exists()
