"""What stands in a lesson's figure can be read on a phone."""

from pathlib import Path

import pytest

from tests.site.conftest import LABEL, PHONE
from tests.site.test_lessons import LESSONS


def test_words_of_figures_are_large_enough_on_a_phone(visits):
    lessons = {f"{lesson}.html" for lesson in LESSONS} & visits.keys()
    assert {name: visits[name].small for name in lessons if visits[name].small} == {}


def drawn(size: float, turned: int = 0) -> str:
    """A drawing of 300 units that has 150 pixels, with one word."""
    return f"""<svg viewBox="0 0 300 99" width="150"><title>a</title>
    <text font-size="{size}" transform="rotate({turned})">word</text></svg>"""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (drawn(22), []),
        (drawn(21), ["10.5: word"]),
        (f"<details>{drawn(20, turned=90)}</details>", ["10.0: word"]),
        ('<div class="live-moving"><p style="font-size: 9px">word</p></div>', ["9.0: word"]),
    ],
)
def test_small_words_are_seen(browser, body, found):
    context = browser.new_context(viewport=PHONE)
    context.add_init_script(path=Path(__file__).parent / "inspection.js")
    page = context.new_page()
    page.set_content(f"<!DOCTYPE html><article>{body}</article>")
    seen = page.evaluate(f"inspection.small({LABEL})")
    context.close()
    assert seen == found
