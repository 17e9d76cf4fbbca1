"""What a process that is about to build one of the tests' books has imported already."""

import importlib
import pkgutil
import re
import sys
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import nbformat
import sphinx.application
from jinja2.bccache import FileSystemBytecodeCache
from jinja2.sandbox import SandboxedEnvironment
from sphinx import jinja2glue
from sphinx.highlighting import PygmentsBridge

import book_site
import verified_book
from verified_book import sources

# jsonschema would load a grammar of addresses, two seconds; no configuration here has any.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

NAMES = [
    *sphinx.application.builtin_extensions,
    "sphinx.cmd.build",
    "sphinx.search.en",
    "myst_nb.sphinx_ext",
    "nbconvert.preprocessors",
    "PIL.Image",
    "jupyter_book.cli.main",
    "jupyter_book.config",
    "jupyter_book.sphinx",
    "sphinx_book_theme",
    "sphinx_comments",
    "sphinx_exercise",
    "sphinx_external_toc",
    "sphinx_jupyterbook_latex",
    "sphinx_multitoc_numbering",
    "sphinx_togglebutton",
    *(
        module.name
        for package in (verified_book, book_site)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not re.search(r"__main__|figures|plugin|\.build\.", module.name)
    ),
]

for name in NAMES:
    with suppress(ImportError):  # not everything is there for each version of Sphinx
        importlib.import_module(name)

for minor in (4, 5):  # compiles their schemas
    nbformat.validate(nbformat.v4.new_notebook(nbformat_minor=minor))

for language in ("ipython3", "python"):  # compiles their expressions
    PygmentsBridge().get_lexer("", language)

# What is installed stays so while the tests run, and each build would read it again.
sources._all_versions = cache(sources._all_versions)
sources._all_versions()

# The themes' templates, compiled once; jinja2 knows each by its content.
_TEMPLATES = Path(__file__).parents[2] / ".pytest_cache" / "templates"
_TEMPLATES.mkdir(parents=True, exist_ok=True)
jinja2glue.SandboxedEnvironment = partial(  # type: ignore[attr-defined, assignment]
    SandboxedEnvironment, bytecode_cache=FileSystemBytecodeCache(str(_TEMPLATES))
)
