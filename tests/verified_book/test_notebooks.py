"""`verified_book.notebooks` is a name for what makes the notebooks of a site."""

from typing import Any

import pytest
from sphinx.errors import ExtensionError

from verified_book import notebooks


class App:
    """An application that cannot set up an extension, for a reason if there is one."""

    def __init__(self, reason: Exception | None = None) -> None:
        self.reason = reason
        self.asked: list[str] = []

    def setup_extension(self, name: str) -> None:
        self.asked.append(name)
        if self.reason:
            raise ExtensionError(f"no {name}", self.reason)


def set_up(app: Any) -> None:
    notebooks.setup(app)


def test_it_sets_up_what_makes_them():
    app = App()
    set_up(app)
    assert app.asked == ["book_site.notebooks"]


def test_where_that_is_not_installed_it_says_what_to_do():
    with pytest.raises(ExtensionError, match=r"book_site.notebooks is not installed. Remedy: "):
        set_up(App(ModuleNotFoundError("it is not there", name="book_site")))


def test_what_goes_wrong_in_it_is_told_as_it_is():
    with pytest.raises(ExtensionError, match=r"^no book_site.notebooks \(exception: worn out\)$"):
        set_up(App(ValueError("worn out")))
