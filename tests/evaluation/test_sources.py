"""Digests of what made a record: what changes no result changes no digest."""

from pathlib import Path

import pytest

from evaluation.sources import changed, digests

TEXT = '''"""A module."""

X = "# no comment"  # why


def f(x):
    """What it does.

    More of it.
    """
    # why
    return x + 1
'''


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("What it does", "Something else", True),
        ("# why", "# because", True),
        ("\n\n\n", "\n", True),
        ("x + 1", "x + 2", False),
        ("# no comment", "# a comment", False),
    ],
)
def test_code_alone_changes_a_digest(tmp_path: Path, old: str, new: str, is_same: bool):
    file = tmp_path / "made.py"
    file.write_text(TEXT)
    before = digests(["*.py"], tmp_path)
    file.write_text(TEXT.replace(old, new))
    assert list(before) == ["made.py"]
    assert (digests(["*.py"], tmp_path) == before) is is_same


def test_other_new_and_lost_sources_are_named():
    before = {"a.py": "1", "b.py": "2", "c.py": "3"}
    assert changed(before, {"a.py": "1", "b.py": "0", "d.py": "4"}) == ["b.py", "c.py", "d.py"]
    assert changed(before, before) == []
