"""A site without its own MathJax, or with scripts that no page needs, is noticed."""

import re
import subprocess
import sys
from importlib import metadata

import pytest
from sphinx.errors import ExtensionError

from verified_book import offline

pytestmark = pytest.mark.xdist_group("offline")

PAGES = {
    "conf.py": 'extensions = ["verified_book"]\nhtml_theme = "sphinx_book_theme"\n',
    "index.rst": "Index\n=====\n\n.. toctree::\n\n   maths\n",
    "maths.rst": "Title :math:`x`\n===============\n\n.. math:: y = \\cancel{x}\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    for name, text in PAGES.items():
        folder.joinpath(name).write_text(text)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-n", folder, folder / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "out"


@pytest.fixture
def pages(site):
    found = {file.name: file.read_text() for file in site.glob("*.html")}
    assert {"index.html", "maths.html", "search.html", "genindex.html"} <= found.keys()
    return found


def test_every_page_loads_the_mathjax_of_the_site(site, pages):
    for page in pages.values():
        assert re.search(r'<script [^>]*src="_static/mathjax/tex-chtml\.js\?v=\w+"', page)
    assert site.joinpath("_static/mathjax/tex-chtml.js").is_file()


def test_what_mathjax_asks_for_is_there(site):
    mathjax = site / "_static" / "mathjax"
    fonts = [file.name for file in mathjax.glob("output/chtml/fonts/woff-v2/*.woff")]
    assert "MathJax_Math-Italic.woff" in fonts
    assert mathjax.joinpath("input/tex/extensions/cancel.js").is_file()
    assert "Apache License" in mathjax.joinpath("NOTICE.txt").read_text()
    assert sum(file.stat().st_size for file in mathjax.rglob("*") if file.is_file()) < 3e6


def test_no_page_names_another_host(pages):
    for page in pages.values():
        resources = re.findall(r'<(?:script|link|img|iframe)[^>]* (?:src|href)="([^"]*)"', page)
        assert resources
        assert not [name for name in resources if re.match(r"(?:https?:)?//", name)]


def test_script_for_added_icons_and_source_maps_are_gone(site, pages):
    assert not any("scripts/fontawesome.js" in page for page in pages.values())
    assert not list(site.rglob("scripts/fontawesome.js*"))
    assert not list(site.rglob("*.map"))
    assert list(site.rglob("fontawesome/webfonts/*.woff2"))


def test_a_missing_package_is_named(monkeypatch):
    def files(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(offline.metadata, "files", files)
    with pytest.raises(ExtensionError, match="pip install sphinx-mathjax-offline"):
        offline.mathjax_files()


def test_an_installation_without_a_list_of_files_is_noticed(monkeypatch):
    monkeypatch.setattr(offline.metadata, "files", lambda name: None)
    with pytest.raises(ExtensionError, match=r"tex-chtml\.js .*was not found"):
        offline.mathjax_files()
