"""Tables of what catches what: they fit their frame, or scroll in it beside their names."""

import pytest

pytestmark = pytest.mark.xdist_group("site")

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
    room: width - frame.querySelector("tbody th").getBoundingClientRect().width,
  };
})
"""


@pytest.fixture(scope="module")
def with_tables(pages):
    """The pages with such a table."""
    return [name for name, soup in pages.items() if soup.select_one(".detection-table")]


@pytest.fixture
def page(browser):
    context = browser.new_context(has_touch=True)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("width", [390, 1440])
def test_tables_show_their_names_and_their_last_check(page, address, with_tables, width):
    assert len(with_tables) > 9
    page.set_viewport_size({"width": width, "height": 844})
    for name in with_tables:
        page.goto(address + name)
        for frame in page.evaluate(FRAMES):
            assert frame["scrollable"], name
            assert frame["reachable"], name
            assert frame["inside"], name
            assert frame["names"], name
            assert frame["last"], name
            assert frame["room"] > 200, name
            assert not (frame["scrolls"] and width > 1000), name


@pytest.mark.parametrize("head", ["thead th:last-child", "tbody th"])
def test_a_touched_name_says_what_it_is_short_for(page, address, with_tables, head):
    page.set_viewport_size({"width": 390, "height": 844})
    for name in with_tables:
        page.goto(address + name)
        cell = page.locator(f".detection-table {head}").first
        cell.tap()
        shown = cell.evaluate(
            """cell => {
              const style = getComputedStyle(cell, "::after");
              const [left, width] = [parseFloat(style.left), parseFloat(style.width)];
              return {
                says: style.content,
                position: style.position,
                fits: left - width / 2 >= 0 && left + width / 2 <= innerWidth,
              };
            }"""
        )
        assert shown["position"] == "fixed", name
        assert shown["fits"], name
        assert cell.get_attribute("data-says")[:10] in shown["says"], name
