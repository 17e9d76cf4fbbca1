"""Runs axe-core, which comes with axe-playwright-python, on a page."""

from collections.abc import Sequence
from pathlib import Path

import axe_playwright_python
from playwright.sync_api import BrowserContext

[_AXE] = Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")
CONTRAST = "color-contrast"  # the slowest of the rules, and the one that depends on the theme
# What draws a formula is hidden from assistive technology, which reads the MathML beside it.
_RUN = """async ([rules, without]) => {
  const { violations } = await axe.run(
    { exclude: [[".katex-html"]] },
    {
      resultTypes: ["violations"],
      rules: Object.fromEntries(without.map((rule) => [rule, { enabled: false }])),
      ...(rules && { runOnly: rules }),
    },
  );
  return violations.flatMap(
    ({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 150)}`),
  );
}"""


def violations(
    context: BrowserContext,
    url: str,
    rules: Sequence[str] | None = None,
    without: Sequence[str] = (),
) -> list[str]:
    """What axe-core finds on a page, by some rules or by all but some.

    Args:
        context: Where the page is opened.
        url: Its address.
        rules: The rules; all if not given.
        without: The rules that are left out.

    Returns:
        The rule, and the beginning of the element.
    """
    page = context.new_page()
    page.goto(url)
    page.evaluate(f"{_AXE.read_text(encoding='utf-8')};0")  # no policy of the page's forbids that
    found: list[str] = page.evaluate(_RUN, [rules, without])
    page.close()
    return found
