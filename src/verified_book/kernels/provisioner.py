"""Starts a kernel of a build, for Jupyter: on sockets of its own, and forked where it can be."""

import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from jupyter_core.paths import jupyter_path
from sphinx.util import logging
from traitlets import Instance, default

from verified_book.kernels.preloaded import ForkedProcess, ForkServer, NotForkedError, can_fork
from verified_book.kernels.runtime_dir import RuntimeDir

logger = logging.getLogger(__name__)


class InstalledKernels(KernelSpecManager):
    """Looks for kernels where Jupyter does, and makes no folder for it.

    Jupyter's own asks IPython for its folder, which makes one, and warns on stderr where the home
    folder cannot be written.
    """

    @default("kernel_dirs")
    def _places(self) -> list[str]:
        ipython = os.path.expanduser(os.environ.get("IPYTHONDIR", "~/.ipython"))
        return [*jupyter_path("kernels"), os.path.join(ipython, "kernels")]


class BookProvisioner(LocalProvisioner):
    """Starts a kernel in the runtime directory of this process, and has it ended with this process.

    Attributes:
        runtime_dir: Where the kernel's sockets and its connection file are.
        server: What kernels are forked from, if anything.
    """

    runtime_dir = Instance(RuntimeDir)
    server = Instance(ForkServer, allow_none=True)
    parent: Any  # the manager
    process: Any  # a Popen, or as much of it as is used
    _watched: int | None = None

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Chooses sockets that no other kernel has, or leaves the choice of ports to Jupyter."""
        name = self.runtime_dir.new_name()
        self.parent.connection_file = str(name.with_suffix(".json"))
        if self.runtime_dir.sockets and is_ipykernel(self.kernel_spec):
            self.parent.transport = "ipc"
            self.parent.ip = str(name)
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Starts the kernel: forked if it can be, or else as ever."""
        if not self._is_forked(cmd, **kwargs):
            await super().launch_kernel(cmd, **kwargs)
        if self.pid and self.pid == self.pgid:  # it leads a group, which can be ended
            self._watched = self.pid
            self.runtime_dir.started(self.pid)
        return self.connection_info

    def _is_forked(self, cmd: list[str], **kwargs: Any) -> bool:
        """Forks the kernel that a command would start, if there is something to fork it from."""
        spec = self.kernel_spec
        if self.server is None or not is_ipykernel(spec) or not can_fork(spec):
            return False
        folder = str(kwargs.get("cwd") or Path.cwd())
        try:
            pid = self.server.fork(cmd[cmd.index("-m") + 2 :], kwargs["env"], folder)
        except NotForkedError as error:
            logger.warning(
                "verified_book_preload: kernels start without what was to be imported beforehand "
                "(%s)",
                str(error),
                type="verified_book",
                subtype="preload",
                once=True,
            )
            return False
        self.pid = self.pgid = pid
        self.process = ForkedProcess(pid)
        self.cwd = Path(folder)
        return True

    async def cleanup(self, restart: bool = False) -> None:
        """Ends what a kernel that has ended has left."""
        await super().cleanup(restart)
        if self._watched is not None and await self.poll() is not None:
            self.runtime_dir.ended(self._watched)
            self._watched = None


def is_ipykernel(spec: KernelSpec) -> bool:
    """Whether a kernel is a Python process of this machine that runs ipykernel.

    Others may not know such sockets, or not see the folder that they are in, in a container say.
    """
    command, *arguments = [*spec.argv, ""]
    if not re.fullmatch(r"(python|pypy)[\d.]*(\.exe)?", Path(command).name):
        return False
    module = dict(pairwise(arguments)).get("-m")
    return module in ("ipykernel", "ipykernel_launcher", "ipykernel.kernelapp")
