"""What a page says of itself: `verified_book` in its front matter, or a field of that name.

`verified_book: marked`, or `verified_book: {require: marked, data: [table.csv]}` in Markdown;
`:verified_book: marked` at the top of a reStructuredText page.
"""

import json
from typing import Any

from sphinx.environment import BuildEnvironment


def page_settings(env: BuildEnvironment, docname: str) -> dict[str, Any]:
    """The settings of one page; a single word is the value of `require`."""
    value = env.metadata.get(docname, {}).get("verified_book")
    if isinstance(value, str) and value.lstrip().startswith("{"):  # docutils knows only text
        value = json.loads(value)
    if value is None:
        return {}
    return dict(value) if isinstance(value, dict) else {"require": value}
