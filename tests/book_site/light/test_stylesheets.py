"""One stylesheet with the rules that pages need, and the icons that they show."""

import base64
import io
import re
import sys
from pathlib import Path

import pydata_sphinx_theme
import pytest
from fontTools.ttLib import TTFont
from sphinx.errors import ExtensionError

from book_site.light import search, stylesheets
from tests.verified_book.books import sphinx_build

LINKS = (
    '<link rel="stylesheet" href="../_static/a/one.css?v=1" />\n'
    '<link href="../_static/two.css" rel="stylesheet">\n'
)
PAGE = f'<head>{LINKS}<title>t</title></head><b class="kept fa-solid" id="place">'
FONT = "vendor/fontawesome/webfonts/fa-solid-900"


@pytest.fixture
def site(tmp_path):
    static = tmp_path / "_static"
    static.joinpath("a").mkdir(parents=True)
    static.joinpath("a/one.css").write_text(
        '@import "../basic.css"; .kept{background:url(x.png)} .gone, #place{top:0}'
        "@font-face{font-family:Named;src:url(named.woff2)}"
        "@font-face{font-family:Unnamed;src:url(unnamed.woff2)}"
    )
    static.joinpath("basic.css").write_text("/* .kept{} */ .scripted{font-family:Named}")
    static.joinpath("two.css").write_text(
        "@media print{.kept .gone{a:b}.kept:not(.gone){c:d}} @keyframes spin{to{top:1px}}"
    )
    static.joinpath("own.js").write_text('element.classList.add("scripted")')
    for name in ("named.woff2", "unnamed.woff2"):
        static.joinpath("a", name).write_bytes(b"")
    return tmp_path


def bundled(site):
    file = site / "sub" / "page.html"
    pages = {file: PAGE}
    stylesheets.bundle(pages, site)
    [sheet] = site.glob("_static/*.css")
    return pages[file], sheet.name, sheet.read_text()


def test_pages_load_one_file_that_is_named_by_its_content(site):
    page, name, _ = bundled(site)
    assert re.findall(r'<link[^>]*href="([^"]*)"', page) == [f"../_static/{name}"]
    assert re.fullmatch(r"site\.[0-9a-f]{12}\.css", name)
    assert page.index("<link") < page.index("<title")


def test_rules_are_kept_that_pages_or_scripts_may_need(site):
    _, _, css = bundled(site)
    assert '.kept{background:url("a/x.png")}' in css
    assert "#place{top:0}" in css
    assert ".scripted{font-family:Named}" in css
    assert "@media print{.kept:not(.gone){c:d}}" in css
    assert ".kept .gone" not in css
    assert "Unnamed" not in css
    assert "@keyframes" not in css


def test_fonts_that_are_not_named_are_removed(site):
    bundled(site)
    assert [file.name for file in site.rglob("*.woff2")] == ["named.woff2"]


def test_pages_of_a_former_build_load_the_new_file(site):
    page, _, _ = bundled(site)
    former, fresh = site / "sub" / "former.html", site / "sub" / "fresh.html"
    site.joinpath("_static", "a", "one.css").write_text(".kept{left:0}")
    site.joinpath("_static", "two.css").write_text("")
    pages = {former: page, fresh: PAGE}
    stylesheets.bundle(pages, site)
    [sheet] = site.glob("_static/*.css")
    assert all(f"../_static/{sheet.name}" in text for text in pages.values())
    stylesheets.bundle(pages, site)  # no page was written
    assert sheet.is_file()


def with_icons(site, suffix):
    """A site whose stylesheet shows one icon of a theme's font, which it has in one form."""
    [theme] = (
        file
        for folder in pydata_sphinx_theme.__path__
        for file in Path(folder).rglob("fa-solid-900.woff2")
    )
    target = site / "_static" / f"{FONT}{suffix}"
    target.parent.mkdir(parents=True)
    with TTFont(theme) as font:
        font.flavor = {".woff2": "woff2"}.get(suffix)
        font.save(target)
    site.joinpath("_static/two.css").write_text(
        '.fa-solid{font-family:"Icons"} #place{--fa:"\\f00e"}'
        f'@font-face{{font-family:"Icons";src:url({FONT}.woff2) format("woff2")}}'
    )
    return target


@pytest.mark.parametrize("suffix", [".ttf", ".woff2"])
def test_icons_are_a_font_of_those_that_are_shown(site, suffix):
    target = with_icons(site, suffix)
    _, _, css = bundled(site)
    content = base64.b64decode(re.search(r"base64,([\w+/=]+)", css)[1])
    assert list(TTFont(io.BytesIO(content)).getBestCmap()) == [0xF00E]
    assert len(content) < 2000
    assert not target.exists()


def test_a_compressed_font_says_what_reads_it(site, monkeypatch):
    with_icons(site, ".woff2")
    monkeypatch.setitem(sys.modules, "fontTools.ttLib.woff2", None)
    with pytest.raises(ExtensionError, match=r"fa-solid-900.woff2 is compressed .* install brotli"):
        bundled(site)


def test_a_font_that_is_not_there_is_named(site):
    with_icons(site, ".woff2").unlink()
    with pytest.raises(
        ExtensionError, match=r"has neither fa-solid-900.ttf nor .*woff2 in .*Remedy"
    ):
        bundled(site)


def test_the_search_is_loaded_by_its_page_only(tmp_path):
    tags = (
        '<script src="_static/searchtools.js"></script>\n<script src="searchindex.js"></script>'
        '<script src="_static/doctools.js?v=1"></script>'
    )
    pages = {tmp_path / "index.html": tags, tmp_path / "search.html": tags}
    search.load_where_used(pages)
    assert pages[tmp_path / "index.html"] == '<script src="_static/doctools.js?v=1"></script>'
    assert pages[tmp_path / "search.html"] == tags


def test_another_search_needs_no_index(tmp_path):
    own = '<script src="_static/book_site_search.js"></script>'
    pages = {tmp_path / "search.html": f'{own}<script src="searchindex.js"></script>'}
    search.load_where_used(pages)
    assert pages[tmp_path / "search.html"] == own


def test_a_stylesheet_that_changed_is_in_the_site_though_no_page_did(tmp_path):
    conf = """
extensions = ["myst_nb", "book_site.light"]
html_theme = "sphinx_book_theme"
html_static_path = ["_static"]
html_css_files = ["own.css"]
"""
    pages = {"index.md": "# A book\n\n```{toctree}\nother\n```\n", "other.md": "# Another\n"}
    for color in ("#123456", "#123457", "#123457"):
        files = {**pages, "_static/own.css": f"h1 {{ color: {color}; }}"}
        build = sphinx_build(tmp_path, conf, files)
        pages = {}
        [sheet] = build.site.glob("_static/site.*.css")
        assert color in sheet.read_text()
        assert all(sheet.name in build.pages[name] for name in ("index.html", "other.html"))
    assert "no targets are out of date" in build.log
