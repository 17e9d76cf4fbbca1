"""`python -m verified_book`: checks pages, accepts what ran, shows a book as it is written."""

import sys

from verified_book.commands.cli import main

if __name__ == "__main__":
    # jsonschema would load a grammar of addresses, a second of each run; no notebook has any.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # so it is not found
    sys.exit(main())
