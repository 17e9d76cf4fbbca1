"""Runs a page once more, and masks in its pending edits what has moved."""

import os
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from myst_nb.core.execute import direct
from sphinx.application import Sphinx
from sphinx.util import logging

from verified_book.accepting.volatile import mask_lines
from verified_book.matching import agree
from verified_book.outputs import client
from verified_book.outputs.cells import Cell
from verified_book.outputs.images import with_digests_of, without_digests
from verified_book.outputs.shown import text_of
from verified_book.records import Edit

logger = logging.getLogger(__name__)


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


def masked(app: Sphinx, cells: list[Cell], edits: list[Edit]) -> list[Edit]:
    """The edits of a page, with `...` for what a second run prints otherwise."""
    try:
        again: dict[int | None, Cell] = {cell.index: cell for cell in second_run(app, cells)}
    except Exception as error:  # the first run is what counts
        logger.warning(
            "verified_book: the second run failed, so nothing is masked: %s",
            error,
            location=app.env.docname,
            type="verified_book",
            subtype="volatile",
        )
        return edits
    return [_masked(edit, again.get(edit.mends.cell)) for edit in edits]


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
    # An empty text is refused, as one that agrees with anything.
    return replace(edit, new=new or "")
