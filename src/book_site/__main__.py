"""The command line, `python -m book_site`: what is made of a site that was built."""

import argparse
import sys
from collections.abc import Sequence

from verified_book.commands.books import CommandError


def main(arguments: Sequence[str] | None = None) -> int:
    """Carries out a command and returns its exit status."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "notebooks":
            from book_site.notebooks import lay_out

            return lay_out.lay_out(options.book, options.target)
        from book_site.printing import pdf

        return pdf.print_book(options.page, options.target, not options.brief)
    except CommandError as error:
        print(f"book_site: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m book_site", description="Makes more of a site that was built."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    pdf = commands.add_parser("pdf", help="print the book into one PDF")
    pdf.add_argument("page", type=_path, metavar="PAGE", help="what `singlehtml` has written")
    pdf.add_argument(
        "target", type=_path, metavar="FILE", help="the PDF; the site that it lies in offers it"
    )
    pdf.add_argument(
        "--brief", action="store_true", help="leave out what pages fold: proofs, lists, whole files"
    )
    laid = commands.add_parser("notebooks", help="lay out the notebooks of a built book")
    laid.add_argument("book", type=_path, metavar="BOOK", help="the folder of a Jupyter Book")
    laid.add_argument(
        "target", type=_path, metavar="FOLDER", help="where; what was changed there stays"
    )
    return parser


def _path(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("it is empty; name a file or a folder, `.` for this one")
    return text


if __name__ == "__main__":
    sys.exit(main())
