"""One stylesheet with the rules that pages need, and the icons that they show."""

import base64
import io
import re
import shutil
from pathlib import Path

import pydata_sphinx_theme
import pytest
from fontTools.ttLib import TTFont

from book_site.postprocess import stylesheets
from tests.verified_book.books import sphinx_build

LINKS = (
    '<link rel="stylesheet" href="../_static/a/one.css?v=1" />\n'
    '<link href="../_static/two.css" rel="stylesheet">\n'
)
PAGE = f'<head>{LINKS}<title>t</title></head><b class="kept fa-solid" id="place">'
FONT = "vendor/fontawesome/webfonts/fa-solid-900.woff2"


@pytest.fixture
def site(tmp_path):
    static = tmp_path / "_static"
    static.joinpath("a").mkdir(parents=True)
    static.joinpath("a/one.css").write_text(
        '@import "../basic.css"; .kept{background:url(x.png)} .gone, #place{top:0}'
        "@font-face{font-family:Named;src:url(named.woff2)}"
    )
    static.joinpath("basic.css").write_text("/* .kept{} */ .scripted{font-family:Named}")
    static.joinpath("two.css").write_text(
        "@media print{.kept .gone{top:0}.kept:not(.gone){left:0}}"
    )
    static.joinpath("own.js").write_text('element.classList.add("scripted")')
    static.joinpath("a/named.woff2").write_bytes(b"")
    return tmp_path


def bundled(site):
    file = site / "sub" / "page.html"
    pages = {file: PAGE}
    stylesheets.bundle(pages, site / "_static")
    [sheet] = site.glob("_static/*.css")
    return pages[file], sheet.name, sheet.read_text()


def test_pages_load_one_file_that_is_named_by_its_content(site):
    page, name, _ = bundled(site)
    assert re.findall(r'<link[^>]*href="([^"]*)"', page) == [f"../_static/{name}"]
    assert re.fullmatch(r"site\.[0-9a-f]{12}\.css", name)
    assert page.index("<link") < page.index("<title")


def test_rules_are_kept_that_pages_or_scripts_may_need(site):
    _, _, css = bundled(site)
    for rule in (
        ".kept{background:url(a/x.png)}",
        "#place{top:0}",
        ".scripted{font-family:Named}",
        "@media print{.kept:not(.gone){left:0}}",
    ):
        assert rule in css
    assert ".kept .gone" not in css


@pytest.fixture
def font(site):
    """A font of icons, of which the stylesheet shows one."""
    [theme] = (
        file
        for folder in pydata_sphinx_theme.__path__
        for file in Path(folder).rglob("fa-solid-900.woff2")
    )
    target = site / "_static" / FONT
    target.parent.mkdir(parents=True)
    shutil.copyfile(theme, target)
    site.joinpath("_static/two.css").write_text(
        '.fa-solid{font-family:"Icons"} #place{--fa:"\\f00e"}'
        f'@font-face{{font-family:"Icons";src:url({FONT}) format("woff2")}}'
    )
    return target


def test_icons_are_a_font_of_those_that_are_shown(site, font):
    _, _, css = bundled(site)
    content = base64.b64decode(re.search(r"base64,([\w+/=]+)", css)[1])
    assert list(TTFont(io.BytesIO(content)).getBestCmap()) == [0xF00E]
    assert len(content) < 2000
    assert not font.exists()


def test_a_stylesheet_that_changed_is_in_the_site_though_no_page_did(tmp_path):
    conf = """
extensions = ["myst_nb", "book_site.postprocess"]
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
