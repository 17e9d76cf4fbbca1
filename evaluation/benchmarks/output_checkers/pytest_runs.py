"""Runs of pytest, for the tools that are plugins of it."""

import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.benchmarks.output_checkers.tool import execute

_ANSI = re.compile(r"(?:\x1b|#x1B)\[[0-9;]*m")  # pytest writes the character that XML has not


@dataclass(frozen=True)
class Failed:
    """A test that failed.

    Attributes:
        test: Its file and name.
        text: What pytest says of it.
    """

    test: str
    text: str


def run_pytest(folder: Path, options: Sequence[str]) -> tuple[int, str, list[Failed]]:
    """Runs pytest in a folder.

    Args:
        folder: Where the pages are; no settings above it count.
        options: What the command line gets beside what names the report.

    Returns:
        The exit status, the log and the tests that failed.
    """
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no"]
    # Only the plugin that is tried: no other may change a verdict, and each takes seconds to load.
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    status, log = execute([*command, f"--junitxml={report}", *options], folder, **alone)
    if status not in (0, 1):
        raise RuntimeError(f"pytest did not run its tests: {log}")
    return status, log, list(_failures(report))


def _failures(report: Path) -> Iterator[Failed]:
    # The report of our own run.
    for case in ET.parse(report).getroot().iter("testcase"):
        for found in [*case.findall("failure"), *case.findall("error")]:
            test = f"{case.get('classname')}::{case.get('name')}"
            text = f"{found.get('message')}\n{found.text}"
            yield Failed(test, _ANSI.sub("", text))
