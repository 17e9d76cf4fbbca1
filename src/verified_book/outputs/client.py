"""Keeps the notebook that MyST-NB has run for the page that is being read.

MyST-NB writes it to a file, but without the outputs that come from its cache, and with streams
that it has merged for the page.
"""

from copy import deepcopy
from itertools import groupby
from typing import Any

from myst_nb import sphinx_ as myst_nb_parser
from myst_nb.core.config import NbParserConfig
from myst_nb.core.execute import NotebookClientBase
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

_KEY = "verified_book_client"
_create_client = myst_nb_parser.create_client


def keep_clients(app: Sphinx) -> None:
    """Lets the page that is being read hold the client that runs its notebook."""

    def create_client(*args: Any, **kwargs: Any) -> NotebookClientBase:
        client = _create_client(*args, **kwargs)
        outputs_of = client.code_cell_outputs

        def joined_outputs_of(index: int) -> tuple[int | None, list[NotebookNode]]:
            count, outputs = outputs_of(index)
            outputs[:] = joined(outputs)
            return count, deepcopy(outputs)  # what MyST-NB merges must not change the notebook

        client.code_cell_outputs = joined_outputs_of
        app.env.temp_data[_KEY] = client
        return client

    myst_nb_parser.create_client = create_client


def joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Outputs in which what a cell printed stands as it did, however often it was flushed.

    A kernel flushes by the clock, and MyST-NB would show each part on a line or in a box of its
    own. Each stream is flushed for itself, so their order tells nothing: between two other outputs,
    at which a kernel flushes both, stdout stands before stderr.
    """
    found: list[NotebookNode] = []
    for is_stream, run in groupby(outputs, lambda output: output["output_type"] == "stream"):
        if not is_stream:
            found += run
            continue
        streams: dict[str, NotebookNode] = {}
        for output in run:
            if output["name"] in streams:
                streams[output["name"]]["text"] += output["text"]
            else:
                streams[output["name"]] = output
        found += [streams[name] for name in sorted(streams, reverse=True)]
    return found


def give_back(app: Sphinx, exception: Exception | None) -> None:
    """Leaves MyST-NB as it was, for the next build of this process."""
    myst_nb_parser.create_client = _create_client


def notebook_in(env: BuildEnvironment) -> NotebookNode | None:
    """The notebook of the page that is being read, with its outputs; None if it has none."""
    client = env.temp_data.get(_KEY)
    return client.notebook if client is not None else None


def notebook_of_page(app: Sphinx) -> NotebookNode | None:
    """The same, by the application."""
    return notebook_in(app.env)


def configuration(app: Sphinx) -> NbParserConfig:
    """MyST-NB's settings for the page that is being read, its front matter's among them."""
    found: NbParserConfig = app.env.temp_data[_KEY].nb_config
    return found


def was_executed(app: Sphinx) -> bool:
    """Whether the outputs of the page that is being read come from a run, this one or a stored one.

    A page that a pattern excludes from execution may have no outputs.
    """
    client = app.env.temp_data[_KEY]
    return bool(client.exec_metadata) or any(c.get("outputs") for c in client.notebook.cells)


def execution_error(app: Sphinx) -> str | None:
    """The name of the error that ended the execution of the page that is being read, if one did."""
    return _execution(app).get("error")


def execution_message(app: Sphinx) -> str:
    """What is known of that error: a traceback, or a sentence for a kernel that did not start."""
    return str(_execution(app).get("traceback", ""))


def _execution(app: Sphinx) -> dict[str, Any]:
    client = app.env.temp_data.get(_KEY)
    return (client.exec_metadata or {}) if client is not None else {}


def setup(app: Sphinx) -> None:
    """Hooks into MyST-NB for as long as a build takes."""
    app.connect("builder-inited", keep_clients)
    app.connect("build-finished", give_back)
