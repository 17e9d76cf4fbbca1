"""Runs the cells of a page in a kernel of the build; whatever happens ends that page only."""

import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from jupyter_cache.executors.utils import ExecutionResult
from jupyter_cache.utils import Timer
from jupyter_client.kernelspec import NoSuchKernel
from jupyter_client.manager import KernelManager
from myst_nb.core.execute.base import ExecutionError
from myst_nb.core.execute.cache import NotebookClientCache
from myst_nb.core.execute.direct import NotebookClientDirect
from myst_nb.core.execute.inline import ModifiedNotebookClient, NotebookClientInline
from nbclient import NotebookClient
from nbclient.util import run_sync
from nbformat import NotebookNode
from sphinx.util import logging
from traitlets import Any as AnyTrait
from traitlets import default

from verified_book.kernels.build import Kernels
from verified_book.kernels.provisioner import BookProvisioner, InstalledKernels
from verified_book.kernels.raised import note_error

logger = logging.getLogger(__name__)


class KernelStartError(Exception):
    """A kernel that did not start; the message is for the author of the page."""


class BookClient(NotebookClient):
    """Runs a notebook in a kernel of the build.

    Attributes:
        kernels: The kernels of the build.
        log_of_files: Where its kernel notes the files that it opens, once there is one.
    """

    kernels = AnyTrait()
    log_of_files: Path | None = None

    @default("shutdown_kernel")
    def _at_once(self) -> str:
        return "immediate"  # a polite end takes a second a page; a kernel has nothing to lose

    @default("on_cell_executed")
    def _note_error(self) -> Any:
        return note_error

    def create_kernel_manager(self) -> KernelManager:
        """Makes the manager of a kernel that lives in the runtime directory of this process."""
        kernels: Kernels = self.kernels
        manager = super().create_kernel_manager()
        manager.kernel_spec_manager = InstalledKernels()
        try:
            spec = manager.kernel_spec
        except NoSuchKernel as error:
            known = ", ".join(sorted(manager.kernel_spec_manager.find_kernel_specs())) or "none"
            raise KernelStartError(
                f"no kernel named {self.kernel_name!r} is installed; installed are: {known}"
            ) from error
        own = spec is not None and spec.metadata.get("kernel_provisioner")
        if not own:  # or it is started in a way of its own
            manager.provisioner = BookProvisioner(
                parent=manager,
                kernel_id=str(uuid4()),
                kernel_spec=spec,
                runtime_dir=kernels.runtime_dir,
                server=kernels.server,
            )
        return manager

    async def async_start_new_kernel(self, **options: Any) -> None:
        """Starts the kernel and waits until it answers."""
        try:
            self.km = self.km or self.create_kernel_manager()
            self.log_of_files = self.kernels.runtime_dir.new_name().with_suffix(".log")
            environment = self.kernels.environment(self.log_of_files)
            await super().async_start_new_kernel(env=environment, **options)
            await super().async_start_new_kernel_client()
        except KernelStartError:
            raise
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise KernelStartError(
                f"kernel {self.kernel_name!r} did not start: {reason}"
            ) from error

    start_new_kernel = run_sync(async_start_new_kernel)

    def start_new_kernel_client(self) -> Any:
        """The client by which the kernel has answered when it was started."""
        return self.kc

    @asynccontextmanager
    async def async_setup_kernel(self, **options: Any) -> AsyncIterator[None]:
        """Starts a kernel and ends it.

        Unlike its original it handles no signals, for which that ends the page and goes on with the
        next: Ctrl-C ends the build, and the reaper the kernel.
        """
        try:
            await self.async_start_new_kernel(**options)
            yield
        finally:
            if self.km is not None:
                await self._async_cleanup_kernel()


