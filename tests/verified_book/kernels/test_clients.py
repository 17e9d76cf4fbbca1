"""What a page's run is asked for, and what is told of how it went."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from verified_book.kernels import clients

LOG = Path("k1.log")


class Client:
    """What stands for a client; it remembers its options."""

    raises: Exception | None = None

    def __init__(self, notebook: Any, **options: Any) -> None:
        Client.options = options
        self.log_of_files = LOG

    def execute(self) -> None:
        if self.raises is not None:
            raise self.raises


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The kernels of a build, which remember the logs of what has run."""
    monkeypatch.setattr(clients, "BookClient", Client)
    monkeypatch.setattr(Client, "raises", None)
    logs: list[Path | None] = []
    return SimpleNamespace(page="page", logs=logs, has_run=lambda nb, log: logs.append(log))


def notebook(**metadata: object) -> Any:
    return new_notebook(cells=[new_code_cell("1")], metadata=metadata)


def test_a_notebook_may_say_how_it_runs(kernels: Any):
    own = {"timeout": 9, "allow_errors": True}
    for metadata, override, expected in (
        ({}, True, (3, False)),
        ({"execution": own}, True, (9, True)),
        ({"execution": own}, False, (3, False)),
    ):
        clients.run_notebook(kernels, notebook(**metadata), None, 3, False, override)
        assert (Client.options["timeout"], Client.options["allow_errors"]) == expected
    assert Client.options["record_timing"] is False


def test_cells_run_in_the_folder_that_is_named(kernels: Any):
    done = clients.run_notebook(kernels, notebook(), "folder", 3, False, record_timing=True, more=1)
    assert (done.cwd, done.err, done.exc_string) == ("folder", None, None)
    assert Client.options["resources"] == {"metadata": {"path": "folder"}}
    assert (Client.options["record_timing"], Client.options["more"]) == (True, 1)
    clients.run_notebook(kernels, notebook(), None, 3, False)
    assert Client.options["resources"] == {}
    assert kernels.logs == [LOG, LOG]


def test_a_page_without_cells_has_run_at_once(kernels: Any):
    page = new_notebook(cells=[new_markdown_cell("Words.")])
    done = clients.run_notebook(kernels, page, "folder", 3, False)
    assert (done.nb, done.cwd, done.time, done.err) == (page, "folder", 0.0, None)
    assert kernels.logs == [None]


def test_an_error_is_told_with_its_traceback(kernels: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Client, "raises", ValueError("mine"))
    done = clients.run_notebook(kernels, notebook(), None, 3, False)
    assert done.err is Client.raises
    assert done.exc_string.startswith("Traceback")
    assert done.exc_string.endswith("ValueError: mine\n")
    assert kernels.logs == [LOG]
