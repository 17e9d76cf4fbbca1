"""Commands run in the process of the tests: Sphinx is loaded once, and a run takes a second."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.verified_book.books import FRONT_MATTER
from verified_book.commands import cli


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Said:
    """What a command has answered."""

    status: int
    out: str
    err: str


Command = Callable[..., Said]

RED = f"""\
{FRONT_MATTER}# Red

```{{code-cell}} ipython3
6 * 7
```

```{{expect-output}}
41
```
"""

GREEN = """\
Green
=====

.. code-cell::

   6 * 7

.. expect-output::

   42
"""

DIFFERENCE = """\
--- expected
+++ executed
@@ -1 +1 @@
-41
+42
  Remedy: Mend the code; or run `python -m verified_book accept` and review the change with \
`git diff`.
"""


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Writes files by their paths."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch) -> Command:
    """Runs a command in an empty folder, and returns its exit status and what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path.with_name("cache")))
    for name in ("FORCE_COLOR", "NO_COLOR", "VERIFIED_BOOK_ACCEPT"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> Said:
        capsys.readouterr()
        try:
            status = cli.main(arguments)
        except SystemExit as error:  # argparse
            status = int(error.code or 0)
        return Said(status, *capsys.readouterr())

    return run
