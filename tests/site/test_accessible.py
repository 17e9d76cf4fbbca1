"""What axe-core finds on the pages, light and dark."""

import pytest

from tests.site.axe import CONTRAST, violations

pytestmark = pytest.mark.xdist_group("site in use")

# One of each kind. What axe-core finds on all of them is found in the nightly run; that text stands
# out on the others, test_pages.py asks in both themes.
KINDS = {
    "index.html",
    "attention/masks.html",  # with a figure that moves
    "reference/api.html",
    "reference/api_attention.html",
    "_modules/transformer_layers/attention/definition.html",
    "genindex.html",
    "search.html",
}
WHICH = ["of each kind", pytest.param("all", marks=pytest.mark.nightly)]


@pytest.mark.parametrize("which", WHICH)
def test_axe_finds_nothing(browser, address, texts, different, which):
    assert texts.keys() >= KINDS
    names = different if which == "all" else sorted(KINDS)
    context = browser.new_context()
    found = {name: violations(context, address + name, without=[CONTRAST]) for name in names}
    context.close()
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.nightly  # test_pages.py asks every page in both themes what stands out too little
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_sees_enough_contrast(browser, address, different, theme):
    context = browser.new_context(color_scheme=theme)
    found = {name: violations(context, address + name, [CONTRAST]) for name in different}
    context.close()
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
