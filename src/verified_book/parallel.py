"""Sphinx extension: reads and executes the pages on every core, also under Jupyter Book.

It offers this: where an extension does not let its pages be read in parallel, they are read one by
one, and the build says which; and a number that was given on the command line stays.
"""

import os
import re
import sys
from typing import TYPE_CHECKING

from sphinx.domains import Domain
from sphinx.util import logging

from verified_book import settings
from verified_book.version import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

logger = logging.getLogger(__name__)


def prepare(app: "Sphinx") -> None:
    """Lets Sphinx fork readers, if every extension can take part."""
    unmerged = _without_merging(app)
    for name in app.config.verified_book_parallel_safe:
        for domain in unmerged.pop(name, []):
            domain.merge_domaindata = _nothing_to_merge  # type: ignore[method-assign]
        extension = app.extensions.get(name)
        if extension and extension.parallel_read_safe is None:
            extension.parallel_read_safe = True
            extension.parallel_write_safe = True
    unsafe = {name for name, item in app.extensions.items() if not item.parallel_read_safe}
    given = app.parallel > 1 or _number_was_given(sys.argv)
    if not given:
        app.parallel = app.config.verified_book_jobs or os.cpu_count() or 1
    # Sphinx itself minds the others: it warns, which fails a strict build that asked for nothing.
    hindrances = set(unmerged) if given else unsafe | set(unmerged)
    if app.parallel > 1 and hindrances:
        app.parallel = 1
        logger.info(
            "verified_book: pages are read one by one, since these extensions cannot be read in "
            "parallel or do not say that they can: %s",
            ", ".join(sorted(hindrances)),
        )


def _without_merging(app: "Sphinx") -> dict[str, list[Domain]]:
    """The domains that would end a parallel build with an error, by their package."""
    found: dict[str, list[Domain]] = {}
    for domain in app.env.domains.values():
        if type(domain).merge_domaindata is Domain.merge_domaindata:
            found.setdefault(type(domain).__module__.partition(".")[0], []).append(domain)
    return found


def _nothing_to_merge(docnames: object, otherdata: object) -> None:
    """Merges the data of a domain that has none."""


def _number_was_given(arguments: list[str]) -> bool:
    """Whether the command line names a number of jobs.

    Examples:
        >>> _number_was_given(["sphinx-build", "-j4", "a", "b"]), _number_was_given(["a", "b"])
        (True, False)
    """
    return any(re.match(r"-j(\d|auto|$)|--jobs\b", item) for item in arguments)


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Registers the number of readers."""
    app.setup_extension("verified_book")
    settings.register(app, settings.PARALLEL)
    app.connect("builder-inited", prepare, priority=900)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
