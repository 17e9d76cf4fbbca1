"""Runs axe-core, which comes with axe-playwright-python, on a page."""

from collections.abc import Sequence
from pathlib import Path

import axe_playwright_python
from playwright.sync_api import BrowserContext

[_AXE] = Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")
# What draws a formula is hidden from assistive technology, which reads the MathML beside it.
_RUN = """async (rules) => {
  const { violations } = await axe.run(
    { exclude: [[".katex-html"]] },
    { resultTypes: ["violations"], ...(rules && { runOnly: rules }) },
  );
  return violations.flatMap(
    ({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 150)}`),
  );
}"""


def violations(context: BrowserContext, url: str, rules: Sequence[str] | None = None) -> list[str]:
    """What axe-core finds on a page: the rule, and the beginning of the element."""
    page = context.new_page()
    page.goto(url)
    page.add_script_tag(path=_AXE)
    found: list[str] = page.evaluate(_RUN, rules)
    page.close()
    return found
