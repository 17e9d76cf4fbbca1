"""The command line, `python -m verified_book`."""

import argparse
import contextlib
import json
import logging
import re
import sys
from asyncio import CancelledError
from collections.abc import Sequence
from pathlib import Path

from verified_book.commands.books import CommandError, ForeignPageError, requests_of
from verified_book.version import __version__

_ABOUT = """\
Holds the printed outputs of executed pages against the `expect-output` blocks below their cells.
"""

_EXAMPLES = """\
A page, and what to do with it:

  ---                                     python -m verified_book check page.md
  file_format: mystnb                       runs the page; says what is not as expected
  kernelspec: {name: python3}             python -m verified_book accept page.md
  ---                                       writes the blocks that are missing or differ;
  ```{code-cell}                            review them with `git diff`
  6 * 7                                   python -m verified_book accept --dry-run page.md
  ```                                       shows what it would write
  ```{expect-output}
  42
  ```

The book of a page is found above it: a Jupyter Book 1 (_config.yml and _toc.yml) or a Sphinx
project (conf.py). It need not list `verified_book`. A page that is in no book is run by itself.

Exit status: 0 if all is as expected, 1 if something is not, 2 if nothing could be checked.
"""

_MOST_JOBS = 1024

_PAGES = "a page (.md, .rst, .ipynb), or a folder: all its pages"


def main(arguments: Sequence[str] | None = None) -> int:
    """Carries out a command and returns its exit status."""
    options = _parser().parse_args(arguments)
    # Tasks of nbclient that nobody awaits once a command is interrupted.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    try:
        if options.command == "settings":
            from verified_book.commands import options as known

            print(known.listed())
            return 0
        return _run(options)
    except CommandError as error:
        if getattr(options, "json", None):
            found = {"error": str(error), "foreign": isinstance(error, ForeignPageError)}
            with contextlib.suppress(CommandError):  # there, too, nothing can be written
                _write_json(options.json, json.dumps(found))
        print(f"verified_book: {error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, CancelledError):  # nbclient makes the second of the first
        print("\nverified_book: interrupted", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    """Checks or accepts pages."""
    requests = requests_of(options.pages)  # before Sphinx is imported, which takes a second
    from verified_book.commands import reporting, running
    from verified_book.commands.terminal import Terminal

    terminal = Terminal(sys.stdout, sys.stderr)
    mode = ("dry" if options.dry_run else "1") if options.command == "accept" else "0"
    outcomes = [
        running.run(request, terminal, mode, options.twice, options.jobs, options.builds)
        for request in requests
    ]
    status = reporting.print_report(outcomes, terminal)
    if terminal.showed_edits and not options.dry_run:
        terminal.print("Review the changes with `git diff`.")
    if options.json:
        _write_json(options.json, reporting.as_json(outcomes))
    return status


def _write_json(name: str, text: str) -> None:
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(
            f"{name}: the results cannot be written there: {error.strerror}; name another file"
        ) from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m verified_book",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"verified_book {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    check = commands.add_parser("check", help="run pages and say what is not as expected")
    check.add_argument("pages", nargs="+", type=_path, metavar="PAGE", help=_PAGES)
    check.add_argument(
        "--json", type=_path, metavar="FILE", help="also write the results there, for programs"
    )

    check.add_argument(
        "--builds",
        type=lambda text: Path(_path(text)),
        metavar="FOLDER",
        help="take nothing from the book's builds: keep what has run in a cache there",
    )

    accept = commands.add_parser("accept", help="run pages and write the blocks as they should be")
    accept.add_argument("pages", nargs="+", type=_path, metavar="PAGE", help=_PAGES)
    accept.add_argument(
        "--dry-run", action="store_true", help="show the changes, and make none of them"
    )
    accept.add_argument(
        "--twice", action="store_true", help="run each page twice, and write `...` for what moved"
    )
    for command in (check, accept):
        command.set_defaults(**{"dry_run": False, "twice": False, "json": None, "builds": None})
        command.add_argument(
            "-j", "--jobs", type=_jobs, default=1, metavar="N", help="read N pages at once"
        )

    commands.add_parser("settings", help="list every option of the configuration")
    return parser


def _path(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("it is empty; name a file or a folder, `.` for this one")
    return text


def _jobs(text: str) -> int:
    if not re.fullmatch("[0-9]{1,4}", text) or not 1 <= int(text) <= _MOST_JOBS:
        raise argparse.ArgumentTypeError(f"it is no number from 1 to {_MOST_JOBS}")
    return int(text)
