"""Which tool noticed which mistake in the printed outputs of a book: a record of November 2026.

`results.json` has a verdict of each tool, in the version named there, on the same small page in its
format, with one of twenty mistakes at a time; the page on `verified_book` shows it.
"""
