"""Scripts of Sphinx and its usual extensions do not keep a page from being shown."""

from book_site.postprocess.scripts import load_late

HEAD = """\
<script src="../_static/documentation_options.js?v=1"></script>
<script src="../_static/doctools.js?v=1"></script>
<script>DOCUMENTATION_OPTIONS.pagename = 'a';</script>
<script data-sd-tabs-storage-prefix="sd-" src="../_static/design-tabs.js"></script>
<script defer="defer" src="../_static/copybutton.js"></script>
<script src="../_static/strange.js"></script>
<script src="https://example.org/doctools.js"></script>
"""
LATE = """\
<script src="../_static/documentation_options.js?v=1"></script>
<script defer src="../_static/doctools.js?v=1"></script>
<script>DOCUMENTATION_OPTIONS.pagename = 'a';</script>
<script defer data-sd-tabs-storage-prefix="sd-" src="../_static/design-tabs.js"></script>
<script defer="defer" src="../_static/copybutton.js"></script>
<script src="../_static/strange.js"></script>
<script src="https://example.org/doctools.js"></script>
"""
SEARCH = (
    '<script src="_static/searchtools.js"></script>\n<script src="searchindex.js"></script>'
    '<script src="_static/strange.js"></script>'
)


def test_known_scripts_run_late():
    assert load_late(HEAD, "page.html") == LATE
    assert load_late(LATE, "page.html") == LATE


def test_the_search_is_loaded_by_its_page_only():
    assert load_late(SEARCH, "index.html") == '<script src="_static/strange.js"></script>'
    assert load_late(SEARCH, "search.html") == SEARCH
