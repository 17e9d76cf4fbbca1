"""Holds a tool against every mistake and every noise."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evaluation.benchmarks.output_checkers.document import MODULE, MODULE_NOW, Page, lay_out
from evaluation.benchmarks.output_checkers.mistakes import (
    MISTAKES,
    NOISES,
    Mistake,
    mistaken_pages,
    noisy_pages,
)
from evaluation.benchmarks.output_checkers.tool import NotHere, Outcome, Tool

Verdicts = dict[str, dict[str, str]]


def trial(tool: Tool) -> dict[str, Any]:
    """All verdicts on a tool, each read from a run of it.

    Args:
        tool: The tool.

    Returns:
        What the page shows of it: its version, and a verdict for each mistake and each noise.
    """
    described = {
        "name": tool.name,
        "command": tool.command,
        "purpose": tool.purpose,
        "documentation": tool.documentation,
        "marks": tool.marks or f"none, {tool.cannot_mark}",
        "remark": tool.remark,
        "date": datetime.now(UTC).date().isoformat(),
    }
    try:
        described["version"] = tool.version()
    except NotHere as reason:
        every = [mistake.id for mistake in MISTAKES] + noise_ids()
        absent = {"verdict": "not run", "note": str(reason)}
        return {**described, "version": "", "verdicts": {name: absent for name in every}}
    verdicts = {**_mistakes(tool), **_noises(tool, masked=False), **_noises(tool, masked=True)}
    return {**described, "verdicts": verdicts}


def noise_ids() -> list[str]:
    """The names of the verdicts on noises: in a page as it was made, and where it is marked."""
    return [noise_id(noise.id, masked) for masked in (False, True) for noise in NOISES]


def noise_id(name: str, masked: bool) -> str:
    """The name of the verdict on a noise."""
    return f"{name}, marked" if masked else name


def _mistakes(tool: Tool) -> Verdicts:
    right = {cell.name: cell.shows for cell in mistaken_pages([])[0].then}
    verdicts: Verdicts = {}
    expressible: list[Mistake] = []
    for mistake in MISTAKES:
        if reason := tool.cannot_show.get(right[mistake.cell]):
            verdicts[mistake.id] = {"verdict": "not expressible", "note": reason}
        else:
            expressible.append(mistake)
    in_page = [mistake for mistake in expressible if not mistake.module]
    outcome = _run(tool, mistaken_pages(in_page), green="right")
    for mistake in in_page:
        verdicts[mistake.id] = _verdict(outcome, mistake.id, mistake.cell, "caught", "missed")
    for mistake in expressible:
        if mistake.module:
            verdicts[mistake.id] = _stale(tool, mistake)
    return {mistake.id: verdicts[mistake.id] for mistake in MISTAKES}


def _noises(tool: Tool, masked: bool) -> Verdicts:
    names = {noise.id: noise_id(noise.id, masked) for noise in NOISES}
    if masked and tool.cannot_mark:
        note = {"verdict": "not expressible", "note": tool.cannot_mark}
        return {name: note for name in names.values()}
    outcome = _run(tool, noisy_pages(masked), green="as-made")
    return {
        names[noise.id]: _verdict(outcome, noise.id, noise.cell.name, "false alarm", "quiet")
        for noise in NOISES
    }


def _stale(tool: Tool, mistake: Mistake) -> dict[str, str]:
    """Checks the right page, changes a module that it imports, and checks it again."""
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        pages = _written(tool, folder, mistaken_pages([]))
        _check_green(tool.run(folder, [page.name for page in pages]), "right", alone=True)
        (folder / MODULE).write_text(MODULE_NOW, encoding="utf-8")
        outcome = tool.run(folder, [page.name for page in pages])
        return _verdict(outcome, "right", mistake.cell, "caught", "missed")


def _run(tool: Tool, pages: Sequence[Page], green: str) -> Outcome:
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        written = _written(tool, folder, pages)
        outcome = tool.run(folder, [page.name for page in written])
    _check_green(outcome, green)
    return outcome


def _written(tool: Tool, folder: Path, pages: Sequence[Page]) -> list[Page]:
    lay_out(folder)
    written = [page.without(tool.cannot_show) for page in pages]
    tool.write(folder, written)
    return written


def _check_green(outcome: Outcome, page: str, alone: bool = False) -> None:
    if page in outcome.places or (alone and outcome.status):
        raise RuntimeError(f"the right page is red: {outcome.places}\n{outcome.log}")
    if bool(outcome.status) != bool(outcome.places):
        raise RuntimeError(f"exit status {outcome.status}, {outcome.places}\n{outcome.log}")


def _verdict(outcome: Outcome, page: str, cell: str, red: str, green: str) -> dict[str, str]:
    """What a run says of a page; a failure counts when it is at the cell that is to blame."""
    places = outcome.places.get(page, {})
    if not places:
        return {"verdict": green}
    if cell not in places:
        raise RuntimeError(f"{page}: {places}, but {cell} is to blame\n{outcome.log}")
    return {"verdict": red, "place": places[cell]}
