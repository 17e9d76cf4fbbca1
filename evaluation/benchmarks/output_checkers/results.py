"""The results of all tools, as they are written."""

import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from evaluation.benchmarks.output_checkers.mistakes import MISTAKES, NOISES
from evaluation.benchmarks.output_checkers.tool import Tool
from evaluation.benchmarks.output_checkers.trials import trial

WRITTEN = Path(__file__).with_name("results.json")

_BENEATH = ("pytest", "sphinx", "myst-nb", "nbclient", "ipykernel", "numpy", "matplotlib")


def collected(
    tools: Sequence[Tool], only: Sequence[str] | None = None, before: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Tries tools and returns the results of all.

    Args:
        tools: All tools, in the order of the table.
        only: The names of those to try; all if None.
        before: Earlier results, for those that are not tried.

    Raises:
        ValueError: The earlier results are of other mistakes, or lack a tool.
    """
    listed: dict[str, Any] = {
        "mistakes": [{"id": mistake.id, "title": mistake.title} for mistake in MISTAKES],
        "noises": [{"id": noise.id, "title": noise.title} for noise in NOISES],
    }
    earlier = {tool["name"]: tool for tool in before["tools"]} if before else {}
    if before and any(before[kind] != listed[kind] for kind in listed):
        raise ValueError("the earlier results are of other mistakes: run all tools")
    tried = []
    for tool in tools:
        if only is None or tool.name in only:
            tried.append(trial(tool))
        elif tool.name in earlier:
            tried.append(earlier[tool.name])
        else:
            raise ValueError(f"no earlier results of {tool.name!r}: run all tools")
    versions = {name: metadata.version(name) for name in _BENEATH}
    return {"versions": {"python": platform.python_version(), **versions}, **listed, "tools": tried}
