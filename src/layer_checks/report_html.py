"""A report as HTML, for notebooks and pages: a table, with what to look at folded."""

from collections.abc import Iterable, Sequence
from html import escape

from layer_checks.running import Result

# Colors are those of the page's theme, else of JupyterLab, else made from that of the text.
_STYLE = """
.layer-report { margin: .5rem 0 1rem; overflow-x: auto; }
.layer-report table { border-collapse: collapse; font-size: .85rem; margin: 0; }
.layer-report caption {
  caption-side: top;
  font-weight: 600;
  padding: 0 0 .4rem;
  text-align: start;
}
.layer-report :is(th, td) {
  background: none;
  border-bottom: 1px solid var(--pst-color-border, var(--jp-border-color2, #8886));
  padding: .15rem .6rem .15rem 0;
  text-align: start;
  vertical-align: top;
}
.layer-report thead th { font-weight: 400; }
.layer-report tbody th { font-weight: 600; }
.layer-report .failed { font-weight: 700; }
.layer-report :is(details, p) { font-size: .85rem; margin: .3rem 0 0; }
@media print {
  .layer-report details::details-content { content-visibility: visible; height: auto; }
}
"""


def as_html(
    headline: str, kinds: Sequence[tuple[str, Sequence[Result]]], remarks: Iterable[str]
) -> str:
    """A report as HTML.

    Args:
        headline: What counts, in one line.
        kinds: The results of each kind, with its name.
        remarks: Lines below the table.

    Returns:
        One element with its own style.
    """
    shown = [(name, results) for name, results in kinds if results]
    bodies = "\n".join(_body(name if len(shown) > 1 else "", results) for name, results in shown)
    lines = "\n".join(f"<p>{escape(line)}</p>" for line in remarks)
    return f"""<div class="layer-report">
<style>{_STYLE}</style>
<table>
<caption>{escape(headline)}</caption>
{bodies}
</table>
{_fold([result for _, results in shown for result in results if not result.held])}
{lines}
</div>"""


def _body(name: str, results: Sequence[Result]) -> str:
    head = f'<tr><th scope="rowgroup" colspan="2">{escape(name)}</th></tr>\n' if name else ""
    rows = "\n".join(map(_row, results))
    return f"<tbody>\n{head}{rows}\n</tbody>"


def _row(result: Result) -> str:
    """A result; what a check states that holds shows when it is pointed at."""
    return (
        f'<tr title="{escape(result.law)}"><td class="{result.word}">{result.word}</td>'
        f"<td>{escape(result.name)}: {escape(result.text)}</td></tr>"
    )


def _fold(failed: Sequence[Result]) -> str:
    """What to look at for each check that does not hold: its law, and where it differs."""
    if not failed:
        return ""
    items = "\n".join(
        f"<li>{escape(result.name)}: {escape(result.law)}"
        f"{escape(f' It differs {result.where}.' if result.where else '')}</li>"
        for result in failed
    )
    return f"<details><summary>What to look at</summary><ul>\n{items}\n</ul></details>"
