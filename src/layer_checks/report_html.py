"""A report as HTML, for notebooks and pages: a table, with the statement of each check folded."""

from collections.abc import Iterable, Sequence
from html import escape

from layer_checks.running import Result

# Colors are those of the page's theme, else of JupyterLab, else made from that of the text.
_STYLE = """
.layer-report { margin: .5rem 0 1rem; overflow-x: auto; }
.layer-report table { border-collapse: collapse; font-size: .85rem; margin: 0; }
.layer-report caption { caption-side: top; font-weight: 600; padding: 0 0 .4rem; text-align: start; }
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
.layer-report summary { cursor: pointer; }
.layer-report p { font-size: .85rem; margin: .3rem 0 0; }
@media print {
  .layer-report details::details-content { content-visibility: visible; height: auto; }
}
"""


def as_html(
    headline: str, kinds: Iterable[tuple[str, Sequence[Result]]], remarks: Iterable[str]
) -> str:
    """A report as HTML.

    Args:
        headline: What counts, in one line.
        kinds: The results of each kind, with its name.
        remarks: Lines below the table.

    Returns:
        One element with its own style.
    """
    bodies = "\n".join(_body(name, results) for name, results in kinds if results)
    lines = "\n".join(f"<p>{escape(line)}</p>" for line in remarks)
    return f"""<div class="layer-report">
<style>{_STYLE}</style>
<table>
<caption>{escape(headline)}</caption>
{bodies}
</table>
{lines}
</div>"""


def _body(name: str, results: Sequence[Result]) -> str:
    rows = "\n".join(map(_row, results))
    head = f'<tr><th scope="rowgroup" colspan="3">{escape(name)}</th></tr>'
    return f"<tbody>\n{head}\n{rows}\n</tbody>"


def _row(result: Result) -> str:
    where = f" It differs {escape(result.where)}." if result.where else ""
    opened = " open" if result.word == "failed" else ""
    return (
        f'<tr><td class="{result.word}">{result.word}</td>'
        f"<td><details{opened}><summary>{escape(result.name)}</summary>"
        f"{escape(result.law)}{where}</details></td>"
        f"<td>{escape(result.text)}</td></tr>"
    )
