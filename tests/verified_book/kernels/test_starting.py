"""How kernels start: on sockets and in folders of their own, and once more if they fail."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from matplotlib.font_manager import FontManager
from nbformat.v4 import new_notebook
from sphinx.errors import SphinxError

from tests.verified_book.kernels.builds import Book
from verified_book.kernels import build as build_module
from verified_book.kernels import manager as managers
from verified_book.kernels import runtime_dir
from verified_book.kernels.clients import BookClient

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
    assert (
        "a_flaky: kernel 'flaky' did not start (Kernel died before replying to kernel_info)"
        in build.log
    )
    assert book.output("a_flaky") == "'tcp'"  # not known to be ipykernel
    assert book.output("index") == "'ipc'"
    broken, unknown = [text for text in build.warnings if re.match("(no )?kernel ", text)]
    assert (
        broken == "kernel 'broken' did not start, twice: Kernel died before replying to kernel_info"
    )
    assert unknown.startswith(
        "no kernel named 'unknown' is installed; installed are: broken, flaky"
    )
    assert "Traceback" not in build.log


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ([ValueError("one"), ValueError("one")], "one"),
        ([ValueError("one"), RuntimeError()], "one; then RuntimeError"),
    ],
)
def test_each_reason_why_a_kernel_did_not_start_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    errors: list[Exception],
    told: str,
):
    asked: list[dict[str, object]] = []

    async def fail(manager: AsyncKernelManager, **options: object) -> None:
        asked.append(options)
        raise errors[len(asked) - 1]

    monkeypatch.setattr(AsyncKernelManager, "start_kernel", fail)
    ours = runtime_dir.RuntimeDir()
    kernels = SimpleNamespace(
        runtime_dir=ours, server=None, page="page", environment=lambda log: {"ONE": "1"}
    )
    client = BookClient(new_notebook(), kernels=kernels, kernel_name="python3")
    with pytest.raises(managers.KernelStartError) as caught:
        client.start_new_kernel(cwd="folder")
    ours.close()
    assert str(caught.value) == f"kernel 'python3' did not start, twice: {told}"
    assert [(options["cwd"], options["env"]) for options in asked] == [("folder", {"ONE": "1"})] * 2
    assert caplog.messages == [
        "page: kernel 'python3' did not start (one); it is started once more"
    ]


def test_where_no_kernel_is_installed(monkeypatch: pytest.MonkeyPatch):
    manager = managers.BookKernelManager(kernel_name="none of these")
    monkeypatch.setattr(manager.kernel_spec_manager, "find_kernel_specs", lambda: {})
    with pytest.raises(
        managers.KernelStartError, match="'none of these' is installed; installed are: none"
    ):
        asyncio.run(manager.start_kernel())


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
print("MPLCONFIGDIR" in os.environ)
print(get_ipython().history_manager.hist_file)"""


def test_startup_files_of_the_user_are_not_run(tmp_path: Path):
    profile = tmp_path / ".ipython/profile_default/startup/first.py"
    profile.parent.mkdir(parents=True)
    profile.write_text("profile = 1\nprint('here')")
    (tmp_path / "startup.py").write_text("startup = 1\nprint('here')")
    book = Book(tmp_path / "book", {"nb_execution_mode": "force"})
    # nbclient keeps the history of no kernel that is called python3.
    kernel(tmp_path, "named", "-m", "ipykernel_launcher", "-f", "{connection_file}")
    book.page("index", OWN, kernel="named")
    places = {"HOME": str(tmp_path), "JUPYTER_PATH": str(tmp_path)}
    build = book.build("-W", PYTHONSTARTUP=str(tmp_path / "startup.py"), **places)
    assert build.status == 0, build.log
    names, folder, matplotlib, history = book.output().split("\n")
    assert names == "[]"
    assert Path(folder).name == "vb-"
    assert matplotlib == "True"
    assert history == ":memory:"


@pytest.mark.parametrize("home", ["file/below", "missing"])
def test_a_home_folder_that_cannot_be_written(tmp_path: Path, home: str):
    (tmp_path / "file").touch()
    book = Book(tmp_path / "book", {"nb_execution_mode": "force"})
    book.page("index", OWN)
    build = book.build("-W", HOME=str(tmp_path / home))
    assert build.status == 0, build.log
    assert book.output().split("\n")[:3:2] == ["[]", "True"]
    assert {path.name for path in tmp_path.iterdir()} >= {"file", "book"}
    assert not (tmp_path / "missing").exists()
    assert "not a writable location" not in build.log


