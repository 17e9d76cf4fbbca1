"""Symbols within TeX, and variables within Python and the markup that shows it."""

import re

import pytest
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from book_site.symbols import source, tex
from book_site.symbols.pages import tied


def classes(written: str) -> list[tuple[str, str]]:
    """What is in each innermost group that has a class, with its number."""
    found = re.findall(r"\\htmlClass\{symbol symbol-(\d)\}\{((?:[^{}]|\{[^{}]*\})*)\}\}", written)
    return [(number, inside) for number, inside in found]


@pytest.mark.parametrize(
    ("equation", "symbols", "expected"),
    [
        ("x_{i,j}^2 + x", ["x"], [("0", "x_{i,j}^2"), ("0", "x")]),
        ("x_i + x", ["x", "x_i"], [("1", "x_i"), ("0", "x")]),  # the longest first
        (r"y' x^\top_i", ["y", "x"], [("0", "y'"), ("1", r"x^\top_i")]),
        (
            r"\mathrm{LN}(L) \\[1ex] \text{at} x",
            [r"\mathrm{LN}", "e", "a"],
            [("0", r"\mathrm{LN}")],
        ),
    ],
)
def test_symbols_are_marked_with_their_indices(equation, symbols, expected):
    written = tex.marked(equation, symbols)
    assert classes(written) == expected
    for number in range(len(symbols)):  # nothing else has changed
        written = written.replace(rf"{{\htmlClass{{symbol symbol-{number}}}", "(mark)")
    plain = written.replace("(mark)", "").replace("{", "").replace("}", "")
    assert plain == equation.replace("{", "").replace("}", "")


CODE = """\
y = self.weight * x  # of x
if self.bias is not None:
    y = y + self.bias
name = f"{x} and 'x'"
return y.to(x.dtype)
"""


@pytest.mark.parametrize(
    ("variable", "lines"),
    [
        ("x", [1, 5]),  # neither in the comment nor in the string
        ("y", [1, 3, 3, 5]),
        ("return", [5]),
        ("weight", []),  # an attribute of something
    ],
)
def test_places_of_variables(variable, lines):
    found = source.places(CODE, variable)
    assert [CODE.count("\n", 0, start) + 1 for start, _ in found] == lines
    assert {CODE[start:end] for start, end in found} <= {variable}


def test_markup_shows_what_it_showed_with_variables_in_spans():
    markup = highlight(CODE, PythonLexer(), HtmlFormatter(nowrap=True))
    names = [("x", 0), ("y.to", 1), ("y", 2), ("self.bias", 3), ("return", 4)]
    marked = source.marked(markup, names)
    assert re.sub(r"<[^>]+>", "", marked) == re.sub(r"<[^>]+>", "", markup)
    assert marked.count("<span") == marked.count("</span>")
    short = re.sub(r' class="(?:symbol )?(?:symbol-)?', " ", marked)
    assert '<span 1"><span 2"><span n">y</span></span><span o">.</span>' in short
    dotted = '<span 3"><span bp">self</span><span o">.</span><span n">bias</span></span>'
    assert short.count(dotted) == 2


def test_the_tex_that_readers_copy_stays():
    markup = '<div class="math notranslate nohighlight" id="a">\n\\[x &lt; 1\\]</div><pre>x</pre>'
    assert tied(markup, [(4, "x", ["x"])]) == (
        '<div class="math notranslate nohighlight" '
        r'data-tex="\[{\htmlClass{symbol symbol-4}{x}} &lt; 1\]" id="a">'
        '\n\\[x &lt; 1\\]</div><pre><span class="symbol symbol-4">x</span></pre>'
    )
