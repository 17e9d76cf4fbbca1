"""What a build of the book has kept: models that its pages train, and answers of the checks."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from book_site.shared_results import FOLDERS

ROOT = Path(__file__).parents[1]


@contextmanager
def kept_by_the_book() -> Iterator[None]:
    """Has both taken from the build of the book, where there is one.

    They are known by a digest of the code that makes them, so that a build of other code has none.
    """
    site = Path(os.environ.get("BUILT_SITE") or ROOT / "book/_build/html").resolve()
    with pytest.MonkeyPatch.context() as patch:
        for variable, name in FOLDERS.items():
            folder = site.with_name(".doctrees") / name
            if folder.is_dir():
                patch.setenv(variable, str(folder))
        yield
