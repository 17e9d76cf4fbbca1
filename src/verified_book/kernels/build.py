"""The kernels of one build, in its main process and in each process that it forks."""

import json
import os
from multiprocessing import util
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from verified_book.kernels import files, parallel_tasks, threads
from verified_book.kernels.preloaded import ForkServer
from verified_book.kernels.runtime_dir import VARIABLE, RuntimeDir


class Kernels:
    """What the kernels of a build share.

    Attributes:
        reads: Whether the build reads any page.
        server: What kernels are forked from, if modules are to be imported beforehand.
    """

    def __init__(self, app: Sphinx) -> None:
        self.app = app
        self.reads = False
        self.server: ForkServer | None = None
        self._runtime_dir: RuntimeDir | None = None
        self._process = os.getpid()
        # Processes that Sphinx forks are children of multiprocessing; kernels are not.
        util.register_after_fork(self, Kernels._forked)

    @property
    def runtime_dir(self) -> RuntimeDir:
        """Where the kernels of this process live."""
        if self._runtime_dir is None:
            self._runtime_dir = RuntimeDir()
        return self._runtime_dir

    @property
    def page(self) -> str:
        """The page that is being read."""
        return self.app.env.docname

    def environment(self, log: Path) -> dict[str, str]:
        """The environment of a kernel that notes in a log which files of the book it opens."""
        source = str(self.app.srcdir)
        settings = self.app.env.mystnb_config  # type: ignore[attr-defined]  # MyST-NB adds it
        made = [
            self.app.outdir,
            self.app.doctreedir,
            settings.output_folder,
            settings.execution_cache_path,
        ]
        orders = {
            "log": str(log),
            "sources": [os.path.abspath(source), os.path.realpath(source)],
            "ignored": [
                name(path) for path in made for name in (os.path.abspath, os.path.realpath)
            ],
        }
        return {
            **self.runtime_dir.environment(),
            **threads.environment(self.app),
            VARIABLE: json.dumps(orders),
        }

    def preload(self) -> None:
        """Makes what kernels are forked from, if modules are named and there can be sockets."""
        modules = list(self.app.config.verified_book_preload)
        if modules and self.server is None and self.runtime_dir.sockets:
            # Libraries read their number of threads when they are imported.
            environment = self.runtime_dir.environment() | threads.environment(self.app)
            self.server = ForkServer(modules, self.runtime_dir.path / "forks", environment)

    def has_run(self, notebook: Any, log: Path | None) -> None:
        """Remembers which files the page that is being read has opened."""
        files.remember(self.app, notebook.metadata, log)

    def _forked(self) -> None:
        """Makes a reader of pages end with the build, in a runtime directory of its own."""
        parallel_tasks.end_with(self._process)
        self._process = os.getpid()
        if self._runtime_dir is not None:
            self._runtime_dir.leave_to_owner()
            self._runtime_dir = None

    def close(self) -> None:
        """Ends what still runs, and removes the folder."""
        if self.server is not None:
            self.server.close()
            self.server = None
        if self._runtime_dir is not None:
            self._runtime_dir.close()
            self._runtime_dir = None
