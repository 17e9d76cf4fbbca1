"""How kernels start: on sockets and in folders of their own, and once more if they fail."""

import json
import re
import sys
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpec

from tests.verified_book.kernels.builds import Book
from verified_book.kernels import quarters
from verified_book.kernels.manager import is_ipykernel

pytestmark = pytest.mark.xdist_group("kernels")

CONNECTION = """\
import ipykernel, json
json.load(open(ipykernel.get_connection_file()))["transport"]"""

FLAKY = """\
import os, runpy, sys
marker = sys.argv.pop(1)
if not os.path.exists(marker):
    open(marker, "w").close()
    sys.exit(1)
sys.argv[0] = "ipykernel_launcher"
runpy.run_module("ipykernel_launcher", run_name="__main__")
"""


def kernel(folder: Path, name: str, *argv: str) -> None:
    """Writes a kernelspec."""
    path = folder / "kernels" / name / "kernel.json"
    path.parent.mkdir(parents=True)
    content = {"argv": [sys.executable, *argv], "display_name": name, "language": "python"}
    path.write_text(json.dumps(content))


def test_kernels_that_fail_to_start(tmp_path: Path):
    script = tmp_path / "flaky.py"
    script.write_text(FLAKY)
    kernel(tmp_path, "flaky", str(script), str(tmp_path / "marker"), "-f", "{connection_file}")
    kernel(tmp_path, "broken", "-c", "raise SystemExit(1)", "{connection_file}")
    book = Book(tmp_path / "book", {"nb_execution_mode": "cache"})
    book.page("a_flaky", CONNECTION, kernel="flaky")
    book.page("b_broken", "1", kernel="broken")
    book.page("c_unknown", "1", kernel="unknown")
    book.page("d_no_cells", kernel="broken")
    book.page("index", CONNECTION)
    build = book.build(JUPYTER_PATH=str(tmp_path))
    assert build.status == 0
    assert "a_flaky: kernel 'flaky' did not start (it ended before it answered)" in build.log
    assert book.output("a_flaky") == "'tcp'"  # not known to be ipykernel
    assert book.output("index") == "'ipc'"
    broken, unknown = [text for text in build.warnings if re.match("(no )?kernel ", text)]
    assert broken == "kernel 'broken' did not start, twice: it ended before it answered"
    assert unknown.startswith(
        "no kernel named 'unknown' is installed; installed are: broken, flaky"
    )
    assert "Traceback" not in build.log


def test_builds_at_once(tmp_path: Path):
    books = [Book(tmp_path / f"book{number}", {"nb_execution_mode": "force"}) for number in (1, 2)]
    for book in books:
        for number in range(1, 4):
            book.page(f"page{number}", f"{number} * 7", CONNECTION)
        for number in range(4):  # fewer pages are read by one process
            book.page(f"text{number}" if number else "index")
    builds = [book.start("-W", "-j", "2") for book in books]
    for book, build in zip(books, builds, strict=True):
        assert build.status == 0, build.log
        for number in range(1, 4):
            assert book.output(f"page{number}").split() == [str(number * 7), "'ipc'"]


OWN = """\
import os
print([name for name in ("profile", "startup") if name in globals()])
print(os.path.commonpath([os.environ["IPYTHONDIR"], os.environ["JUPYTER_RUNTIME_DIR"]])[:-8])
print("MPLCONFIGDIR" in os.environ)"""


def test_startup_files_of_the_user_are_not_run(tmp_path: Path):
    profile = tmp_path / ".ipython/profile_default/startup/first.py"
    profile.parent.mkdir(parents=True)
    profile.write_text("profile = 1\nprint('here')")
    (tmp_path / "startup.py").write_text("startup = 1\nprint('here')")
    book = Book(tmp_path / "book", {"nb_execution_mode": "force"})
    book.page("index", OWN)
    build = book.build("-W", HOME=str(tmp_path), PYTHONSTARTUP=str(tmp_path / "startup.py"))
    assert build.status == 0, build.log
    names, folder, matplotlib = book.output().split("\n")
    assert names == "[]"
    assert Path(folder).name == "vb-"
    assert matplotlib == "False"


@pytest.mark.parametrize("home", ["file/below", "missing"])
def test_a_home_folder_that_cannot_be_written(tmp_path: Path, home: str):
    (tmp_path / "file").touch()
    book = Book(tmp_path / "book", {"nb_execution_mode": "force"})
    book.page("index", OWN)
    build = book.build("-W", HOME=str(tmp_path / home))
    assert build.status == 0, build.log
    assert book.output().split("\n")[0::2] == ["[]", "True"]
    assert {path.name for path in tmp_path.iterdir()} >= {"file", "book"}
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize(
    ("argv", "metadata", "expected"),
    [
        (["/x/python3.11", "-m", "ipykernel_launcher", "-f", "{connection_file}"], {}, True),
        (["python", "-X", "frozen_modules=off", "-m", "ipykernel", "-f", "f"], {}, True),
        (["pypy3", "-m", "ipykernel_launcher", "-f", "f"], {}, True),
        (["python", "-m", "bash_kernel", "-f", "f"], {}, False),
        (["python", "-m"], {}, False),
        (["python", "script.py", "ipykernel_launcher"], {}, False),
        (["docker", "run", "x", "python", "-m", "ipykernel_launcher"], {}, False),
        (["R", "--slave", "-e", "IRkernel::main()"], {}, False),
        (["python", "-m", "ipykernel_launcher"], {"kernel_provisioner": {"n": 1}}, False),
        ([], {}, False),
    ],
)
def test_which_kernels_have_sockets(argv: list[str], metadata: dict[str, object], expected: bool):
    assert is_ipykernel(KernelSpec(argv=argv, metadata=metadata)) is expected


def test_a_long_temporary_path_is_avoided_if_there_is_a_shorter_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(quarters.tempfile, "gettempdir", lambda: str(long))
    found = quarters.Quarters()
    assert found.sockets
    assert not found.path.is_relative_to(long)
    assert found.path.stat().st_mode & 0o777 == 0o700
    found.close()
    assert not found.path.exists()


def test_a_path_that_is_too_long_has_no_sockets(tmp_path: Path):
    assert not quarters._sockets_work(tmp_path / ("x" * 100))


def test_transports(tmp_path: Path):
    book = Book(tmp_path / "book", {"nb_execution_mode": "force"})
    book.page("index", CONNECTION)
    book.build("-D", "verified_book_transport=tcp")
    assert book.output() == "'tcp'"
    build = book.build("-D", "verified_book_transport=carrier pigeon")
    assert build.status == 2
    assert "verified_book_transport is 'carrier pigeon'; it can be auto, ipc or tcp" in build.log
