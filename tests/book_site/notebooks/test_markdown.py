"""The Markdown of a page, element by element, as JupyterLab needs it."""

import pytest

from book_site.notebooks.markdown import CodeCell, parts

CELL = '<div class="cell docutils container"><pre>code</pre></div>'
CLAIM = (
    '<div class="claim" id="claim-a3"><div class="claim-head"><p><span>holds if</span> '
    '<a href="#claim-a3">A3</a> <span>GPT-2 notes</span></p></div>'
    "<div><p>It is.</p><p>If so.</p></div></div>"
    f'<details class="claim-proof"><summary>proof</summary><p>Since.</p>{CELL}</details>'
)
SOLUTION = (
    '<div class="solution dropdown admonition"><p class="admonition-title">A &lt; B</p>'
    "<p>a</p>{}<p>b</p></div>"
)


def markdown(body, url=""):
    (text,) = parts(body, url=url)
    return text


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("2 * 3 and ~x", r"2 \* 3 and \~x"),
        ("d_model _private __init__ end_", r"d_model \_private \_\_init\_\_ end\_"),
        ("5$ or\n6$", r"5<span>\$</span> or 6<span>\$</span>"),
        ("x &lt; y, x &lt;b> &amp; &amp;amp;", "x < y, x &lt;b> & &amp;amp;"),
        ("1. no list", r"1\. no list"),
        ('<code class="literal"><span>a`</span> <span>_b</span></code>', "`` a` _b ``"),
        ('<span class="math">\\(x_1 &lt; y\\)</span>', "$x_1 < y$"),
        ('<a href="https://a.org">https://a.org</a>', "<https://a.org>"),
    ],
)
def test_text(body, expected):
    assert markdown(f"<p>{body}</p>") == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            '<div class="math"><span class="eqno">(3)<a class="headerlink" href="#a">#</a></span>'
            "\\[y\n=\n\\frac x2\\]</div>",
            "$$\ny\n=\n\\frac x2 \\tag{3}\n$$",
        ),
        (
            '<div class="admonition"><p class="admonition-title">Note</p>'
            '<div class="math">\\[a +\nb\\]</div></div>',
            "> **Note**\n>\n> $$ a + b $$",
        ),
        (
            "<table><tr><th>a|b</th></tr><tr><td><span class='math'>\\(|x|\\)</span></td></tr>"
            "<tr><td><code>c|d</code></td></tr></table>",
            "| a\\|b |\n| --- |\n| $\\vert{}x\\vert{}$ |\n| `c\\|d` |",
        ),
        (
            SOLUTION.format(""),
            "<details><summary>A &lt; B</summary>\n\na\n\nb\n\n</details>",
        ),
    ],
)
def test_blocks(body, expected):
    assert markdown(body) == expected


def test_citations_lead_to_the_list_where_the_site_has_no_address():
    cited = '<p><span class="bibtex-citation">[<a href="w.html#a" title="Ba. URL: https://b.org/1_2.">2016</a>]'
    text, works = parts(cited)
    assert text == "[[2016](#References)]"
    assert works == "## References\n\n- Ba. URL: <https://b.org/1_2>."
    assert next(parts(cited, url="https://a.org/")) == "[[2016](https://a.org/w.html#a)]"


def test_a_heading_begins_a_cell_and_code_stands_in_its_place():
    figure = CELL.replace("</div>", "<figure><figcaption><p>Seen.</p></figcaption></figure></div>")
    body = f"<h1>A</h1><p>b</p>{figure}<p>c</p><h2>D</h2>{CELL}"
    assert list(parts(body, [1, 4])) == [
        *["# A\n\nb", CodeCell(1), "Seen.\n\nc", "## D", CodeCell(4)],
    ]


def test_a_claim_is_a_quotation_and_its_proof_is_open():
    quotation = "> **Claim A3 (GPT-2 notes): holds if.** It is.\n>\n> If so.\n\nSince."
    assert list(parts(CLAIM, [0])) == [quotation, CodeCell(0)]


def test_a_fold_with_code_folds_the_prose_around_it():
    prose = "<details><summary>A &lt; B</summary>\n\n{}\n\n</details>".format
    found = list(parts(SOLUTION.format(CELL), [2]))
    assert found == [prose("a"), CodeCell(2, folded=True), prose("b")]
