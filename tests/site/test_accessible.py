"""What axe-core finds on the pages, light and dark."""

from collections import Counter
from pathlib import Path

import axe_playwright_python
import pytest

pytestmark = pytest.mark.xdist_group("site")

[AXE] = Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")
RUN = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.flatMap(
    ({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 150)}`),
  );
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(browser, address, pages, theme):
    context = browser.new_context(color_scheme=theme, bypass_csp=True)
    found = {}
    for name in pages:
        page = context.new_page()
        page.goto(address + name)
        page.add_script_tag(path=AXE)
        if violations := page.evaluate(RUN):
            found[name] = violations
        page.close()
    context.close()
    assert found == {}


def test_ids_are_of_one_element(pages):
    doubled = {}
    for name, soup in pages.items():
        counts = Counter(tag["id"] for tag in soup.select("[id]"))
        if several := [one for one, number in counts.items() if number > 1]:
            doubled[name] = several
    assert doubled == {}
