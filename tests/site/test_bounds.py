"""Chapters stay short: what stands open on them, and how far a reader has to scroll."""

import pytest

from tests.site.conftest import SCREEN

LESSONS = ("attention/", "feed_forward/", "gpt2/", "normalization/", "transformers/", "one_page")
CHAPTERS = (*LESSONS, "proofs/")
HEIGHT = SCREEN["height"]  # pixels


@pytest.fixture(scope="module")
def chapters(visits):
    """What stands open on each chapter and on each page of proofs."""
    return {name: visit.open for name, visit in visits.items() if name.startswith(CHAPTERS)}


@pytest.mark.parametrize(
    ("what", "bound"), [("cells", 30), ("height", 12 * HEIGHT), ("words", 2500)]
)
def test_no_chapter_is_too_long(chapters, what, bound):
    assert len(chapters) > 12, "the chapters are elsewhere"
    assert {name: open[what] for name, open in chapters.items() if open[what] > bound} == {}


def test_what_is_printed_is_seldom_a_verdict(chapters):
    lessons = [open for name, open in chapters.items() if name.startswith(LESSONS)]
    printed, verdicts = (sum(open[what] for open in lessons) for what in ("printed", "verdicts"))
    assert verdicts < 0.15 * printed
