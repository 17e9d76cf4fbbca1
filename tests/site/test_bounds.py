"""Chapters stay short: what stands open on them, and how far a reader has to scroll."""

import pytest

pytestmark = pytest.mark.xdist_group("site")

CHAPTERS = ("attention/", "feed_forward/", "gpt2/", "normalization/", "transformers/", "one_page")
SCREEN = 1000  # pixels
OPEN = """
() => {
  const shown = (each) => each.checkVisibility({ contentVisibilityAuto: true });
  const all = (selector) => [...document.querySelectorAll(`article ${selector}`)].filter(shown);
  const lines = (each) => each.textContent.trimEnd().split("\\n");
  const printed = all(".cell_output pre").flatMap(lines);
  const prose = all("p, article li").filter((each) => !each.closest("table, figure, pre, .cell"));
  const said = (each) => {
    const copy = each.cloneNode(true);
    copy.querySelectorAll(".katex").forEach((formula) => formula.replaceWith("x"));
    copy.querySelectorAll("p, ul, ol, .cell").forEach((inner) => inner.remove());
    return copy.textContent.match(/\\S+/g) ?? [];
  };
  return {
    cells: all(".cell_input pre").length,
    height: document.documentElement.scrollHeight,
    printed: printed.length + all(".cell_output tr").length,
    verdicts: printed.filter((line) => /^(equal|different|holds|exact)\\b.*:/.test(line)).length,
    words: prose.flatMap(said).length,
  };
}
"""


@pytest.fixture(scope="module")
def chapters(browser, address, pages):
    """What stands open on each chapter."""
    context = browser.new_context(viewport={"width": 1280, "height": SCREEN})
    page = context.new_page()
    found = {}
    for name in pages:
        if name.startswith(CHAPTERS):
            page.goto(address + name)
            found[name] = page.evaluate(OPEN)
    context.close()
    return found


@pytest.mark.parametrize(
    ("what", "bound"), [("cells", 30), ("height", 12 * SCREEN), ("words", 2500)]
)
def test_no_chapter_is_too_long(chapters, what, bound):
    assert len(chapters) > 25, "the chapters are elsewhere"
    assert {name: open[what] for name, open in chapters.items() if open[what] > bound} == {}


def test_what_is_printed_is_seldom_a_verdict(chapters):
    printed, verdicts = (
        sum(open[what] for open in chapters.values()) for what in ("printed", "verdicts")
    )
    assert verdicts < 0.15 * printed
