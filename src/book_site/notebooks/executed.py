"""The notebook of each page with all of its outputs, from reading the page until it is written.

MyST-NB writes it too, but without the outputs that come from its cache.
"""

from pathlib import Path

import nbformat
from docutils import nodes
from sphinx.application import Sphinx

from verified_book.outputs import client


def path_of(app: Sphinx, docname: str) -> Path:
    """Where MyST-NB writes the notebook of a page."""
    settings = app.env.mystnb_config  # type: ignore[attr-defined]  # MyST-NB adds it
    *folders, name = docname.split("/")
    return Path(settings.output_folder, *folders, f"{name}.ipynb")


def keep(app: Sphinx, doctree: nodes.document) -> None:
    """Writes the notebook of the page that is being read, over that of MyST-NB."""
    notebook = client.notebook_of_page(app)
    if notebook is not None:
        path = path_of(app, app.env.docname)
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)


def setup(app: Sphinx) -> None:
    """Runs when the cells of RST pages have run as well."""
    app.connect("doctree-read", keep, priority=600)
