"""What a page says of itself: `verified_book` in its front matter, or a field of that name.

`verified_book: marked`, or `verified_book: {require: marked, data: [table.csv]}` in Markdown;
`:verified_book: marked` at the top of a reStructuredText page.
"""

import json
import re
from pathlib import Path
from typing import Any

import yaml
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from verified_book.outputs import source
from verified_book.records import Failure

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_HAS_CELLS = re.compile(r"code-cell|expect-output")


def page_settings(env: BuildEnvironment, docname: str) -> dict[str, Any]:
    """The settings of one page; a single word is the value of `require`."""
    value = env.metadata.get(docname, {}).get("verified_book")
    if isinstance(value, str) and value.lstrip().startswith("{"):  # docutils knows only text
        value = json.loads(value)
    if value is None:
        return {}
    return dict(value) if isinstance(value, dict) else {"require": value}


def unreadable(app: Sphinx) -> list[Failure]:
    """Why MyST-NB takes the Markdown page that is being read, with cells, for one without."""
    page, text = str(app.env.doc2path(app.env.docname)), source.text_of_page(app.env)
    kind = app.config.source_suffix.get(Path(page).suffix)
    if text is None or kind in (None, "restructuredtext") or page.endswith(".ipynb"):
        return []
    match = _FRONT_MATTER.match(text)
    if match is None or not _HAS_CELLS.search(text, match.end()):
        return []
    try:
        settings = yaml.safe_load(match[1])
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = min(mark.line, match[1].count("\n") - 1) if mark else 0
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        message = f"the front matter is no YAML, so no cell runs: {problem}"
        return [Failure(page, line + 2, message, "Mend it; no cell of the page was checked.")]
    if settings is not None and not isinstance(settings, dict):
        message = "the front matter holds no settings, so no cell runs"
        remedy = "Write `name: value` on each of its lines; no cell of the page was checked."
        return [Failure(page, 1, message, remedy)]
    return []
