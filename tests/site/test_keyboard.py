"""A chapter by keyboard alone: stops are seen, named and in order, and do what they say."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("site in use")

CHAPTER = "normalization/dropout.html"
PROOFS = "proofs/dropout.html"
# What has the focus: its name, its place, and whether one sees that it has the focus.
FOCUSED = """async () => {
  await Promise.allSettled(document.getAnimations().map((each) => each.finished));
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const stops = [...document.querySelectorAll("a, button, input, select, summary, [tabindex]")];
  // What opens a line of the sidebar has no height of its own: its arrow stands beside the line.
  const drawn = [one, ...one.children].find((each) => {
    const { width, height } = each.getBoundingClientRect();
    return width > 0 && height > 0;
  }) ?? one;
  const box = drawn.getBoundingClientRect();
  const style = getComputedStyle(drawn);
  const labels = [...(one.labels ?? [])].map((label) => label.textContent);
  const name = one.getAttribute("aria-label") || labels.join(" ") || one.textContent.trim() ||
    one.title || one.querySelector("[aria-label]")?.getAttribute("aria-label") || "";
  const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  return {
    place: stops.indexOf(one),
    name: name.trim().replace(/\\s+/g, " ").slice(0, 60),
    what: one.outerHTML.slice(0, 120),
    within: one.closest("main") ? "main" : "around",
    seen: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight,
    marked: outlined || style.boxShadow !== "none",
  };
}"""
MOST = 600  # stops of the longest chapter, with room


@pytest.fixture
def page(browser, address):
    """A chapter in a browser, nothing focused."""
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    page = context.new_page()
    page.goto(address + CHAPTER)
    yield page
    context.close()


def press_until(page, selector, key="Tab"):
    """Goes from stop to stop until one fits."""
    for _ in range(MOST):
        page.keyboard.press(key)
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    pytest.fail(f"{key} does not lead to {selector}")


def test_the_first_stop_leads_to_the_text(page):
    page.keyboard.press("Tab")
    skip = page.locator("#pst-skip-link a")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED)["within"] == "main"


def test_every_stop_is_seen_named_and_in_order(page):
    stops = []
    for _ in range(MOST):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUSED)
        if stop is None or (stops and stop["place"] == stops[0]["place"]):
            break
        stops.append(stop)
    assert 50 < len(stops) < MOST
    assert [stop["what"] for stop in stops if not stop["seen"]] == []
    assert [stop["what"] for stop in stops if not stop["name"]] == []
    assert [stop["what"] for stop in stops if not stop["marked"]] == []
    places = [stop["place"] for stop in stops]
    assert places == sorted(places)
    # There and back again.
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(FOCUSED)["what"] in {stop["what"] for stop in stops[-3:]}


def test_a_proof_opens_and_closes(page, address):
    page.goto(address + PROOFS)
    press_until(page, "details.claim-proof > summary")
    proof = page.locator("details.claim-proof:has(> summary:focus)")
    cell = proof.locator("pre").first
    expect(cell).to_be_hidden()
    page.keyboard.press("Enter")
    expect(cell).to_be_visible()
    page.keyboard.press("Tab")
    assert page.evaluate(
        "() => Boolean(document.activeElement.closest('details.claim-proof[open]'))"
    )
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    expect(cell).to_be_hidden()


def test_a_solution_opens(page):
    press_until(page, ".admonition.solution .toggle-button, .solution summary")
    solution = page.locator(".solution:has(:focus)")
    text = solution.locator("p:not(.admonition-title)").first
    expect(text).to_be_hidden()
    page.keyboard.press("Enter")
    expect(text).to_be_visible()


def test_the_menu_closes_and_downloads(page):
    press_until(page, ".dropdown-download-buttons > button")
    link = page.locator(".dropdown-download-buttons a", has_text=".ipynb")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(link).to_be_focused()
    page.keyboard.press("Escape")
    expect(link).to_be_hidden()
    expect(page.locator(".dropdown-download-buttons > button")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    with page.expect_event("popup"):  # the server's type of the file decides what comes of it
        page.keyboard.press("Enter")


def test_the_theme_is_switched(page):
    press_until(page, ".theme-switch-button")
    themes = []
    mode = page.evaluate("document.documentElement.dataset.mode")
    for _ in range(3):
        page.keyboard.press("Enter")  # the click that it makes may come after the key's answer
        changed = page.wait_for_function(
            """(before) => {
              const { mode } = document.documentElement.dataset;
              return mode !== before && mode;
            }""",
            arg=mode,
        )
        mode = changed.json_value()
        themes.append(mode)
    assert set(themes) == {"light", "dark", "auto"}
    # A key that follows a click at once goes to the button, too.
    assert page.evaluate("""() => {
      document.activeElement.click();
      return document.activeElement.matches(".theme-switch-button");
    }""")


def test_the_search_leads_there_and_back(page, address):
    press_until(page, ".search-button__button")
    page.keyboard.press("Enter")
    field = page.locator("#pst-search-dialog input[type=search]")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    assert page.evaluate("document.activeElement.matches('.search-button__button')")
    page.keyboard.press("Control+k")
    page.keyboard.type("kv cache")
    found = page.locator("#pst-search-dialog ol.book-search > li a")
    expect(found.first).to_be_visible()
    page.keyboard.press("Tab")
    expect(found.first).to_be_focused()
    page.keyboard.press("Tab")
    expect(found.nth(1)).to_be_focused()
    target = urlsplit(found.nth(1).get_attribute("href") or "").path
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(re.escape(target)))
    page.go_back()  # whose keys are the browser's, not the page's
    expect(page).to_have_url(address + CHAPTER)


def test_a_phone_opens_and_leaves_the_contents(browser, address):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(address + CHAPTER)
    press_until(page, ".primary-toggle")
    page.keyboard.press("Enter")
    current = page.locator("nav.bd-links li.current > a")
    expect(current).to_be_visible()
    press_until(page, "nav.bd-links a")
    page.keyboard.press("Escape")
    expect(current).to_be_hidden()
    assert page.evaluate("document.activeElement.matches('.primary-toggle')")
    context.close()
