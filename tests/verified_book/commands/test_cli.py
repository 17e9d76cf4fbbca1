"""The command line teaches, and what it prints suits where it prints it."""

import io
from pathlib import Path

import pytest

from tests.verified_book.commands.conftest import Command, Screen, write
from verified_book import settings
from verified_book.commands import running
from verified_book.commands.terminal import Terminal

EMPTY = "it is empty; name a file or a folder, `.` for this one"


def test_help_shows_a_page_and_what_to_do_with_it(command: Command):
    said = command("--help")
    assert said.status == 0
    for line in ("check page.md", "accept page.md", "--dry-run", "Exit status: 0"):
        assert line in said.out
    assert "a folder: all its pages" in command("check", "--help").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["check", "-j", "0", "x.md"], "it is no number from 1 to 1024"),
        (["accept", "--json", "x", "x.md"], "unrecognized arguments: --json"),
        (["check", ""], EMPTY),
    ],
    ids=lambda given: given if isinstance(given, str) else " ".join(given),
)
def test_a_wrong_call_exits_with_2(command: Command, arguments: list[str], message: str):
    said = command(*arguments)
    assert said.status == 2
    assert message in said.err


def test_every_option_is_listed(command: Command):
    listed = command("settings").out
    groups = [group for name, group in vars(settings).items() if name.isupper()]
    assert settings.CLAIMS in groups
    for setting in (setting for group in groups for setting in group):
        assert f"{setting.name} = {setting.default!r}\n    {setting.purpose[:40]}" in listed


@pytest.mark.parametrize(
    ("variables", "screen", "colored"),
    [
        ({}, Screen, True),
        ({"NO_COLOR": "1"}, Screen, False),
        ({"FORCE_COLOR": "1"}, io.StringIO, True),
    ],
)
def test_where_there_are_colors(monkeypatch, variables, screen, colored):
    for name in ("FORCE_COLOR", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    out = screen()
    Terminal(out, io.StringIO()).print("text", "red")
    assert out.getvalue() == ("\x1b[31mtext\x1b[0m\n" if colored else "text\n")


def test_a_run_is_told_all_that_was_asked_for(command: Command, tmp_path: Path, monkeypatch):
    write(tmp_path, {"page.md": "# No cells\n"})
    told = []

    def run(request: object, terminal: object, *options: object) -> running.Outcome:
        told.append(options)
        return running.Outcome()

    monkeypatch.setattr(running, "run", run)
    for arguments in ("check -j 3", "accept", "accept --dry-run --jobs 2", "accept --twice"):
        assert command(*arguments.split(), "page.md").status == 0
    assert told == [
        ("0", False, 3, None),
        ("1", False, 1, None),
        ("dry", False, 2, None),
        ("1", True, 1, None),
    ]
