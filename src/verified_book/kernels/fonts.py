"""Runs inside each Python kernel of a build: no page says that Matplotlib makes its list of fonts.

Kernels have a folder of their own for Matplotlib, so the first figure of a build makes this list.
Where that takes more than five seconds, as on a busy machine, Matplotlib writes so to stderr, and
the page that has the figure would show it. Like :mod:`verified_book.kernels.audit_hook` it is
executed as IPython's configuration and imports nothing but the standard library.
"""

import logging


def is_of_the_page(record: logging.LogRecord) -> bool:
    """Whether a warning tells of more than this list."""
    return "building the font cache" not in record.getMessage()


def keep_quiet_about_fonts() -> None:
    """Drops that one line of Matplotlib's, wherever its log goes."""
    logging.getLogger("matplotlib.font_manager").addFilter(is_of_the_page)
