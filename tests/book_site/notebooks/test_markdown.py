"""The Markdown of a page, element by element, as JupyterLab needs it."""

import pytest
from docutils import nodes
from docutils.core import publish_doctree
from sphinx import addnodes

from book_site.notebooks.markdown import flow
from book_site.notebooks.markdown_inline import Page


def markdown(rst: str, page: Page | None = None) -> str:
    """The Markdown of a text that docutils understands without Sphinx."""
    settings = {"report_level": 5, "smart_quotes": False, "doctitle_xform": False}
    doctree = publish_doctree(rst, settings_overrides=settings)
    return "\n\n".join(flow(doctree.children, page or Page()))


def code_cell(caption: str = "") -> nodes.container:
    cell = nodes.container(nb_element="cell_code", cell_index=0)
    if caption:
        cell += nodes.figure("", nodes.caption("", caption), ids=["fig-a"])
    return cell


@pytest.mark.parametrize(
    ("rst", "expected"),
    [
        ("*a* **b** ``c`` :sub:`d` :sup:`e`", "*a* **b** `c` <sub>d</sub> <sup>e</sup>"),
        ("``a`b``", "`` a`b ``"),
        ("one\ntwo", "one two"),
        (":math:`x_1`", "$x_1$"),
        ("`text <https://a.org/b>`__", "[text](https://a.org/b)"),
        ("`text <https://a.org/b_(c)>`__", "[text](<https://a.org/b_(c)>)"),
        ("https://a.org", "<https://a.org>"),
        (".. comment\n\nafter", "after"),
        ("| a\n| b", "a\\\nb"),
        (".. rubric:: Title", "**Title**"),
        ("a\n\n----\n\nb", "a\n\n---\n\nb"),
        (".. raw:: html\n\n   <b>x</b>\n", "<b>x</b>"),
        (".. raw:: latex\n\n   \\x\n", ""),
        ("a [1]_\n\n.. [1] The note.", "a <sup>1</sup>\n\n<sup>1</sup> The note."),
    ],
)
def test_text(rst, expected):
    assert markdown(rst) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 * 3 and ~x", r"2 \* 3 and \~x"),
        ("d_model", "d_model"),
        ("_private __init__ end_", r"\_private \_\_init\_\_ end\_"),
        ("a `tick", r"a \`tick"),
        (r"C:\path", r"C:\\path"),
        ("5$ or 6$", r"5<span>\$</span> or 6<span>\$</span>"),
        ("x < y, x <b> & &amp;", "x < y, x &lt;b> & &amp;amp;"),
        ("[a](b)", r"[a\](b)"),
        ("1. no list", r"1\. no list"),
        ("- no list", r"\- no list"),
        ("# no heading", r"\# no heading"),
        ("> no quotation", r"\> no quotation"),
        ("-1 is a number", "-1 is a number"),
    ],
)
def test_text_that_markdown_would_take_for_markup(text, expected):
    assert list(flow([nodes.paragraph("", text)], Page())) == [expected]


@pytest.mark.parametrize(
    ("rst", "expected"),
    [
        (".. math:: y = x", "$$\ny = x\n$$"),
        (
            ".. math::\n\n   a &= b \\\\\n   c &= d",
            "$$\n\\begin{split}a &= b \\\\\nc &= d\\end{split}\n$$",
        ),
        (
            ".. note::\n\n   .. math::\n\n      a +\n      b",
            "> **Note**\n>\n> $$ a + b $$",
        ),
    ],
)
def test_display_maths(rst, expected):
    assert markdown(rst) == expected


def test_parted_numbered_and_bare_maths():
    parted = nodes.math_block("", "a\n\nb")
    numbered = nodes.math_block("y = x", "y = x", label="eq", number=3)
    bare = nodes.math_block("", "\\begin{align}x\\end{align}", nowrap=True)
    assert list(flow([parted, numbered, bare], Page())) == [
        "$$\n\\begin{aligned}\na \\\\\nb\n\\end{aligned}\n$$",
        "$$\ny = x \\tag{3}\n$$",
        "\\begin{align}x\\end{align}",
    ]


