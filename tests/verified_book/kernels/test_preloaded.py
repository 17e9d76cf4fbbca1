"""Kernels that are forked from a process with their imports: as others, but for those imports."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from jupyter_client.kernelspec import KernelSpec

from tests.verified_book.kernels.builds import Book, begun, lives, wait_until
from verified_book.kernels.preloaded import (
    ForkedProcess,
    ForkServer,
    NotForkedError,
    PreloadedProvisioner,
    can_fork,
)

pytestmark = [
    pytest.mark.xdist_group("kernels"),
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="kernels are forked on Linux alone"),
]

# Notes each process that imports it.
SLOW = """\
import os
with open(os.environ["IMPORTS"], "a") as log:
    print(os.getpid(), file=log)
"""
ALIKE = """\
import os, sys, slow, tempfile
print(os.getcwd(), __name__, sys.argv[0].rpartition("/")[2], sys.path[0] == "", sys.stdin.read())
print(os.getpid() == os.getpgid(0), os.system("exit 3") >> 8, "OWN" in os.environ)
"""


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A folder of modules that a build can import."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/slow.py").write_text(SLOW)
    (tmp_path / "modules/broken.py").write_text("1 / 0\n")
    (tmp_path / "modules/threaded.py").write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    )
    return tmp_path / "modules"


def book_with(tmp_path: Path, *preload: str, **config: object) -> Book:
    """A book whose kernels have modules."""
    settings = {"nb_execution_mode": "force", "verified_book_preload": [*preload], **config}
    return Book(tmp_path / "book", settings)


def environment_of(modules: Path) -> dict[str, str]:
    """What a build needs to find the modules."""
    path = os.pathsep.join([str(modules), os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": path, "IMPORTS": str(modules / "imports")}


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_is_named_is_imported_once_and_nothing_else_differs(
    tmp_path: Path, modules: Path, jobs: str
):
    shown, imports = [], []
    for preload in ((), ("slow",)):
        book = book_with(tmp_path, *preload)
        for name in ("index", "folder/a", "b", "c"):
            book.page(name, ALIKE)
        build = book.build("-E", "-j", jobs, **environment_of(modules))
        assert (build.status, build.warnings) == (0, [])
        assert "--existing" not in build.log  # no kernel says how to connect to it
        shown.append([book.output(name) for name in ("index", "folder/a", "b", "c")])
        imports.append(len((modules / "imports").read_text().split()))
        (modules / "imports").unlink()
    assert shown[0] == shown[1]
    assert f"{tmp_path / 'book/folder'} __main__ ipykernel_launcher" in shown[0][1]
    assert shown[0][0].endswith("True 3 False")
    assert imports == [4, 1]


def test_forked_kernels_draw_other_random_numbers(tmp_path: Path):
    book = book_with(tmp_path, "random")
    for name in ("index", "a"):
        book.page(name, "import random\nrandom.random()")
    assert book.build().status == 0
    assert book.output("index") != book.output("a")


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("missing", "missing: ModuleNotFoundError: No module named 'missing'"),
        ("broken", "broken: ZeroDivisionError: division by zero"),
        ("threaded", "threaded starts threads, which a forked process has not"),
    ],
)
def test_without_an_import_the_kernels_start_as_ever(
    tmp_path: Path, modules: Path, module: str, reason: str
):
    book = book_with(tmp_path, module)
    book.page("index", "1 + 1")
    book.page("other", "2 + 1")
    build = book.build(**environment_of(modules))
    told = (
        "verified_book_preload: kernels start without what was to be imported beforehand "
        f"({reason})"
    )
    assert (build.status, build.warnings) == (0, [told])
    assert (book.output("index"), book.output("other")) == ("2", "3")


def test_the_importing_process_is_killed(tmp_path: Path):
    book = book_with(tmp_path, "random")
    book.page("a", "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n1 + 1")
    book.page("index", "2 + 1")
    build = book.build()
    assert build.status == 0
    assert (book.output("a"), book.output("index")) == ("2", "3")
    assert "ConnectionRefusedError" in build.warnings[0]


def test_a_dead_kernel_ends_its_page_only(tmp_path: Path):
    book = book_with(tmp_path, "random")
    book.page("a_dead", "import os\nos._exit(1)", "'later'")
    book.page("index", "3 + 1")
    build = book.build()
    assert build.status == 0
    assert book.output("index") == "4"
    failures = [text for text in build.warnings if text.startswith("Executing")]
    assert failures == ["Executing notebook failed: DeadKernelError"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_of_a_build_that_is_ended(tmp_path: Path, number: int):
    book = book_with(tmp_path, "random")
    book.page("index", "import os\nopen('started', 'w').close()\nos.system('sleep 600')")
    build, found = begun(book)
    assert any("forkserver.py" in line for line in found.values())
    folders = re.findall(r"reaper\.py (\S+)", "\n".join(found.values()))
    assert folders
    os.kill(build.pid, number)
    wait_until(lambda: not any(map(lives, found)))
    wait_until(lambda: not any(Path(folder).exists() for folder in folders))


def test_a_forked_process():
    with subprocess.Popen(["sleep", "600"]) as child:
        process = ForkedProcess(child.pid)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 1
        assert process.wait() == 1  # there is nothing left to wait for
        assert process.poll() == 1
        process.send_signal(signal.SIGKILL)  # has nobody to end
    assert child.returncode == -signal.SIGTERM
    assert ForkedProcess(child.pid).poll() == 1
    assert ForkedProcess(child.pid).wait() == 1


OURS = f"python{sys.version_info.major}.{sys.version_info.minor}"
OTHERS = f"python{sys.version_info.major}.{sys.version_info.minor + 1}"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python", True),
        ("python3", True),
        (OURS, True),
        (sys.executable, True),
        ("python2", False),
        (OTHERS, False),
        ("/elsewhere/bin/python", False),
    ],
)
def test_kernels_of_another_python_are_not_forked(command: str, expected: bool):
    assert can_fork(KernelSpec(argv=[command, "-m", "ipykernel_launcher"])) is expected


def answered(folder: Path, answer: bytes) -> tuple[int | str, object]:
    """What comes of an answer to the request for a kernel, and the request."""
    server = ForkServer.__new__(ForkServer)
    server.address = str(folder / "forks")
    asked: list[object] = []
    with socket.socket(socket.AF_UNIX) as requests:
        requests.bind(server.address)
        requests.listen()

        def serve() -> None:
            connection, _ = requests.accept()
            with connection, connection.makefile("rwb") as stream:
                asked.append(json.loads(stream.readline()))
                stream.write(answer)

        thread = Thread(target=serve)
        thread.start()
        try:
            found: int | str = server.fork(["-f", "k1.json"], {"ONE": "1"}, "/book")
        except NotForkedError as error:
            found = str(error)
        thread.join()
    return found, asked[0]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b'{"pid": 12}\n', 12),
        (b'{"error": "no such module"}\n', "no such module"),
        (b"", "the importing process has ended"),
    ],
)
def test_a_kernel_is_asked_for(tmp_path: Path, answer: bytes, expected: int | str):
    request = {"arguments": ["-f", "k1.json"], "environment": {"ONE": "1"}, "folder": "/book"}
    assert answered(tmp_path, answer) == (expected, request)


class Forks(ForkServer):
    """What stands for a server; it remembers its requests."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def fork(self, arguments: list[str], environment: dict[str, str], folder: str) -> int:
        self.asked.append((arguments, environment, folder))
        return os.getpid()


def test_a_kernel_is_forked_with_what_its_command_says(tmp_path: Path):
    server = Forks()
    provisioner = PreloadedProvisioner(kernel_id="1", server=server)
    command = ["python", "-X", "dev", "-m", "ipykernel_launcher", "-f", "k1.json"]
    for cwd in (str(tmp_path), None):
        asyncio.run(provisioner.launch_kernel(command, env={"ONE": "1"}, cwd=cwd))
        assert provisioner.process.poll() is None
        assert (provisioner.pid, provisioner.pgid) == (os.getpid(), os.getpid())
        assert provisioner.cwd == (tmp_path if cwd else Path.cwd())
    assert server.asked == [
        (["-f", "k1.json"], {"ONE": "1"}, str(folder)) for folder in (tmp_path, Path.cwd())
    ]


def test_the_importing_process_has_no_terminal_and_ends_with_the_build(tmp_path: Path):
    server = ForkServer([], tmp_path / "forks", dict(os.environ))
    pid = server._process.pid
    assert os.getsid(pid) == pid
    server.close()
    assert server._process.returncode == 0
    server.close()
