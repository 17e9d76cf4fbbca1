"""`verified_book.notebooks` is a name for what makes the notebooks of a site."""

from types import SimpleNamespace
from typing import Any

from verified_book import notebooks


def test_it_sets_up_what_makes_them():
    asked: list[str] = []
    app: Any = SimpleNamespace(setup_extension=asked.append)
    assert notebooks.setup(app)["parallel_read_safe"]
    assert asked == ["book_site.notebooks"]
