"""What axe-core finds on the pages, light and dark."""

from collections import Counter

import pytest

from tests.site.axe import violations

pytestmark = pytest.mark.xdist_group("site")


# Of its rules, one depends on the theme.
@pytest.mark.parametrize(("theme", "rules"), [("light", None), ("dark", ["color-contrast"])])
def test_axe_finds_nothing(browser, address, different, theme, rules):
    context = browser.new_context(color_scheme=theme, bypass_csp=True)
    found = {}
    for name in different:
        if wrong := violations(context, address + name, rules):
            found[name] = wrong
    context.close()
    assert found == {}


def test_ids_are_of_one_element(pages):
    doubled = {}
    for name, soup in pages.items():
        counts = Counter(tag["id"] for tag in soup.select("[id]"))
        if several := [one for one, number in counts.items() if number > 1]:
            doubled[name] = several
    assert doubled == {}
