"""Runs axe-core, which comes with axe-playwright-python, on a page."""

from pathlib import Path

import axe_playwright_python
from playwright.sync_api import BrowserContext

[_AXE] = Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")
_RUN = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.flatMap(
    ({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 150)}`),
  );
}"""


def violations(context: BrowserContext, url: str) -> list[str]:
    """What axe-core finds on a page: the rule, and the beginning of the element."""
    page = context.new_page()
    page.goto(url)
    page.add_script_tag(path=_AXE)
    found: list[str] = page.evaluate(_RUN)
    page.close()
    return found
