"""Notices that what Sphinx keeps between builds has been damaged, and lets the pages be read again.

The records of all pages are in its pickled environment, what they say in its doctrees. Damaged they
would be believed: a failure could be forgotten, or a page could say something else.
"""

import os
from pathlib import Path

from sphinx.application import ENV_PICKLE_FILENAME, Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from verified_book.regular import discard, holds, stamp_of
from verified_book.sealed import read_sealed, write_sealed

logger = logging.getLogger(__name__)

SEAL = "verified_book_seal.json"


def check(app: Sphinx, config: Config) -> None:
    """Moves aside what is not as a build has left it, before anything is read."""
    folder = Path(app.doctreedir)
    environment = folder / ENV_PICKLE_FILENAME
    if not os.path.lexists(environment):
        return
    try:
        seals: dict[str, list[object]] = dict(read_sealed(folder / SEAL))
    except (OSError, ValueError, TypeError):
        seals = {}
    if not holds(environment, seals.get(ENV_PICKLE_FILENAME)):
        discard(environment)
        logger.info("%s is not as a build has left it: every page is read again", environment)
        return
    for name, sealed in seals.items():
        doctree = folder / name
        if not holds(doctree, sealed) and os.path.lexists(doctree):
            discard(doctree)  # Sphinx reads a page that has none
            logger.info("%s is not as a build has left it: its page is read again", doctree)


def seal(app: Sphinx, env: BuildEnvironment) -> None:
    """Keeps digests of what Sphinx has just written."""
    folder = Path(app.doctreedir)
    names = [ENV_PICKLE_FILENAME, *(f"{name}.doctree" for name in sorted(env.all_docs))]
    try:
        files = [name for name in names if (folder / name).is_file()]
        write_sealed(folder / SEAL, {name: stamp_of(folder / name) for name in files})
    except OSError as error:
        logger.info("%s could not be written (%s)", folder / SEAL, error.strerror)


def setup(app: Sphinx) -> None:
    """Checks before Sphinx loads its environment, and seals when it has written it."""
    app.connect("config-inited", check)
    app.connect("env-check-consistency", seal)
