"""The dress of this book's site: what its pages offer beside checked outputs and claims.

Each module or package is a Sphinx extension that `book/_config.yml` names. They stand on
:mod:`verified_book`, which knows none of them.
"""

__version__ = "0.3.0"
