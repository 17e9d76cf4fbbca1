"""What builds make within a book's folder is no page of it, for none of the builds."""

from types import SimpleNamespace
from typing import Any

import pytest

from verified_book.kernels import made

NAMES = [".jupyter_cache", "**/.jupyter_cache", "jupyter_execute", "**/jupyter_execute"]


@pytest.mark.parametrize(
    ("outdir", "cache", "found"),
    [
        ("/book/_build/html", "", ["_build/html", *NAMES]),
        ("/book", "", NAMES),
        ("/site", "own/cache", ["own/cache", *NAMES]),
        ("/site", "/elsewhere/cache", NAMES),
    ],
)
def test_what_is_excluded(outdir: str, cache: str, found: list[str]):
    app: Any = SimpleNamespace(srcdir="/book", outdir=outdir)
    config: Any = SimpleNamespace(exclude_patterns=["old"], nb_execution_cache_path=cache)
    for _ in range(2):  # the second time nothing is new
        made.exclude_those_of_builds(app, config)
        assert config.exclude_patterns == ["old", *found]
