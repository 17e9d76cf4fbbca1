"""What an author wrote and still agrees stays; changed lines are taken anew."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verified_book.accepting.merge import joined, merge
from verified_book.matching import agree, escape, is_vacuous

CASES = {
    "an ellipsis in a line": ("at ... now\ny 1", "at 12:30 now\ny 2", "at ... now\ny 2"),
    "lines for an ellipsis": ("a\n...\nb\nold", "a\n1\n2\nb\nnew", "a\n...\nb\nnew"),
    "an ellipsis before what changed a little": (
        "loss 1\n...\ndone 1",
        "loss 2\nstep\ndone 2\nbye",
        "loss 2\n...\ndone 2\nbye",
    ),
    "an ellipsis over several lines": (
        "tensor([[1., ...\n 9.]])\nold",
        "tensor([[1., 2.],\n [3., 4.],\n 9.]])\nnew",
        "tensor([[1., ...\n 9.]])\nnew",
    ),
    "a line more": ("x 0.3\ny 0.5", "x 0.31\nz 1\ny 0.52", "x 0.3\nz 1\ny 0.5"),
    "an ellipsis for all": ("...\n...", "a\nb", "a\nb"),
}


@pytest.mark.parametrize(("old", "got", "merged"), CASES.values(), ids=CASES)
def test_lines_are_merged(old: str, got: str, merged: str):
    assert joined(merge(old, got, got), old) == merged


words = st.sampled_from(["a", "b", "0.25", "1.5", "", "c d", "x ="])
texts = st.lists(words, min_size=1, max_size=6).map("\n".join).map(str.strip).filter(bool)
patterns = st.lists(
    words | st.sampled_from(["...", "a ...", "... d", "0.2", "2."]), min_size=1, max_size=6
).map("\n".join)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(patterns, texts)
def test_what_is_merged_agrees_and_stays(old: str, got: str):
    once = joined(merge(old, escape(got), got), old)
    assert agree(once, got)
    assert not is_vacuous(once)
    assert joined(merge(once, escape(got), got), once) == once
