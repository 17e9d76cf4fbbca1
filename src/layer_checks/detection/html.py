"""A detection table as HTML, for notebooks and pages.

It needs no script, and it fits or scrolls inside its own frame, in which the names of the wrong
versions stay. The name of a check stands upright over its column, and what a name is short for
shows when it is pointed at or touched; for keyboards, screen readers and paper it also stands in
two lists below, folded.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape

from layer_checks.kit.definitions import Check, WrongVersion

_MANY = {"many": 20, "most": 36}  # names of a table with more checks than that

# Colors are those of the page's theme, else of JupyterLab, else made from that of the text.
_STYLE = """
.detection-table {
  --line: var(--pst-color-border, var(--jp-border-color2, #8886));
  --muted: var(--pst-color-text-muted, var(--jp-content-font-color2, inherit));
  --paper: var(--pst-color-background, var(--jp-layout-color0, Canvas));
  --shade: var(--pst-color-surface, var(--jp-layout-color2, #8882));
  --words: var(--pst-color-text-base, var(--jp-content-font-color0, CanvasText));
  color: var(--words);
  margin: .5rem 0 1rem;
}
.detection-table > .frame { overflow-x: auto; }
.detection-table table {
  border: 0;
  border-collapse: separate;
  border-spacing: 0;
  display: table;
  font-size: .8rem;
  line-height: 1.25;
  margin: 0;
  table-layout: auto;
  width: auto;
}
.detection-table caption {
  caption-side: top;
  color: var(--words);
  font-size: .85rem;
  padding: 0 0 .5rem;
  text-align: start;
}
.detection-table caption > span {
  box-sizing: border-box;
  display: inline-block;
  left: 0;
  max-width: min(100%, 100vw - 3rem);
  position: sticky;
}
.detection-table table tr { background: none; }
.detection-table table :is(th, td) {
  background: none;
  border: 0;
  border-bottom: 1px solid var(--line);
  color: var(--words);
  font-weight: 400;
  min-width: 1.45rem;
  padding: .1rem;
  text-align: center;
  vertical-align: middle;
  white-space: nowrap;
}
.detection-table col.weak { background: var(--shade); }
.detection-table thead th { cursor: help; vertical-align: bottom; }
.detection-table thead th::before {
  content: attr(data-name);
  display: block;
  margin: 0 auto .3rem;
  text-align: start;
  transform: rotate(180deg);
  writing-mode: vertical-rl;
}
.detection-table table :is(th:first-child, td:first-child) {
  background: var(--paper);
  border-right: 1px solid var(--line);
  left: 0;
  padding-right: .5rem;
  position: sticky;
  text-align: start;
  z-index: 1;
}
.detection-table tbody th { cursor: help; }
.detection-table table tbody td { color: var(--muted); }
.detection-table tbody td b { color: var(--words); }
.detection-table tfoot :is(th, td) { border-bottom: 0; font-variant-numeric: tabular-nums; }
.detection-table th[data-says]:is(:hover, :focus) { text-decoration: underline dotted; z-index: 3; }
.detection-table th[data-says]:is(:hover, :focus)::after {
  background: var(--paper);
  border: 1px solid var(--line);
  border-radius: .3rem;
  bottom: .75rem;
  box-shadow: 0 .2rem .6rem #0004;
  box-sizing: border-box;
  color: var(--words);
  content: attr(data-says);
  font-size: .9rem;
  left: 50%;
  max-width: 36rem;
  padding: .5rem .75rem;
  pointer-events: none;
  position: fixed;
  text-align: start;
  transform: translateX(-50%);
  white-space: normal;
  width: calc(100vw - 1.5rem);
  z-index: 1100;
}
.detection-table details { font-size: .85rem; margin: .4rem 0 0; }
.detection-table summary { color: var(--muted); cursor: pointer; width: fit-content; }
.detection-table details ul { list-style: none; margin: .4rem 0; padding: 0; }
.detection-table details li {
  margin: 0 0 .2rem;
  overflow-wrap: anywhere;
  padding-left: 1.6rem;
  text-indent: -1.6rem;
}
@media print, (width > 600px) {
  .detection-table.many table :is(th, td) {
    font-size: .72rem;
    min-width: .85rem;
    padding-inline: 0;
  }
  .detection-table.most table :is(th, td) {
    font-size: .66rem;
    line-height: 1;
    min-width: .5rem;
    white-space: normal;
    word-break: break-all;
  }
  .detection-table.most thead th::before { white-space: nowrap; }
  .detection-table.most table :is(th:first-child, td:first-child) {
    font-size: .72rem;
    line-height: 1.2;
    max-width: 9rem;
    min-width: 9rem;
    word-break: normal;
  }
}
@media (max-width: 600px) {
  .detection-table table { font-size: .75rem; }
  .detection-table table :is(th, td) { min-width: 1.5rem; padding: .2rem .05rem; }
  .detection-table table :is(th:first-child, td:first-child) {
    max-width: 7.25rem;
    min-width: 7.25rem;
    padding-right: .3rem;
    white-space: normal;
  }
}
@media print {
  .detection-table table { font-size: .68rem; }
  .detection-table table :is(th, td) { min-width: 1.15rem; }
  .detection-table > .frame { overflow: visible; }
  .detection-table :is(table, tr) { break-inside: avoid; }
  .detection-table details::details-content { content-visibility: visible; height: auto; }
}
"""


def as_html(
    layer_name: str,
    checks: Sequence[Check],
    wrong_versions: Sequence[WrongVersion],
    caught: Sequence[Sequence[bool]],
    summary: str,
) -> str:
    """A detection table as HTML.

    Args:
        layer_name: The layer.
        checks: The columns.
        wrong_versions: The rows.
        caught: For each row, for each column, whether the check fails for the wrong version.
        summary: What the table shows, in one sentence.

    Returns:
        One element with its own style.
    """
    name = f"<code>{escape(layer_name)}</code>"
    head = "".join(_column_head(number, each) for number, each in enumerate(checks, start=1))
    rows = "\n".join(
        f"<tr>{_row_head(version)}{_marks(row)}</tr>"
        for version, row in zip(wrong_versions, caught, strict=True)
    )
    totals = "".join(f"<td>{sum(column)}</td>" for column in zip(*caught, strict=True))
    columns = "".join('<col class="weak">' if each.weak else "<col>" for each in checks)
    # As a page's column has room for; with the most, numbers stand a digit above the other. On a
    # phone, where tables scroll, columns are as wide as a finger needs.
    many = "".join(f" {name}" for name, least in _MANY.items() if len(checks) > least)
    return f"""<div class="detection-table{many}">
<style>{" ".join(_STYLE.split())}</style>
<div class="frame" role="group" tabindex="0" aria-label="Wrong versions of {escape(layer_name)}">
<table>
<caption><span>Which check notices which wrong version of {name}: x where it does.
{escape(summary)}</span></caption>
<colgroup><col>{columns}</colgroup>
<thead><tr><td></td>{head}</tr></thead>
<tbody>
{rows}
</tbody>
<tfoot><tr><th scope="row">caught, of {len(wrong_versions)}</th>{totals}</tr></tfoot>
</table>
</div>
{_fold("What each check states", map(_check_in_words, range(1, len(checks) + 1), checks))}
{_fold("How each wrong version is put right", map(_version_in_words, wrong_versions))}
</div>"""


def _column_head(number: int, check: Check) -> str:
    """The number of a check; its name stands over it, and what it states shows on demand."""
    name = escape(check.name + (" (weak)" if check.weak else ""))
    says = f"{number} {name}: {_without_code(check.law)}"
    return (
        f'<th scope="col" tabindex="-1" aria-label="{number} {name}"'
        f' data-name="{name}" data-says="{says}">{number}</th>'
    )


def _row_head(version: WrongVersion) -> str:
    name = escape(version.name)
    says = f"{name}: {_without_code(version.advice)}"
    return f'<th scope="row" tabindex="-1" data-says="{says}">{name}</th>'


def _marks(row: Sequence[bool]) -> str:
    """The cells of a wrong version; there are thousands in a book, so they are short."""
    return "".join("<td><b>x</b></td>" if caught else "<td>.</td>" for caught in row)


def _fold(title: str, items: Iterable[str]) -> str:
    listed = "\n".join(f"<li>{item}</li>" for item in items)
    return f"<details><summary>{title}</summary><ul>\n{listed}\n</ul></details>"


def _check_in_words(number: int, check: Check) -> str:
    weak = " (weak)" if check.weak else ""
    return f"{number} <b>{escape(check.name)}</b>{weak}: {_with_code(check.law)}"


def _version_in_words(version: WrongVersion) -> str:
    published = f" Published in {version.published}." if version.published else ""
    return f"<b>{escape(version.name)}</b>: {_with_code(version.advice)}{escape(published)}"


def _with_code(text: str) -> str:
    """HTML of a sentence in which code stands between backticks."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _without_code(text: str) -> str:
    """The same where HTML has room for plain text only."""
    return escape(text.replace("`", ""))
