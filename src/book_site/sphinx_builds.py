"""Builds one page by itself: a chapter shows what the build says of it."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

_SETTINGS = """
extensions = ["verified_book.claims"]
master_doc = "page"
verified_book_notes = {"book": "this book"}
nb_execution_mode = "force"
nb_execution_allow_errors = True
"""

_FRONT_MATTER = """\
---
file_format: mystnb
kernelspec: {name: python3, display_name: Python 3, language: python}
---
"""

# Without the grammar of addresses that jsonschema would load, in a second; no notebook has any.
_SPHINX = """\
import sys
sys.modules.setdefault("rfc3987_syntax")
from sphinx.cmd.build import main
sys.exit(main())
"""


def failures_of(text: str) -> str:
    """Builds a page of MyST Markdown and returns the failures that the build reports.

    Args:
        text: The page. It needs no front matter; its lines are counted from its own first line.

    Returns:
        The failures as the build prints them; empty when there are none.
    """
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.md")
        Path(folder, "conf.py").write_text(_SETTINGS, encoding="utf-8")
        page.write_text(_FRONT_MATTER + text.strip("\n") + "\n", encoding="utf-8")
        options = ["-b", "dummy", "-q", "--no-color", folder, f"{folder}/out"]
        command = [sys.executable, "-c", _SPHINX, *options]
        # It never rewrites what it shows.
        settings = {k: v for k, v in os.environ.items() if k != "VERIFIED_BOOK_ACCEPT"}
        run = subprocess.run(command, capture_output=True, text=True, check=False, env=settings)
        log = run.stderr
        return _located(log, str(page), _FRONT_MATTER.count("\n")).strip()


def _located(log: str, page: str, skipped: int) -> str:
    """The log with places given as lines of the text that was passed."""
    lines = []
    for line in log.splitlines():
        if line.startswith(f"{page}:"):
            number, _, rest = line.removeprefix(f"{page}:").partition(":")
            line = f"page.md:{int(number) - skipped}:{rest}"
        lines.append(line)
    return "\n".join(lines)
