"""Starts a kernel of a build: on sockets of its own, forked where it can be."""

import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from jupyter_core.paths import jupyter_path
from sphinx.util import logging
from traitlets import Dict, Instance, Unicode, default

from verified_book.kernels.preloaded import (
    ForkServer,
    NotForkedError,
    PreloadedProvisioner,
    can_fork,
)
from verified_book.kernels.runtime_dir import RuntimeDir

logger = logging.getLogger(__name__)


class KernelStartError(Exception):
    """A kernel that did not start; the message is for the author of the page."""


class InstalledKernels(KernelSpecManager):
    """Looks for kernels where Jupyter does, and makes no folder for it.

    Jupyter's own asks IPython for its folder, which makes one, and warns on stderr where the home
    folder cannot be written.
    """

    @default("kernel_dirs")
    def _places(self) -> list[str]:
        ipython = os.path.expanduser(os.environ.get("IPYTHONDIR", "~/.ipython"))
        return [*jupyter_path("kernels"), os.path.join(ipython, "kernels")]


class BookKernelManager(AsyncKernelManager):
    """A kernel in the runtime directory of the process that runs it.

    Attributes:
        server: What kernels are forked from, if anything.
        page: The document that it runs, for messages.
        environment: The variables of the kernel.
    """

    runtime_dir = Instance(RuntimeDir)
    server = Instance(ForkServer, allow_none=True)
    page = Unicode()
    environment = Dict()
    _pid: int | None = None

    @default("kernel_spec_manager")
    def _installed_kernels(self) -> KernelSpecManager:
        return InstalledKernels(parent=self)

    async def start_kernel(self, **options: Any) -> None:  # type: ignore[override]  # an attribute there
        """Starts the kernel: forked if it can be, or else as ever."""
        try:
            spec = self.kernel_spec
        except NoSuchKernel as error:
            known = ", ".join(sorted(self.kernel_spec_manager.find_kernel_specs())) or "none"
            raise KernelStartError(
                f"no kernel named {self.kernel_name!r} is installed; installed are: {known}"
            ) from error
        options.setdefault("env", dict(self.environment))
        self._take_address(spec)
        self._take_provisioner(spec)
        try:
            await super().start_kernel(**options)
        except NotForkedError as error:
            self._do_without_server(error)
            self.provisioner = None
            await super().start_kernel(**options)
        self._put_under_watch()

    def _take_address(self, spec: KernelSpec | None) -> None:
        """Chooses sockets that no other kernel has, or leaves the choice of ports to Jupyter."""
        name = self.runtime_dir.new_name()
        self.connection_file = str(name.with_suffix(".json"))
        if is_ipykernel(spec) and self.runtime_dir.sockets:
            self.transport = "ipc"
            self.ip = str(name)

    def _take_provisioner(self, spec: KernelSpec | None) -> None:
        """Has the kernel forked, if there is something to fork it from."""
        if self.server is not None and spec is not None and is_ipykernel(spec) and can_fork(spec):
            self.kernel_id = self.kernel_id or str(uuid4())
            self.provisioner = PreloadedProvisioner(
                kernel_id=self.kernel_id, kernel_spec=spec, parent=self, server=self.server
            )

    def _do_without_server(self, error: NotForkedError) -> None:
        logger.warning(
            "verified_book_preload: kernels start without what was to be imported beforehand (%s)",
            str(error),
            type="verified_book",
            subtype="preload",
            once=True,
        )
        self.server = None

    def _put_under_watch(self) -> None:
        """Has the kernel ended when this process ends; others than processes of ours cannot be."""
        process = self.provisioner
        if isinstance(process, LocalProvisioner) and process.pid and process.pid == process.pgid:
            self._pid = process.pid
            self.runtime_dir.started(process.pid)

    async def cleanup_resources(self, restart: bool = False) -> None:  # type: ignore[override]  # so is its parent's
        """Removes what is left of the kernel."""
        await super().cleanup_resources(restart)
        await self._after_end()

    async def _after_end(self) -> None:
        if self._pid is not None and not await self.is_alive():
            self.runtime_dir.ended(self._pid)
            self._pid = None


def is_ipykernel(spec: KernelSpec | None) -> bool:
    """Whether a kernel is a Python process of this machine that runs ipykernel.

    Others may not know such sockets, or not see the folder that they are in, in a container say.
    """
    if spec is None or spec.metadata.get("kernel_provisioner"):
        return False
    command, *arguments = [*spec.argv, ""]
    if not re.fullmatch(r"(python|pypy)[\d.]*(\.exe)?", Path(command).name):
        return False
    module = dict(pairwise(arguments)).get("-m")
    return module in ("ipykernel", "ipykernel_launcher", "ipykernel.kernelapp")
