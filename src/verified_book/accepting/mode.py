"""What a build is asked to do with the blocks, by two environment variables."""

import os

VARIABLE = "VERIFIED_BOOK_ACCEPT"
"""Set to accept; `dry` shows what would be written instead."""

TWICE = "VERIFIED_BOOK_ACCEPT_TWICE"
"""Set to run pages once more, and to mask by `...` what moved."""

_NO = {"", "0", "false", "no", "off"}


def _value(variable: str) -> str:
    return os.environ.get(variable, "").strip().lower()


def is_on() -> bool:
    """Whether this build shall rewrite the expected blocks that differ or are missing."""
    return _value(VARIABLE) not in _NO


def is_dry() -> bool:
    """Whether it shall only show what it would write."""
    return _value(VARIABLE) == "dry"


def is_twice() -> bool:
    """Whether pages shall run once more."""
    return is_on() and _value(TWICE) not in _NO
