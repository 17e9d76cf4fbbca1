"""A report as HTML, for notebooks and pages: what holds, and what to look at, is folded."""

from collections.abc import Iterable, Sequence
from html import escape

from layer_checks.diagnosis.running import Result, in_one_line

# Colors are those of the page's theme, else of JupyterLab, else made from that of the text.
_STYLE = """
.layer-report { margin: .5rem 0 1rem; overflow-x: auto; }
.layer-report table { border-collapse: collapse; font-size: .85rem; margin: 0; }
.layer-report .headline { font-size: 1rem; font-weight: 600; margin: 0; }
.layer-report pre { font-size: .8rem; margin: .3rem 0; overflow-x: auto; padding: .3rem .5rem; }
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
    headline: str,
    kinds: Sequence[tuple[str, Sequence[Result]]],
    first: Iterable[str],
    remarks: Iterable[str],
    paste: str = "",
) -> str:
    """A report as HTML: the headline, what counts first, what fails, and folded what holds.

    Args:
        headline: What counts, in one line.
        kinds: The results of each kind, with its name.
        first: Lines above the table.
        remarks: Lines below the table.
        paste: Code below the lines above the table.

    Returns:
        One element with its own style.
    """
    broken = [(name, [each for each in results if not each.held]) for name, results in kinds]
    held = [(name, [each for each in results if each.held]) for name, results in kinds]
    code = f"<pre>{escape(paste)}</pre>" if paste else ""
    return f"""<div class="layer-report">
<style>{_STYLE}</style>
<p class="headline">{escape(headline)}</p>
{_paragraphs(first)}
{code}
<table>
{_bodies([(name, in_one_line(results)) for name, results in broken])}
</table>
{_fold([result for _, results in broken for result in results])}
{_held(held)}
{_paragraphs(remarks)}
</div>"""


def _paragraphs(lines: Iterable[str]) -> str:
    return "\n".join(f"<p>{escape(line)}</p>" for line in lines)


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
    more = "print(report.all) has three lines to paste for each of them."
    return f"<details><summary>What to look at</summary><ul>\n{items}\n</ul><p>{more}</p></details>"
