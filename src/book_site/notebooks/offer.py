"""Offers the executed notebook of every page with cells, by the theme's menu or by a link.

Its prose is that of the page, in which references have become links.
"""

import html
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import nbformat
from docutils import nodes
from nbformat import NotebookNode, v4
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.config import Config

from book_site.notebooks import executed, pictures
from book_site.notebooks.markdown import CodeCell, parts
from verified_book.outputs.cells import is_cell

_HIDES_INPUT = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
# `glue` gives numbers to the text of the page, which the notebook has already.
_GLUE = re.compile(r"^from myst_nb import glue$", re.MULTILINE)
_STAND_IN = 'def glue(*_, **__): """Gives numbers to the text of the page."""'
_INSTALL = """\
install = False  # True, in the folder that the packages are installed from
if install:
    %pip install {}"""
_OF_THE_BUILD = {"evidence", "symbols"}
_HIDES_OUTPUT = {"hide-output", "hide-cell", "remove-output", "remove-cell"}


def offer(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Writes the notebook of a page next to its source, and tells the theme its name."""
    builder = app.builder
    if doctree is None or not isinstance(builder, StandaloneHTMLBuilder):
        return
    if builder.name == "singlehtml":  # has no page of its own for a chapter
        return
    name = f"{pagename}.ipynb"
    if context.get("sourcename") == name:  # Sphinx copies the source there
        name = f"{pagename}.executed.ipynb"
    target = Path(builder.outdir, "_sources", *name.split("/"))
    target.unlink(missing_ok=True)
    source = executed.path_of(app, pagename)
    indexes = [cell["cell_index"] for cell in doctree.findall(nodes.container) if is_cell(cell)]
    if not indexes or not source.is_file():
        return
    address = builder.config.html_baseurl
    url = urljoin(address, builder.get_target_uri(pagename)) if address else ""
    ran = nbformat.read(source, as_version=4)
    install = installed_by(ran, app.config)
    start = app.config.book_site_notebook_start.replace("{install}", install)
    if start and url:
        start += f"\n\nThe page that it was made from: <{url}>"
    notebook = assemble(ran, parts(context["body"], indexes, url), start, install)
    target.parent.mkdir(parents=True, exist_ok=True)
    # As `nbformat.write` does it, without its indents, a tenth of the file.
    text = json.dumps(notebook, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    target.write_text(f"{text}\n", encoding="utf-8")
    context["ipynb_source"] = name  # for the menu of sphinx-book-theme
    words = html.escape(app.config.book_site_notebook_link)
    if words and not _has_menu(builder):
        address = html.escape(context["pathto"](f"_sources/{name}", 1))
        link = f'<a class="reference download" href="{address}" download>{words}</a>'
        context["body"] += f'<p class="notebook-download">{link}</p>\n'


def offer_no_source(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Takes the source out of the theme's menu where the site has none (`html_copy_source`)."""
    if context.get("sourcename"):
        return
    for group in context.get("header_buttons", []):
        buttons = group.get("buttons", [])
        buttons[:] = [one for one in buttons if one.get("label") != "download-source-button"]


def _has_menu(builder: StandaloneHTMLBuilder) -> bool:
    """Whether the theme is sphinx-book-theme, or made from it."""
    folders = map(str, builder.theme.get_theme_dirs())  # strings before Sphinx 7.3
    return any("sphinx_book_theme" in folder for folder in folders)


def installed_by(ran: NotebookNode, config: Config) -> str:
    """What `pip install` needs for the cells of a notebook."""
    code = "\n".join(cell.source for cell in ran.cells if cell.cell_type == "code")
    more = {
        package
        for word, package in config.book_site_notebook_packages.items()
        if re.search(rf"\b{re.escape(word)}\b", code)
    }
    return " ".join(filter(None, [config.book_site_notebook_install, *sorted(more)]))


def assemble(
    ran: NotebookNode, page: Iterable[str | CodeCell], start: str = "", install: str = ""
) -> NotebookNode:
    """The notebook of a page: its prose as Markdown, and every code cell as it ran.

    Args:
        ran: The notebook that ran.
        page: The page's prose and the places of its cells.
        start: What the first cell says.
        install: What the cell after it installs, where it is asked to.

    Returns:
        A valid notebook. A cell that the page does not show stands before the next that it does.
    """
    waiting = {i: cell for i, cell in enumerate(ran.cells) if cell.cell_type == "code"}
    cells = [v4.new_markdown_cell(start)] if start else []
    if install:
        cells.append(v4.new_code_cell(_INSTALL.format(install)))
    for part in page:
        if isinstance(part, str):
            cells.append(v4.new_markdown_cell(part))
            continue
        for hidden in [i for i in waiting if i < part.index]:
            cells.append(_code_cell(waiting.pop(hidden)))
        cells.append(_code_cell(waiting.pop(part.index), part.folded))
    ends_in_works = bool(page) and str(page[-1]).startswith(f"## {LIST}\n")
    place = len(cells) - ends_in_works
    cells[place:place] = map(_code_cell, waiting.values())

    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    notebook = v4.new_notebook(cells=cells, metadata=_kernel_of(ran))
    nbformat.validate(notebook)
    return notebook


def _kernel_of(ran: NotebookNode) -> dict[str, Any]:
    """The metadata that Jupyter needs to open a notebook, with what a page may leave out."""
    kernel = dict(ran.metadata.get("kernelspec", {}))
    kernel.setdefault("name", "python3")
    language = ran.metadata.get("language_info", {"name": kernel.get("language", "python")})
    kernel.setdefault("language", language["name"])
    kernel.setdefault("display_name", "Python 3" if kernel["name"] == "python3" else kernel["name"])
    return {"kernelspec": kernel, "language_info": language}


def _code_cell(ran: NotebookNode, folded: bool = False) -> NotebookNode:
    """A cell with its outputs, folded in JupyterLab where the page folds or hides it."""
    cell = v4.new_code_cell(
        _GLUE.sub(_STAND_IN, ran.source),
        metadata=ran.metadata,
        outputs=[offered(output) for output in ran.outputs],
        execution_count=ran.execution_count,
    )
    tags = {tag.replace("_", "-") for tag in ran.metadata.get("tags", [])}
    hidden = {}
    if folded or tags & _HIDES_INPUT:
        hidden["source_hidden"] = True
    if folded or tags & _HIDES_OUTPUT:
        hidden["outputs_hidden"] = True
    if hidden:
        cell.metadata["jupyter"] = hidden
    return cell


def offered(output: NotebookNode) -> NotebookNode:
    """An output as a notebook has it: with images, and without what only the build asks for."""
    shown = pictures.with_images(output)
    if _OF_THE_BUILD & shown.get("metadata", {}).keys():
        rest = {key: of for key, of in shown.metadata.items() if key not in _OF_THE_BUILD}
        shown = NotebookNode({**shown, "metadata": NotebookNode(rest)})
    return shown


def setup(app: Sphinx) -> None:
    """Runs before the theme makes its buttons."""
    app.connect("html-page-context", offer, priority=450)
    app.connect("html-page-context", offer_no_source, priority=800)
