"""The words that HTML shows, and the rows of its tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verified_book.outputs.visible_html import visible_text


def table(*rows: str) -> str:
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<b>a</b><i>b</i> c", "ab c"),
        ("<p>a<p>b</p>c", "a\nb\nc"),
        ("<pre>a\n  b\n</pre>c", "a\nb\nc"),
        ("&amp; &lt;b&gt; &#955; &#x3bb; &nbsp;x", "& <b> λ λ x"),
        ("<svg><text>no</text></svg><math><mi>no</mi></math>a", "a"),
        ("<p hidden>no</p><p style='color: red; Display : none'>no <b>no</b></p>a", "a"),
    ],
)
def test_words_without_a_table(html, text):
    assert visible_text(html) == (text, False)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (table("<td>1</td><td>2</td>", "<td>30</td><td>4</td>"), "1   2\n30  4"),
        (table("<td>1</td>", "", "<td></td><td></td>", "<td>2</td>"), "1\n2"),
    ],
)
def test_a_row_is_a_line(html, text):
    assert visible_text(html) == (text, True)


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        ("<table><tr><td>x<td>y</table>", "a  x y  b"),
        (table("<td colspan=3>x</td>", f"<td>{table('<td>y</td>')}</td>"), "a  x y  b"),
    ],
)
def test_a_table_within_a_cell_is_part_of_its_text(inner, text):
    assert visible_text(table(f"<td>a</td><td>{inner}</td><td>b</td>")) == (text, True)


PARTS = [
    *["<", "</", ">", "<!", "<![", "<?", "--", "]]>", "&", "&#x41;", "=", '"', "'", "\n", " "],
    *["<table>", "</table>", "<tr>", "</tr>", "<td>", "</td>", "<th", " colspan=2", " rowspan=3"],
    *["<pre>", "</pre>", "<script>", "<p hidden>", "CDATA[", "DOCTYPE", "\x00", "\ud800", "é", "a"],
]


@given(st.lists(st.sampled_from(PARTS), max_size=20).map("".join))
def test_no_html_ends_a_build(html):
    text, _ = visible_text(html)
    assert text == "\n".join(line.rstrip() for line in text.split("\n"))
    assert "\n\n" not in text
