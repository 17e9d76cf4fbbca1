"""Figures that a reader moves: pages load the scripts of those that they show."""

import pytest

from tests.verified_book.books import sphinx_build

pytestmark = pytest.mark.xdist_group("light")

CONF = """\
extensions = ["book_site.interactive"]
html_static_path = ["own"]
html_js_files = ["dice.js", "everywhere.js"]
book_site_interactive = {"dice": ["chance.js", "dice.js"], "coin": ["chance.js", "coin.js"]}
"""
FIGURE = '.. raw:: html\n\n   <div class="live-figure" data-live="{name}"></div>\n\n'
PAGES = {
    "index.rst": "Index\n=====\n\n.. toctree::\n\n   one\n   both\n",
    "one.rst": "One\n===\n\n" + FIGURE.format(name="dice"),
    "both.rst": "Both\n====\n\n" + FIGURE.format(name="coin") + 2 * FIGURE.format(name="dice"),
    **{f"own/{name}.js": "" for name in ("chance", "dice", "coin", "everywhere")},
}


def test_a_figure_that_nothing_draws_is_named(tmp_path):
    pages = PAGES | {"one.rst": "One\n===\n\n" + FIGURE.format(name="card")}
    said = sphinx_build(tmp_path, CONF, pages, status=1).log
    assert "one" in said
    assert "no figure is named 'card'; there are coin, dice. Remedy: name its scripts in" in said


def test_large_data_get_a_file_of_their_own(tmp_path):
    data = '<script type="application/json">{}</script>'
    figure = '.. raw:: html\n\n   <div class="live-figure" data-live="dice">{}</div>\n\n'
    small, large = "[1]", '["' + 40 * "6" + '"]'
    pages = PAGES | {
        "index.rst": "Index\n=====\n\n.. toctree::\n\n   one\n   in/deep\n",
        "one.rst": "One\n===\n\n" + figure.format(data.format(small)),
        "in/deep.rst": "Deep\n====\n\n" + figure.format(data.format(large)),
    }
    del pages["both.rst"]
    build = sphinx_build(tmp_path, CONF + "book_site_interactive_inline = 40\n", pages)
    assert data.format(small) in build.site.joinpath("one.html").read_text()
    deep = build.site.joinpath("in/deep.html").read_text()
    assert large not in deep
    assert 'data-source="../_static/interactive_data/in-deep-1.js" data-size="0 KB"' in deep
    file = build.site / "_static/interactive_data/in-deep-1.js"
    assert file.read_text() == f"VerifiedBook.arrived={large};\n"
