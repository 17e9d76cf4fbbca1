"""Kernels that are forked from a process with their imports: as others, but for those imports."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpec

from tests.verified_book.kernels.builds import Book, begun, lives, wait_until
from verified_book.kernels.preloaded import (
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
DRAWN = "import random\nprint('drawn', random.random())"


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


def test_what_is_named_is_imported_once_and_nothing_else_differs(tmp_path: Path, modules: Path):
    shown, imports = [], []
    for preload in ((), ("random", "slow")):
        book = book_with(tmp_path, *preload)
        for name in ("index", "folder/a", "b", "c"):
            book.page(name, ALIKE, DRAWN)
        for number in range(2):  # fewer pages are read by one process
            book.page(f"text{number}")
        build = book.build("-E", "-j", "2", **environment_of(modules))
        assert (build.status, build.warnings) == (0, [])
        assert "--existing" not in build.log  # no kernel says how to connect to it
        found = [book.output(name) for name in ("index", "folder/a", "b", "c")]
        assert len({output.rpartition("drawn")[2] for output in found}) == 4
        shown.append([output.rpartition("drawn")[0].strip() for output in found])
        imports.append(len((modules / "imports").read_text().split()))
        (modules / "imports").unlink()
    assert shown[0] == shown[1]
    assert f"{tmp_path / 'book/folder'} __main__ ipykernel_launcher" in shown[0][1]
    assert shown[0][0].endswith("True 3 False")
    assert imports == [4, 1]


@pytest.mark.parametrize(
    ("module", "reason"),
    [
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


def test_nothing_is_left_of_a_build_that_is_killed(tmp_path: Path):
    book = book_with(tmp_path, "random")
    book.page("index", "import os\nopen('started', 'w').close()\nos.system('sleep 600')")
    build, found = begun(book)
    assert any("forkserver.py" in line for line in found.values())
    folders = re.findall(r"reaper\.py (\S+)", "\n".join(found.values()))
    assert folders
    os.kill(build.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(lives, found)))
    wait_until(lambda: not any(Path(folder).exists() for folder in folders))


OURS = f"python{sys.version_info.major}.{sys.version_info.minor}"
OTHERS = f"python{sys.version_info.major}.{sys.version_info.minor + 1}"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (OURS, True),
        (OTHERS, False),
        ("/elsewhere/bin/python", False),
    ],
)
def test_kernels_of_another_python_are_not_forked(command: str, expected: bool):
    assert can_fork(KernelSpec(argv=[command, "-m", "ipykernel_launcher"])) is expected
