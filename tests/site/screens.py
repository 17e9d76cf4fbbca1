"""A browser's window of another size, when the page has taken it."""

from pathlib import Path

from playwright.sync_api import Page, ViewportSize

_INSPECTION = Path(__file__).with_name("inspection.js")


def resize(page: Page, size: ViewportSize) -> None:
    """Gives the window a size, and waits until nothing of the layout moves.

    Sidebars slide in and out: what is measured meanwhile depends on the machine.
    """
    page.set_viewport_size(size)
    page.evaluate(f"{_INSPECTION.read_text(encoding='utf-8')}; inspection.settled()")
