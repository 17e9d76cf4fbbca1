"""The record as HTML, for the page on `verified_book`."""

import re
from collections.abc import Sequence
from html import escape
from typing import Any

_WORDS = {
    "caught": "caught",
    "missed": "<strong>missed</strong>",
    "quiet": "quiet",
    "false alarm": "<strong>alarm</strong>",
    "not expressible": "&ndash;",
}


def table(results: dict[str, Any]) -> str:
    """What each tool said of each mistake and each noise, as a table in HTML.

    A dash stands where a tool's format has no place for what the row is about; pointing at it shows
    the reason.

    Args:
        results: As `results.json` has them.
    """
    tools = results["tools"]
    heads = [f"{escape(tool['name'])}<br>{escape(tool['version'])}" for tool in tools]
    lines = ['<table class="table">', "<thead>", _row(["", *heads], "th"), "</thead>", "<tbody>"]
    for mistake in results["mistakes"]:
        lines.append(_verdicts(mistake["title"], mistake["id"], tools))
    caught = [_count(tool, results["mistakes"], "caught") for tool in tools]
    lines.append(_row([f"caught, of {len(results['mistakes'])}", *caught], "th"))
    for mark, where in (("", "as printed"), (", marked", "marked by the author")):
        for noise in results["noises"]:
            title = f"no mistake: {noise['title']}, {where}"
            lines.append(_verdicts(title, f"{noise['id']}{mark}", tools))
    return "\n".join([*lines, "</tbody>", "</table>"])


def descriptions(results: dict[str, Any]) -> str:
    """What each tool is for, how it was run and how an author marks noise, as a list in HTML.

    Args:
        results: As `results.json` has them.
    """
    return "\n".join(["<ul>", *map(_description, results["tools"]), "</ul>"])


def _description(tool: dict[str, Any]) -> str:
    name = escape(tool["name"])
    if tool["documentation"]:
        name = f'<a href="{escape(tool["documentation"])}">{name}</a>'
    ran = f"Run as `{tool['command']}`, {tool['date']}."
    parts = [tool["purpose"], ran, f"Marking noise: {tool['marks']}.", tool["remark"]]
    return f"<li><strong>{name}</strong>: {_code(' '.join(filter(None, parts)))}</li>"


def _verdicts(title: str, name: str, tools: Sequence[dict[str, Any]]) -> str:
    cells = []
    for tool in tools:
        verdict = tool["verdicts"][name]
        word = _WORDS[verdict["verdict"]]
        note = verdict.get("note")
        cells.append(f'<span title="{escape(note)}">{word}</span>' if note else word)
    return _row([_code(title), *cells])


def _code(text: str) -> str:
    """A text with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _count(tool: dict[str, Any], rows: Sequence[dict[str, str]], word: str) -> str:
    return str(sum(tool["verdicts"][row["id"]]["verdict"] == word for row in rows))


def _row(cells: Sequence[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"
