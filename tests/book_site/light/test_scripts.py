"""Scripts of Sphinx and its usual extensions do not keep a page from being shown."""

import pytest

from book_site.light.scripts import load_late

HEAD = """\
<script src="../_static/documentation_options.js?v=1"></script>
<script src="../_static/doctools.js?v=1"></script>
<script>DOCUMENTATION_OPTIONS.pagename = 'a';</script>
<script src="../_static/togglebutton.js"></script>
<script data-sd-tabs-storage-prefix="sd-" src="../_static/design-tabs.js"></script>
<script defer="defer" src="../_static/copybutton.js"></script>
<script src="../_static/strange.js"></script>
<script src="https://example.org/doctools.js"></script>
"""
LATE = """\
<script>const DOCUMENTATION_OPTIONS = { A: 1, };</script>
<script defer src="../_static/doctools.js?v=1"></script>
<script>DOCUMENTATION_OPTIONS.pagename = 'a';</script>
<script defer="defer" src="../_static/copybutton.js"></script>
<script src="../_static/strange.js"></script>
<script src="https://example.org/doctools.js"></script>
"""


def late(tmp_path, page):
    options = "const DOCUMENTATION_OPTIONS = {\n    A: 1,\n};"
    tmp_path.joinpath("documentation_options.js").write_text(options)
    pages = {tmp_path / "page.html": page}
    load_late(pages, tmp_path)
    return pages[tmp_path / "page.html"]


def test_known_scripts_run_late_and_only_where_something_is_for_them(tmp_path):
    assert late(tmp_path, HEAD) == LATE


def test_what_a_page_has_loads_its_script(tmp_path):
    body = (
        '<div class="sd-tab-set docutils"></div><div class="toggle admonition">'
        '<div class="admonition note dropdown"></div>'
    )
    page = late(tmp_path, HEAD + body)
    assert '<script defer src="../_static/togglebutton.js">' in page
    assert (
        '<script defer data-sd-tabs-storage-prefix="sd-" src="../_static/design-tabs.js">' in page
    )


@pytest.mark.parametrize(
    "classes",
    [
        "toggle",
        "note toggle",
        "admonition dropdown",
        "admonition note dropdown",
        "dropdown admonition",
        "solution dropdown admonition",
        "dropdown tip admonition",
    ],
)
def test_what_folds_has_its_classes_in_any_order(tmp_path, classes):
    assert "togglebutton.js" in late(tmp_path, f'{HEAD}<div class="{classes}" id="a"></div>')


def test_a_menu_of_the_theme_is_nothing_to_toggle(tmp_path):
    menu = '<div class="dropdown"><button class="btn dropdown-toggle"></button></div>'
    assert "togglebutton" not in late(tmp_path, HEAD + menu)


def test_without_options_all_stays_but_what_waits(tmp_path):
    pages = {tmp_path / "page.html": HEAD}
    load_late(pages, tmp_path)
    assert "documentation_options.js?v=1" in pages[tmp_path / "page.html"]
