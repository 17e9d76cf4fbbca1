"""A report as HTML, for notebooks and pages: what holds, and what to look at, is folded."""

from collections.abc import Iterable, Sequence
from html import escape

from layer_checks.diagnosis.running import Result

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
    broken = [(name, [each for each in results if not each.held]) for name, results in kinds]
    held = [(name, [each for each in results if each.held]) for name, results in kinds]
    lines = "\n".join(f"<p>{escape(line)}</p>" for line in remarks)
    return f"""<div class="layer-report">
<style>{_STYLE}</style>
<table>
<caption>{escape(headline)}</caption>
{_bodies(broken)}
</table>
{_held(held)}
{_fold([result for _, results in broken for result in results])}
{lines}
</div>"""


def _bodies(kinds: Sequence[tuple[str, Sequence[Result]]]) -> str:
    return "\n".join(_body(name, results) for name, results in kinds if results)


def _body(name: str, results: Sequence[Result]) -> str:
    head = f'<tr><th scope="rowgroup" colspan="2">{escape(name)}</th></tr>\n'
    rows = "\n".join(map(_row, results))
    return f"<tbody>\n{head}{rows}\n</tbody>"


def _held(kinds: Sequence[tuple[str, Sequence[Result]]]) -> str:
    """The checks that hold, of every kind."""
    count = sum(len(results) for _, results in kinds)
    if not count:
        return ""
    said = "1 check holds" if count == 1 else f"{count} checks hold"
    return f"<details><summary>{said}</summary><table>\n{_bodies(kinds)}\n</table></details>"


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