def test_looking_for_kernels_makes_no_folder_in_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("IPYTHONDIR", raising=False)
    assert managers.InstalledKernels().kernel_dirs == KernelSpecManager().kernel_dirs
    (tmp_path / ".ipython").rmdir()  # Jupyter's has made it
    assert "python3" in managers.InstalledKernels().find_kernel_specs()
    assert not (tmp_path / ".ipython").exists()


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
    assert managers.is_ipykernel(KernelSpec(argv=argv, metadata=metadata)) is expected


def test_a_long_temporary_path_is_avoided_if_there_is_a_shorter_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(runtime_dir.tempfile, "gettempdir", lambda: str(long))
    found = runtime_dir.RuntimeDir()
    assert found.sockets
    assert not found.path.is_relative_to(long)
    assert found.path.stat().st_mode & 0o777 == 0o700
    found.close()
    assert not found.path.exists()
    found.close()


@pytest.mark.parametrize("name", ["gettempdir", "mkdtemp"])
def test_no_folder_at_all(monkeypatch: pytest.MonkeyPatch, name: str):
    def none(**options: str) -> str:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(runtime_dir.tempfile, name, none)
    with pytest.raises(SphinxError, match=r"be made \(no usable .*\); set TMPDIR to a folder"):
        runtime_dir.RuntimeDir()


def test_the_environment_of_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ONE", "1")
    monkeypatch.delenv("MPLCONFIGDIR", raising=False)
    ours = runtime_dir.RuntimeDir()
    found = ours.environment()
    assert "PYTEST_CURRENT_TEST" not in found
    assert found["MPLCONFIGDIR"] == str(ours.path / "matplotlib")
    assert found["ONE"] == "1"
    assert found["IPYTHONDIR"] == str(ours.path / "ipython")
    assert found["JUPYTER_RUNTIME_DIR"] == str(ours.path)
    monkeypatch.setenv("MPLCONFIGDIR", "of the user")
    assert ours.environment()["MPLCONFIGDIR"] == "of the user"
    ours.close()


FORMULA = """\
from matplotlib.figure import Figure
figure = Figure()
figure.text(0, 0, "$x^2$")
figure.savefig("figure.svg")
print("drawn")"""


LOGGED = """\
import logging
log = logging.getLogger("matplotlib.font_manager")
log.warning("Matplotlib is building the font cache; this may take a moment.")
log.warning("a font is missing")"""


def test_no_page_says_that_matplotlib_makes_its_list_of_fonts(tmp_path: Path):
    """It says so where this takes more than five seconds; what else it says is the page's."""
    book = Book(tmp_path / "book", {"nb_execution_mode": "force", "nb_output_stderr": "show"})
    book.page("index", LOGGED)
    build = book.build()
    assert build.status == 0, build.log
    assert book.output() == "a font is missing"


def test_a_damaged_list_of_fonts(tmp_path: Path):
    """Matplotlib trusts the list in the home folder, and warns if it misses fonts."""
    damaged = {"_version": str(FontManager.__version__), "ttflist": [], "afmlist": []}
    damaged |= {"__class__": "FontManager", "default_size": None}
    damaged |= {"defaultFamily": {"ttf": "DejaVu Sans", "afm": "Helvetica"}}
    damaged |= {"_FontManager__default_weight": "normal"}
    fonts = tmp_path / f".cache/matplotlib/fontlist-v{FontManager.__version__}.json"
    fonts.parent.mkdir(parents=True)
    fonts.write_text(json.dumps(damaged))
    book = Book(tmp_path / "book", {"nb_execution_mode": "force", "nb_execution_in_temp": True})
    book.page("index", FORMULA)
    build = book.build("-W", HOME=str(tmp_path))
    assert build.status == 0, build.log
    assert book.output() == "drawn"


