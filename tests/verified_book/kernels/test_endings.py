"""However a build ends, nothing of it goes on: no reader, no kernel, nothing that a cell began."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.verified_book.kernels.builds import Book, begun, lives, wait_until

pytestmark = [
    pytest.mark.xdist_group("kernels"),
    pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="looks into /proc"),
]

STARTS = "import subprocess\nsubprocess.Popen(['sleep', '600'])"
# C code that never lets another thread of the kernel run: no watcher inside of it can help.
BUSY = f"{STARTS}\nopen('started', 'w').close()\nsum(range(10**12))"
GRACE = 60  # seconds; it takes one of them on an idle machine, and the sleep would take 600


def nothing_is_left(found: dict[int, str]) -> None:
    """Waits until all processes have ended and their folders are gone."""
    wait_until(lambda: not any(map(lives, found)), GRACE)
    folders = {Path(name).parent for name in re.findall(r"-f (\S+)", "\n".join(found.values()))}
    assert folders
    wait_until(lambda: not any(folder.exists() for folder in folders), GRACE)


@pytest.fixture
def book(tmp_path: Path) -> Book:
    book = Book(tmp_path / "book", {"nb_execution_mode": "force"})
    book.page("index", BUSY)
    return book


def test_the_main_process_of_parallel_readers_is_killed(book: Book):
    for number in range(6):
        book.page(f"page{number}", BUSY)
    build, found = begun(book, "-j", "2")
    os.kill(build.pid, signal.SIGKILL)
    nothing_is_left(found)


def test_ctrl_c(book: Book):
    build, found = begun(book)
    os.kill(build.pid, signal.SIGINT)
    assert build.status == 2
    assert "Interrupted!" in build.log
    nothing_is_left(found)


def test_a_dead_kernel_and_a_time_limit_end_their_pages_only(tmp_path: Path):
    book = Book(tmp_path / "book", {"nb_execution_mode": "inline"})
    pid = tmp_path / "pid"
    died = f"import os\nopen({str(pid)!r}, 'w').write(str(subprocess.Popen(['sleep', '600']).pid))"
    book.page("a_dead", "import subprocess\n1 + 1", f"{died}\nos._exit(1)", "'later'")
    limit = "mystnb: {execution_timeout: 4}"  # the first cell must be done meanwhile, under load
    book.page("b_slow", "2 + 1", "import time\ntime.sleep(600)", "'later'", front=limit)
    book.page("index", "3 + 1")
    build = book.build()
    assert build.status == 0
    assert book.output("index") == "4"
    assert book.output("a_dead") == "2"
    assert book.output("b_slow") == "3"
    failures = [text for text in build.warnings if text.startswith("Executing")]
    assert failures == [
        f"Executing notebook failed: {name}" for name in ("DeadKernelError", "CellTimeoutError")
    ]
    assert not lives(int(pid.read_text()))  # what the dead kernel had started
