"""The edits of a page after its second run."""

from types import SimpleNamespace
from typing import Any

import pytest

from verified_book.accepting import reruns
from verified_book.outputs.rendered import Piece
from verified_book.records import Edit, Failure

APP: Any = SimpleNamespace(env=SimpleNamespace(docname="page"), srcdir="/books/mine")
IMAGE = "image/png 4 x 3"
DIGESTS = ["0" * 64, f"{'0' * 63}1", "f" * 64]


def edit(new: str, words: tuple[str, ...] = (), cell: int = 3) -> Edit:
    mends = Failure("page", 1, "differs", "mend it", cell)
    return Edit("page", 1, cell, 1, "code", None, new, new, words, mends)


def after(monkeypatch: pytest.MonkeyPatch, asked: Edit, *pieces: Piece) -> str:
    """What an edit writes if the second run shows some outputs."""
    cell: Any = SimpleNamespace(index=3, shown=list(pieces))
    monkeypatch.setattr(reruns, "second_run", lambda app, cells: [cell])
    (masked,) = reruns.masked(APP, [], [asked])
    return masked.new


@pytest.mark.parametrize(
    ("new", "words", "second", "masked"),
    [
        ("a 1\nb", (), Piece("text", "a 2\nb"), "a ...\nb"),
        ("a 1", (), Piece("text", "b 2"), "..."),
        ("a 1", (), Piece("stderr", "a 2"), ""),
        ("a  b c", ("exact",), Piece("text", "a  d c"), "a  ... c"),
        (IMAGE, ("image",), Piece("image", f"{IMAGE} digest {DIGESTS[2]}"), IMAGE),
    ],
)
def test_what_moved_is_masked(
    monkeypatch: pytest.MonkeyPatch, new: str, words: tuple[str, ...], second: Piece, masked: str
):
    assert after(monkeypatch, edit(new, words), second) == masked


def test_a_second_run_that_fails_masks_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch):
    def fail(*args: Any) -> None:
        raise RuntimeError("the kernel died")

    warnings: list[Any] = []
    monkeypatch.setattr(reruns, "second_run", fail)
    monkeypatch.setattr(
        reruns.logger, "warning", lambda *args, **words: warnings.append([*args, words])
    )
    asked = [edit("a")]
    assert reruns.masked(APP, [], asked) == asked
    assert "the second run failed, so nothing is masked" in warnings[0][0]
    assert str(warnings[0][1]) == "the kernel died"
    kind = {"type": "verified_book", "subtype": "volatile"}  # by which it can be suppressed
    assert warnings[0][2] == {"location": "page", **kind}


def test_a_block_that_agrees_with_the_first_run_alone_is_masked(monkeypatch: pytest.MonkeyPatch):
    first, second = (
        SimpleNamespace(index=3, shown=[Piece("text", text)]) for text in ("7 steps", "8 steps")
    )
    cells: Any = [first]
    monkeypatch.setattr(reruns, "second_run", lambda app, cells: [second])
    (found,) = reruns.masked(APP, cells, [], lambda again: [edit("8 steps")])
    assert found.new == "... steps"