@pytest.mark.skipif(runtime_dir.os.name != "posix", reason="no process clears up")
def test_a_runtime_dir_goes_when_nobody_is_left_who_holds_it():
    found = runtime_dir.RuntimeDir()
    watcher = found._reaper
    found.leave_to_owner()
    assert watcher.wait(60) == 0
    assert not found.path.exists()
    found.leave_to_owner()
    found.started(1)


def test_what_a_kernel_leaves_is_ended_with_it(monkeypatch: pytest.MonkeyPatch):
    said: list[object] = []
    found = runtime_dir.RuntimeDir()
    monkeypatch.setattr(runtime_dir.reaper, "kill_group", said.append)
    monkeypatch.setattr(found, "_report", said.append)
    found.started(12)
    found.ended(12)
    found.close()
    assert said == [b"+12\n", 12, b"-12\n"]


@pytest.mark.skipif(runtime_dir.os.name != "posix", reason="no process clears up")
def test_the_process_that_clears_up_has_no_terminal_and_is_not_missed():
    found = runtime_dir.RuntimeDir()
    watcher = found._reaper
    assert os.getsid(watcher.pid) == watcher.pid
    watcher.kill()
    watcher.wait()
    found.started(1)  # there is nobody to tell
    found.close()
    assert not found.path.exists()


@pytest.mark.parametrize(
    ("module", "sockets", "expected"),
    [
        ("ipykernel_launcher", True, "ipc"),
        ("bash_kernel", True, "tcp"),
        ("ipykernel_launcher", False, "tcp"),
    ],
)
def test_how_a_kernel_talks(module: str, sockets: bool, expected: str):
    ours = runtime_dir.RuntimeDir()
    ours.sockets = sockets
    manager = managers.BookKernelManager(runtime_dir=ours)
    files = []
    for _ in range(2):
        manager._take_address(KernelSpec(argv=["python", "-m", module]))
        files.append(Path(manager.connection_file))
        assert manager.transport == expected
        assert (manager.ip == str(files[-1].with_suffix(""))) is (expected == "ipc")
    ours.close()
    assert {path.parent for path in files} == {ours.path}
    assert {path.suffix for path in files} == {".json"}
    assert len({*files}) == 2


def test_a_kernel_is_under_watch_until_it_has_ended(monkeypatch: pytest.MonkeyPatch):
    ours, ended, states = runtime_dir.RuntimeDir(), [], iter([True, False])

    async def is_alive(manager: object) -> bool:
        return next(states)

    monkeypatch.setattr(managers.BookKernelManager, "is_alive", is_alive)
    monkeypatch.setattr(ours, "ended", ended.append)
    manager = managers.BookKernelManager(runtime_dir=ours)
    manager._pid = 12
    for told in ([], [12], [12]):
        asyncio.run(manager._after_end())
        assert ended == told
    ours.close()


def test_what_builds_have_made_is_not_noted(tmp_path: Path):
    (tmp_path / "book").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "book")
    app = app_for_kernels()
    names = ("out", "doctrees", "outputs", "cache")
    out, doctrees, outputs, cache = (str(tmp_path / "link" / name) for name in names)
    app.srcdir, app.outdir, app.doctreedir = tmp_path / "link", out, doctrees
    app.parallel = 1
    execution = SimpleNamespace(output_folder=outputs, execution_cache_path=cache)
    app.env = SimpleNamespace(mystnb_config=execution)
    kernels = build_module.Kernels(app)
    found = kernels.environment(tmp_path / "k1.log")
    kernels.close()
    folders = [str(tmp_path / name) for name in ("link", "book")]
    assert json.loads(found[runtime_dir.VARIABLE]) == {
        "log": str(tmp_path / "k1.log"),
        "sources": folders,
        "ignored": [f"{folder}/{name}" for name in names for folder in folders],
    }
    assert found["JUPYTER_RUNTIME_DIR"] != str(tmp_path)


def app_for_kernels() -> Any:
    return SimpleNamespace(config=SimpleNamespace())


def test_a_build_has_a_runtime_dir_once_it_asks_for_it():
    kernels = build_module.Kernels(app_for_kernels())
    kernels.close()
    path = kernels.runtime_dir.path
    assert kernels.runtime_dir.path == path
    kernels.close()
    assert not path.exists()


def test_a_path_that_is_too_long_has_no_sockets(tmp_path: Path):
    assert not runtime_dir._sockets_work(tmp_path / ("x" * 100))
