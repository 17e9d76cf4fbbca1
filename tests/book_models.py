"""Models that the pages train, as a build of the book has kept them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from transformer_training.kept import FOLDER

ROOT = Path(__file__).parents[1]


@contextmanager
def kept_by_the_book() -> Iterator[None]:
    """Has models taken from the build of the book, where there is one.

    They are known by a digest of the code that trains them, so that a build of other code has none.
    """
    site = Path(os.environ.get("BUILT_SITE") or ROOT / "book/_build/html").resolve()
    folder = site.with_name("trained_models")
    with pytest.MonkeyPatch.context() as patch:
        if folder.is_dir():
            patch.setenv(FOLDER, str(folder))
        yield
