"""The runtime directory of one process: where its kernels live, and who clears it up.

It holds their sockets, connection files, IPython's folder and Matplotlib's, so that kernels of
other builds, a home folder that cannot be written, a damaged list of fonts in it and a user's own
startup files are none of their concern.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import zmq
from sphinx.errors import SphinxError

from verified_book.kernels import audit_hook, fonts, reaper, replies, stdio

# Read by the configuration below, inside the kernel.
VARIABLE = "VERIFIED_BOOK_KERNEL"
_CONFIGURATION = f"""

os.environ.get("{VARIABLE}") and note_opened(**json.loads(os.environ["{VARIABLE}"]))
keep_order_in_kernel()
keep_quiet_about_fonts()
reply_without_traceback()
c = get_config()
c.InteractiveShellApp.exec_PYTHONSTARTUP = False
c.HistoryManager.hist_file = ":memory:"
"""


class RuntimeDir:
    """The folder of a process that runs kernels, removed when it ends in whatever way.

    Attributes:
        path: The folder, which only this user can enter.
        sockets: Whether kernels can have their sockets in it.
    """

    def __init__(self) -> None:
        self.path = _new_folder()
        self.sockets = _sockets_work(self.path)
        profile = self.path / "ipython/profile_default"
        profile.mkdir(parents=True)
        files = (audit_hook.__file__, stdio.__file__, fonts.__file__, replies.__file__)
        modules = [Path(name).read_text(encoding="utf-8") for name in files]
        text = "\n".join([*modules, _CONFIGURATION])
        (profile / "ipython_kernel_config.py").write_text(text, encoding="utf-8")
        self._count = 0
        self._reports: int | None = None
        self._reaper: subprocess.Popen[bytes] | None = None
        if os.name == "posix":
            self._start_reaper()

    def _start_reaper(self) -> None:
        """Starts the process that clears up."""
        end, self._reports = os.pipe()
        self._reaper = subprocess.Popen(
            [sys.executable, "-I", "-S", reaper.__file__, str(self.path)],
            stdin=end,
            stdout=subprocess.DEVNULL,  # who waits for the build's output need not wait for this
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # a Ctrl-C in the terminal is not for it
        )
        os.close(end)

    def folder(self, name: str) -> Path:
        """A new folder in it."""
        folder = self.path / name
        folder.mkdir()
        return folder

    def new_name(self) -> Path:
        """A path that no other kernel has, for the files of one."""
        self._count += 1
        return self.path / f"k{self._count}"

    def environment(self) -> dict[str, str]:
        """The environment of a kernel, without what it shall note."""
        environment = {
            # A list of fonts that another program left damaged makes Matplotlib write to stderr.
            "MPLCONFIGDIR": str(self.path / "matplotlib"),
            **os.environ,
            "IPYTHONDIR": str(self.path / "ipython"),
            "JUPYTER_RUNTIME_DIR": str(self.path),
        }
        # With it, ipykernel would leave out what child processes print.
        environment.pop("PYTEST_CURRENT_TEST", None)
        return environment

    def started(self, kernel: int) -> None:
        """Puts a kernel under watch."""
        self._report(b"+%d\n" % kernel)

    def ended(self, kernel: int) -> None:
        """Ends what a kernel that has ended may have left running."""
        if os.name == "posix":
            reaper.kill_group(kernel)
        self._report(b"-%d\n" % kernel)

    def _report(self, line: bytes) -> None:
        if self._reports is not None:
            with contextlib.suppress(OSError):  # somebody has killed it; the build goes on
                os.write(self._reports, line)

    def leave_to_owner(self) -> None:
        """Lets go of a directory that a process has inherited when it was forked."""
        if self._reports is not None:
            os.close(self._reports)
        self._reports = self._reaper = None

    def close(self) -> None:
        """Ends all kernels and removes the folder."""
        if self._reaper is not None and self._reports is not None:
            os.close(self._reports)
            self._reports = None
            self._reaper.wait()
        shutil.rmtree(self.path, ignore_errors=True)


def _new_folder() -> Path:
    """Makes the folder where the system has temporary ones, or at a path that sockets can have."""
    try:
        base = tempfile.gettempdir()
        short = "/tmp" if len(base) > 60 and os.access("/tmp", os.W_OK) else base
        return Path(tempfile.mkdtemp(prefix="vb-", dir=short))
    except OSError as error:
        raise SphinxError(
            f"no temporary folder for the kernels can be made ({error.strerror or error}); "
            "set TMPDIR to a folder that can be written"
        ) from error


def _sockets_work(folder: Path) -> bool:
    """Whether the platform has unix sockets, zmq knows them, and the path is short enough."""
    if os.name != "posix" or not zmq.has("ipc"):
        return False
    path = str(folder / "k9999-5")
    try:
        with socket.socket(socket.AF_UNIX) as trial:
            trial.bind(path)
        os.unlink(path)
    except OSError:
        return False
    return True
