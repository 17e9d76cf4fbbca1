"""Tables of what catches what: they fit their frame, or scroll in it beside their names."""

import pytest

from tests.site.screens import resize

pytestmark = pytest.mark.xdist_group("site in use")

# Scrolled to its end, a frame shows the names at its left and the last check at its right.
FRAMES = """
() => [...document.querySelectorAll(".detection-table > .frame")].map((frame) => {
  frame.scrollLeft = frame.scrollWidth;
  const { left, right, width } = frame.getBoundingClientRect();
  const seen = (cell) => {
    const box = cell.getBoundingClientRect();
    const clipped = cell.scrollWidth > cell.clientWidth + 1;
    return !clipped && box.left > left - 1 && box.right < right + 1;
  };
  const cells = (selector) => [...frame.querySelectorAll(selector)];
  return {
    scrolls: frame.scrollWidth > frame.clientWidth,
    scrollable: ["auto", "scroll"].includes(getComputedStyle(frame).overflowX),
    reachable: frame.tabIndex === 0,
    inside: left >= 0 && right <= innerWidth,
    names: cells("tbody th, tfoot th").every(seen),
    last: cells("tr > :last-child").every(seen),
    narrowest: Math.min(...cells("thead th").map((cell) => cell.getBoundingClientRect().width)),
    room: width - frame.querySelector("tbody th").getBoundingClientRect().width,
  };
})
"""


# What a touched name says, and whether it fits.
SAYS = """cell => {
  const style = getComputedStyle(cell, "::after");
  const [left, width] = [parseFloat(style.left), parseFloat(style.width)];
  return {
    says: style.content,
    short: cell.getAttribute("data-says").slice(0, 10),
    position: style.position,
    fits: left - width / 2 >= 0 && left + width / 2 <= innerWidth,
  };
}"""
# What tables stand in; all that is folded takes longer to lay out than the rest of a page.
UNFOLD = """() => {
  for (const table of document.querySelectorAll(".detection-table")) {
    for (let each = table; each; each = each.parentElement) {
      if (each.matches("details")) each.open = true;
      each.classList.remove("toggle-hidden");
    }
  }
}"""
WIDTHS = (1440, 390)
HEADS = ("thead th:last-child", "tbody th")


@pytest.fixture(scope="module")
def seen(browser, address, texts):
    """Pages with such a table: their frames on each screen, and what two names say there.

    Of the pages by the number of their checks those at both ends, and every fifth between them.
    """
    checks = {name: text.count('scope="col" tabindex="-1"') for name, text in texts.items()}
    by_width = sorted(filter(checks.get, checks), key=checks.__getitem__)
    with_tables = by_width[::5] + by_width[-1:]
    context = browser.new_context(has_touch=True)
    page = context.new_page()
    found = {}
    for number, name in enumerate(with_tables):
        page.goto(address + name)
        page.evaluate(UNFOLD)
        found[name] = {}
        for width in WIDTHS[:: -1 if number % 2 else 1]:  # the first is the last of the page before
            resize(page, {"width": width, "height": 844})
            found[name][width] = page.evaluate(FRAMES)
            for head in HEADS if width == min(WIDTHS) else ():
                cell = page.locator(f".detection-table {head}").first
                cell.tap()
                found[name][head] = cell.evaluate(SAYS)
    context.close()
    return found


@pytest.mark.parametrize("width", WIDTHS)
def test_tables_show_their_names_and_their_last_check(seen, width):
    assert len(seen) > 4
    for name, found in seen.items():
        for frame in found[width]:
            assert frame["scrollable"], name
            assert frame["reachable"], name
            assert frame["inside"], name
            assert frame["names"], name
            assert frame["last"], name
            assert frame["room"] > 170, name  # a fold has margins of its own
            assert not (frame["scrolls"] and width > 1000), name
            assert frame["narrowest"] >= 24 or width > 1000, name  # of a finger: WCAG 2.2, 2.5.8


@pytest.mark.parametrize("head", HEADS)
def test_a_touched_name_says_what_it_is_short_for(seen, head):
    for name, found in seen.items():
        shown = found[head]
        assert shown["position"] == "fixed", name
        assert shown["fits"], name
        assert shown["short"] in shown["says"], name


# The frames of tables that are wider than a page, scrolled to their end.
WIDE = """
() => [...document.querySelectorAll(".wide-table")].map((frame) => {
  frame.scrollLeft = frame.scrollWidth;
  const { left, right } = frame.getBoundingClientRect();
  const inside = (cell) => {
    const box = cell.getBoundingClientRect();
    return box.left > left - 1 && box.right < right + 1;
  };
  return {
    scrolls: frame.scrollWidth > frame.clientWidth,
    reachable: frame.tabIndex === 0,
    inside: left >= 0 && right <= innerWidth,
    shown: [...frame.querySelectorAll("tr > :is(:first-child, :last-child)")].every(inside),
  };
})
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_a_wide_table_scrolls_on_a_phone_beside_its_first_column(browser, address, texts, width):
    names = [name for name, text in texts.items() if 'class="wide-table"' in text]
    assert names
    context = browser.new_context(viewport={"width": width, "height": 844})
    page = context.new_page()
    for name in names:
        page.goto(address + name)
        for frame in page.evaluate(WIDE):
            fits = {"reachable": True, "inside": True, "shown": True}
            assert frame == {"scrolls": width < 1000, **fits}, name
    context.close()