def run_notebook(
    kernels: Kernels,
    nb: NotebookNode,
    cwd: str | None,
    timeout: int | None,
    allow_errors: bool,
    meta_override: bool = True,
    record_timing: bool = False,
    **options: Any,
) -> ExecutionResult:
    """Does what `jupyter_cache.executors.utils.single_nb_execution` does, and never raises.

    A page without cells needs no kernel.
    """
    if not any(cell.cell_type == "code" for cell in nb.cells):
        kernels.has_run(nb, None)
        return ExecutionResult(nb, cwd, 0.0)
    own = nb.metadata.get("execution", {}) if meta_override else {}
    client = BookClient(
        nb,
        kernels=kernels,
        resources={"metadata": {"path": cwd}} if cwd is not None else {},
        timeout=own.get("timeout", timeout),
        allow_errors=own.get("allow_errors", allow_errors),
        record_timing=record_timing,
        **options,
    )
    error = None
    timer = Timer()
    with timer:
        try:
            client.execute()
        except Exception as raised:  # a cell, its time limit, a dead kernel, a bad message ...
            error = raised
    kernels.has_run(nb, client.log_of_files)
    text = told(kernels, error) if error else None
    return ExecutionResult(nb, cwd, timer.last_split, error, text)


def told(kernels: Kernels, error: Exception) -> str:
    """What MyST-NB reports of an error; of a kernel that did not start, a sentence."""
    if not isinstance(error, KernelStartError):
        return "".join(traceback.format_exception(error))
    logger.warning("%s", error, location=kernels.page, type="verified_book", subtype="kernel")
    return str(error)


class InlineCells(BookClient, ModifiedNotebookClient):  # type: ignore[misc]  # untyped
    """Runs single cells, as MyST-NB's inline mode asks for them."""


class BookInlineClient(NotebookClientInline):  # type: ignore[misc]  # untyped
    """MyST-NB's inline mode, in which a kernel that dies, or never lived, ends its page only."""

    _client: InlineCells
    _cell_error: Exception | None

    @property
    def kernels(self) -> Kernels:
        """The kernels of the build."""
        return self._kwargs["kernels"]

    def start_client(self) -> None:
        """Starts the kernel."""
        try:
            super().start_client()
        except Exception as error:
            self._last_cell_executed = -1
            self._end_page(error)

    def code_cell_outputs(self, cell_index: int) -> tuple[int | None, list[NotebookNode]]:
        """Runs the cells up to this one, and gives its outputs."""
        cell = self.notebook.cells[cell_index]
        try:
            return super().code_cell_outputs(cell_index)
        except ExecutionError:
            raise
        except Exception as error:
            self._end_page(error)
            return cell.get("execution_count"), cell.get("outputs", [])

    def _end_page(self, error: Exception) -> None:
        """Lets no further cell run."""
        self._exc_string = told(self.kernels, error)
        if self.nb_config.execution_raise_on_error:
            raise ExecutionError(str(self.path)) from error
        self._cell_error = error

    def close_client(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        """Ends the kernel."""
        log = self._client.log_of_files
        self._client.owns_km = self._client.km is not None  # or there is nothing to end
        super().close_client(exc_type, exc_val, exc_tb)
        self.kernels.has_run(self.notebook, log)


class BookCacheClient(NotebookClientCache):  # type: ignore[misc]  # untyped
    """MyST-NB's cache mode, in which a cache that fails costs time, and nothing else."""

    def start_client(self) -> None:
        """Takes the outputs from the cache, or runs the page."""
        try:
            super().start_client()
        except ExecutionError:
            raise
        except Exception as error:
            reason = str(error.__cause__ or error).partition("\n")[0]
            page = self._kwargs["kernels"].page
            logger.info("%s: the execution cache failed (%s); the page runs without", page, reason)
            direct = NotebookClientDirect(self.notebook, self.path, self.nb_config, self.logger)
            direct.start_client()
            self.exec_metadata = direct.exec_metadata


def of_build(kernels: Kernels) -> dict[str, Any]:
    """What takes the place of which of MyST-NB's names."""
    run = partial(run_notebook, kernels)
    return {
        "myst_nb.core.execute.cache.single_nb_execution": run,
        "myst_nb.core.execute.direct.single_nb_execution": run,
        "myst_nb.core.execute.inline.ModifiedNotebookClient": partial(InlineCells, kernels=kernels),
        "myst_nb.core.execute.NotebookClientCache": partial(BookCacheClient, kernels=kernels),
        "myst_nb.core.execute.NotebookClientInline": partial(BookInlineClient, kernels=kernels),
    }