@pytest.mark.parametrize(
    ("rst", "expected"),
    [
        ("- a\n- b\n\n  - c", "- a\n- b\n  - c"),
        ("3. a\n4. b\n\n   more", "3. a\n\n4. b\n\n   more"),
        ("term\n   Its meaning.", "- **term**\n\n  Its meaning."),
        (":name: A value.", "- **name:** A value."),
        ("a\n\n   quoted\n\n   -- author", "a\n\n> quoted\n>\n> — author"),
        ("::\n\n   a\n   ```\n", "````\na\n```\n````"),
        (">>> 1\n1", "```python\n>>> 1\n1\n```"),
        (".. tip::\n\n   Do.", "> **Tip**\n>\n> Do."),
        (".. admonition:: Own *title*\n\n   Text.", "> **Own *title***\n>\n> Text."),
        (
            ".. admonition:: A < B\n   :class: dropdown\n\n   Text.",
            "<details><summary>A &lt; B</summary>\n\nText.\n\n</details>",
        ),
        (
            "=== ===\na   b\n=== ===\n1   2\n=== ===",
            "| a | b |\n| --- | --- |\n| 1 | 2 |",
        ),
        ("=== ===\n1   2\n=== ===", "|  |  |\n| --- | --- |\n| 1 | 2 |"),
        (
            ".. list-table::\n\n   * - ``a|b``\n     - :math:`|x| + \\|y\\|`\n"
            "   * - c|d\n     - e\n\n       f",
            "|  |  |\n| --- | --- |\n"
            r"| `a\|b` | $\vert{}x\vert{} + \Vert{}y\Vert{}$ |"
            "\n" + r"| c\|d | e<br>f |",
        ),
    ],
)
def test_blocks(rst, expected):
    assert markdown(rst) == expected


def test_headings_follow_the_sections():
    assert markdown("A\n=\n\nB\n-\n\ntext\n\nC\n=") == "# A\n\n## B\n\ntext\n\n# C"


def test_source_has_the_language_of_its_cells():
    block = nodes.literal_block("x", "x", language="ipython3")
    assert list(flow([block], Page())) == ["```python\nx\n```"]


def test_captions_have_their_numbers():
    figure = nodes.figure("", nodes.image(uri="a.png", alt="a curve"), ids=["fig-a"])
    figure += nodes.caption("", "What it shows.")
    page = Page(labels={"fig-a": "Fig. 2"})
    assert list(flow([figure], page)) == ["*[a curve]*", "**Fig. 2:** What it shows."]
    page = Page(labels={"fig-a": "Figure 2."})
    assert list(flow([figure], page)) == ["*[a curve]*", "**Figure 2.** What it shows."]


def test_links_within_the_site_need_its_address():
    paragraph = nodes.paragraph(
        "", "", nodes.reference("", "there", refuri="../b.html#c"), nodes.Text(", ")
    )
    paragraph += nodes.reference("", "here", refid="d")
    assert list(flow([paragraph], Page())) == ["there, here"]
    page = Page(url="https://a.org/x/y.html")
    links = "[there](https://a.org/b.html#c), [here](https://a.org/x/y.html#d)"
    assert list(flow([paragraph], page)) == [links]


def test_citations_lead_to_the_list_where_the_site_has_no_address():
    citation = nodes.inline("", "[", classes=["bibtex-citation"])
    citation += [nodes.reference("", "2016", refuri="works.html#a"), nodes.Text("]")]
    paragraph = nodes.paragraph("", "", citation)
    assert list(flow([paragraph], Page())) == ["[[2016](#References)]"]
    page = Page(url="https://a.org/b.html")
    assert list(flow([paragraph], page)) == ["[[2016](https://a.org/works.html#a)]"]


def test_cells_stand_in_their_places():
    cell = code_cell(caption="What it drew.")
    section = nodes.section("", nodes.title("", "A"), nodes.paragraph("", "b"), cell)
    page = Page(labels={"fig-a": "Fig. 1"})
    assert list(flow([section], page)) == ["# A", "b", cell, "**Fig. 1:** What it drew."]


def test_an_admonition_with_cells_is_not_quoted():
    cell = code_cell()
    admonition = nodes.admonition("", nodes.title("", "A"), nodes.paragraph("", "b"), cell)
    assert list(flow([admonition], Page())) == ["**A**", "b", cell]
    untitled = nodes.sidebar("", nodes.paragraph("", "b"), cell)
    assert list(flow([untitled], Page())) == ["b", cell]
    admonition["classes"].append("dropdown")
    folded = "<details><summary>A</summary>\n\nb\n\n</details>"
    assert list(flow([admonition], Page())) == [folded, cell]


def test_a_claim_is_one_quotation():
    head = nodes.paragraph("", "", nodes.inline("", "holds if"))
    head += [nodes.reference("", "A3", refid="claim-a3"), nodes.inline("", "GPT-2 notes")]
    box = nodes.container("", nodes.container("", head), classes=["claim"])
    box += nodes.container("", nodes.paragraph("", "It is."), nodes.paragraph("", "If so."))
    box += nodes.container("", nodes.paragraph("", "holds: 1"))
    assert list(flow([box], Page())) == [
        "> **Claim A3 (GPT-2 notes): holds if.** It is.\n>\n> If so.\n>\n> holds: 1"
    ]


def test_a_signature_is_code_and_a_table_of_contents_is_left_out():
    signature = addnodes.desc_signature("", "f(x)")
    contents = nodes.compound("", nodes.paragraph("", "x"), classes=["toctree-wrapper"])
    assert list(flow([signature, contents], Page())) == ["`f(x)`"]
