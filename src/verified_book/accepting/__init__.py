"""Rewrites expected blocks from what ran, for review with `git diff`.

Only the blocks themselves are written, where their own parsers find them, into a file that replaces
the page at once. Where anything is not as it was parsed, nothing is written, and the failure that
the block should have mended says why.
"""

from typing import TYPE_CHECKING

from verified_book.accepting import mode

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: "Sphinx") -> None:
    """Takes part in a build that is asked to accept."""
    if not mode.is_on():
        return
    # Here, since the parsers of both languages are needed only now.
    from verified_book.accepting import proposals, updates

    app.connect("source-read", proposals.remember, priority=999)  # after every other extension
    # Claims, which count the cells that a block is held against, come later.
    app.connect("verified-book-page", proposals.take, priority=400)
    app.connect("env-updated", updates.rewrite, priority=400)  # before failures are reported
