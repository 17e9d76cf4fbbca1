"""Runs a page once more, and masks in its pending edits what has moved."""

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from myst_nb.core.execute import direct
from sphinx.application import Sphinx
from sphinx.util import logging

from verified_book.accepting.nondeterminism import folders, mask_lines, without_places
from verified_book.matching import agree, is_vacuous
from verified_book.outputs import client
from verified_book.outputs.cells import Cell
from verified_book.outputs.images import with_digests_of, without_digests
from verified_book.outputs.rendered import text_of
from verified_book.records import Edit

logger = logging.getLogger(__name__)

Wanted = Callable[[list[Cell]], list[Edit]]
"""The edits that a page needs if its cells print what these do."""


def second_run(app: Sphinx, cells: list[Cell]) -> list[Cell]:
    """The cells of the page that is being read, with what they print when they run once more."""
    config, notebook = client.configuration(app), deepcopy(client.notebook_of_page(app))
    if notebook is None:
        return []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    folder = Path(app.env.doc2path(app.env.docname)).parent
    place = TemporaryDirectory() if config.execution_in_temp else nullcontext(str(folder))
    with place as cwd:
        run = direct.single_nb_execution  # the kernels of the build, while it lasts
        result = run(
            notebook,
            cwd=os.path.abspath(cwd),
            timeout=config.execution_timeout,
            allow_errors=config.execution_allow_errors,
        )
    if result.err is not None:
        raise RuntimeError(str(result.err)) from result.err
    return [
        replace(cell, outputs=client.joined(notebook.cells[cell.index].outputs)) for cell in cells
    ]


def masked(
    app: Sphinx, cells: list[Cell], edits: list[Edit], wanted: Wanted = lambda again: []
) -> list[Edit]:
    """The edits of a page, with `...` for what a second run prints otherwise.

    Args:
        app: The Sphinx application.
        cells: The cells of the page, as they have run.
        edits: What they ask for.
        wanted: Tells what the second run asks for, whose outputs may agree with fewer blocks.
    """
    try:
        run = second_run(app, cells)
        edits_again = wanted(run)
    except Exception as error:  # the first run is what counts
        logger.warning(
            "verified_book: the second run failed, so nothing is masked: %s",
            error,
            location=app.env.docname,
            type="verified_book",
            subtype="volatile",
        )
        return edits
    first, again = ({cell.index: cell for cell in found} for found in (cells, run))
    known = {edit.cell for edit in edits}
    found = [_masked(edit, again.get(edit.cell)) for edit in edits] + [
        _masked(edit, first.get(edit.cell)) for edit in edits_again if edit.cell not in known
    ]
    names = folders(app.srcdir)
    return [_without_places(edit, names) for edit in found]


def _without_places(edit: Edit, names: Sequence[str]) -> Edit:
    """An edit that names neither this day nor folders of this machine, where it can."""
    new = without_places(edit.new, names)
    holds = agree(new, with_digests_of(new, edit.got), exact="exact" in edit.words)
    return _or_varies(edit, new) if holds else edit


def _masked(edit: Edit, again: Cell | None) -> Edit:
    if again is None:
        return edit
    second = text_of(again.shown, edit.words)
    if "digest" not in edit.words:
        second = without_digests(second)
    second = with_digests_of(edit.new, second)
    exact = "exact" in edit.words
    if agree(edit.new, second, exact=exact):
        return edit
    new = mask_lines(edit.new, edit.got, second, exact)
    # An empty text is refused.
    return _or_varies(edit, new or "...") if second.strip() else replace(edit, new="")


def _or_varies(edit: Edit, new: str) -> Edit:
    """An edit that writes another text, which may stand for any."""
    if not new.strip() or not is_vacuous(new):
        return replace(edit, new=new)
    adds = tuple(word for word in ("varies",) if word not in edit.words)
    return replace(edit, new="...", words=edit.words + adds, adds=edit.adds + adds)
