"""What a page's run is asked for, and what is told of how it went."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyter_client.manager import AsyncKernelManager
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

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


def test_of_a_kernel_that_did_not_start_a_sentence_is_told(
    kernels: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(Client, "raises", clients.KernelStartError("no kernel, 100 %"))
    assert clients.run_notebook(kernels, notebook(), None, 3, False).exc_string == (
        "no kernel, 100 %"
    )
    (record,) = caplog.records
    assert record.getMessage() == "no kernel, 100 %"
    assert (record.location, record.type, record.subtype) == ("page", "verified_book", "kernel")


class Started:
    """What stands for MyST-NB's clients of a whole page."""

    raises: Exception | None = None
    exec_metadata = "from the cache"

    def start_client(self) -> None:
        if self.raises is not None:
            raise self.raises


class Direct(Started):
    """The client that needs no cache."""

    exec_metadata = "run"

    def __init__(self, *arguments: Any) -> None:
        assert arguments == ("notebook", "path", "nb_config", "logger")


class CacheClient(clients.BookCacheClient):
    """A client of the cache of a page."""

    notebook, path, nb_config, logger = "notebook", "path", "nb_config", "logger"
    exec_metadata = "from the cache"

    def __init__(self) -> None:
        self._kwargs = {"kernels": SimpleNamespace(page="page")}


@pytest.fixture
def cached(monkeypatch: pytest.MonkeyPatch) -> CacheClient:
    monkeypatch.setattr(clients.NotebookClientCache, "start_client", Started.start_client)
    monkeypatch.setattr(clients, "NotebookClientDirect", Direct)
    monkeypatch.setattr(CacheClient, "raises", None, raising=False)
    return CacheClient()


def failed(text: str, cause: str = "") -> Exception:
    error = ValueError(text)
    error.__cause__ = OSError(cause) if cause else None
    return error


def test_a_cache_that_works_is_all_that_is_needed(cached: CacheClient):
    cached.start_client()
    assert cached.exec_metadata == "from the cache"


@pytest.mark.parametrize(
    "error", [failed("mine\nand more"), failed("of the wrapper", "mine\nand more")]
)
def test_without_its_cache_a_page_runs_and_the_first_cause_is_told(
    cached: CacheClient, caplog: pytest.LogCaptureFixture, error: Exception
):
    cached.raises = error
    cached.start_client()
    assert cached.exec_metadata == "run"
    assert caplog.messages == ["page: the execution cache failed (mine); the page runs without"]


def test_an_error_of_a_page_that_must_not_fail_is_none_of_the_cache(cached: CacheClient):
    cached.raises = clients.ExecutionError("page.md")
    with pytest.raises(clients.ExecutionError, match=r"page\.md"):
        cached.start_client()
    assert cached.exec_metadata == "from the cache"


def test_another_kind_of_kernel_manager_is_refused():
    client = clients.BookClient(notebook(), kernel_manager_class=AsyncKernelManager)
    with pytest.raises(TypeError, match=r"kernel_manager_class is set to .*AsyncKernelManager"):
        client.create_kernel_manager()


class InlineClient(clients.BookInlineClient):
    """A client of a page whose cells run one by one."""

    path = Path("page.md")

    def __init__(self, raise_on_error: bool, outputs: list[object]) -> None:
        cell = new_code_cell("1", execution_count=7, outputs=outputs)
        self._notebook = new_notebook(cells=[cell])
        self._nb_config = SimpleNamespace(execution_raise_on_error=raise_on_error)
        self._kwargs = {"kernels": SimpleNamespace(page="page")}
        self._cell_error = None


@pytest.mark.parametrize("method", ["start_client", "code_cell_outputs"])
def test_an_inline_page_ends_where_its_kernel_does(monkeypatch: pytest.MonkeyPatch, method: str):
    error = RuntimeError("mine")

    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(clients.NotebookClientInline, method, fail)
    shown = [new_output("stream", text="one")]
    page, strict = InlineClient(False, shown), InlineClient(True, shown)
    arguments = [0] if method == "code_cell_outputs" else []
    found = getattr(page, method)(*arguments)
    assert found == ((7, shown) if arguments else None)
    assert page._cell_error is error
    assert page._exc_string.endswith("RuntimeError: mine\n")
    assert arguments or page._last_cell_executed == -1
    with pytest.raises(clients.ExecutionError, match=r"page\.md"):
        getattr(strict, method)(*arguments)
    assert strict._cell_error is None


def test_an_inline_page_that_must_not_fail_ends_with_its_cell(monkeypatch: pytest.MonkeyPatch):
    def fail(*arguments: object) -> None:
        raise clients.ExecutionError("of the cell")

    monkeypatch.setattr(clients.NotebookClientInline, "code_cell_outputs", fail)
    page = InlineClient(False, [])
    with pytest.raises(clients.ExecutionError, match="of the cell"):
        page.code_cell_outputs(0)
    assert page._cell_error is None


def test_the_outputs_of_an_inline_cell_are_those_of_myst_nb(monkeypatch: pytest.MonkeyPatch):
    found = (3, ["these"])
    monkeypatch.setattr(
        clients.NotebookClientInline, "code_cell_outputs", lambda page, place: (place, found)
    )
    assert InlineClient(True, []).code_cell_outputs(0) == (0, found)
