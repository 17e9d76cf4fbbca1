"""Sphinx extension: what a build warned of, once more below all that it printed after.

The first line of each warning is repeated, with its place, so that nobody has to look for it above
the list of pages that were written.
"""

import logging

from sphinx.application import Sphinx
from sphinx.util.logging import NAMESPACE, WarningStreamHandler, getLogger
from sphinx.util.typing import ExtensionMetadata

from book_site import __version__

_MOST = 20


def repeat_warnings(app: Sphinx) -> None:
    """Keeps what Sphinx shows as a warning or an error, and shows it again at the end."""
    lines: list[str] = []

    def keep(record: logging.LogRecord) -> bool:
        lines.append(record.getMessage().partition("\n")[0])  # with its place
        return True

    def show(app: Sphinx, error: Exception | None) -> None:
        if lines:
            left = [f"and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
            warned = "\n".join(["", "This build warned:", *lines[:_MOST], *left])
            getLogger(__name__).info(warned)

    for handler in logging.getLogger(NAMESPACE).handlers:
        if isinstance(handler, WarningStreamHandler):
            handler.addFilter(keep)  # the last one: it sees what the others let through
    app.connect("build-finished", show, priority=999)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Registers the repetition."""
    repeat_warnings(app)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
