"""Mends what themes and extensions write that screen readers stumble on.

Each entry of `MENDED` is one thing: what is written, and what takes its place.
"""

import re
from collections import Counter

MENDED = (
    # Docutils: entries of a bibliography have a role that is deprecated, and fits no list.
    (re.compile(r' role="doc-biblioentry"'), ""),
    (re.compile(r'<div role="list" class="citation-list">'), '<div class="citation-list">'),
    # The theme: what stands in its first sidebar is in no region.
    (
        re.compile(r'(<div id="pst-primary-sidebar")(?! role)'),
        r'\1 role="complementary" aria-label="Book"',
    ),
    # The theme: a title and a table of contents for print, which the style of print leaves out.
    (
        re.compile(
            r'<div id="jb-print-docs-body".*?</div>\s*</div>\s*</div>'
            r'(?=\s*(?:<[^>]*id="searchbox"|<article))',
            re.DOTALL,
        ),
        "",
    ),
    # The theme: what opens a line of the first sidebar has no name.
    (
        re.compile(r'<summary>(?=<span class="toctree-toggle")'),
        '<summary aria-label="Pages of this line">',
    ),
    # A cell without text heads nothing.
    (re.compile(r"<th\b[^>]*>\s*(?:<p>\s*</p>\s*)?</th>"), "<td></td>"),
)
_SUMMARY = re.compile(r"<summary>.*?</summary>", re.DOTALL)
_LINK = re.compile(r"<a\b[^>]*>(.*?)</a>", re.DOTALL)
_ID = re.compile(r'(<[a-z][^<>]*?) id="([^"]+)"')


# The theme takes the focus from buttons that are clicked. Who clicks by keyboard needs it there,
# and where a dialog is closed. It comes back within the click: a key pressed after it would else
# go to no button.
KEEPS_FOCUS = """\
(() => {
  let last;
  const back = () => { if (document.activeElement === document.body) last?.focus(); };
  addEventListener("click", (event) => {
    last = event.detail ? null : document.activeElement.closest("button");
  }, true);
  addEventListener("click", back);
  document.addEventListener("close", () => setTimeout(back), true);
})();"""


def mend(page: str) -> str:
    """A page without what screen readers stumble on.

    Examples:
        >>> mend('<th class="head"></th>')
        '<td></td>'
        >>> mend('<summary>to <a href="#b">b</a></summary>')
        '<summary>to b</summary>'
        >>> mend('<summary><span class="toctree-toggle"></span></summary>')
        '<summary aria-label="Pages of this line"><span class="toctree-toggle"></span></summary>'
    """
    for written, instead in MENDED:
        page = written.sub(instead, page)
    # What opens a fold is clicked itself, so that a link in it cannot be.
    page = _SUMMARY.sub(lambda summary: _LINK.sub(r"\1", summary[0]), page)
    return single_ids(page)


def single_ids(page: str) -> str:
    """A page in which the first of several elements with one id has it.

    Examples:
        >>> single_ids('<b id="a"></b><i class="c" id="a"></i>')
        '<b id="a"></b><i class="c"></i>'
    """
    seen: Counter[str] = Counter()

    def once(match: re.Match[str]) -> str:
        seen[match[2]] += 1
        return match[0] if seen[match[2]] == 1 else match[1]

    return _ID.sub(once, page)
