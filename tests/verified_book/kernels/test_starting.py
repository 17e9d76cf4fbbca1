"""How kernels start: on sockets and in folders of their own, or with a sentence why they do not."""

import json
import re
import sys
from pathlib import Path

import pytest
from matplotlib.font_manager import FontManager

from tests.verified_book.kernels.builds import Book
from verified_book.kernels import runtime_dir

pytestmark = pytest.mark.xdist_group("kernels")

CONNECTION = """\
import ipykernel, json
json.load(open(ipykernel.get_connection_file()))["transport"]"""

UNKNOWN = """\
import runpy, sys
sys.argv[0] = "ipykernel_launcher"
runpy.run_module("ipykernel_launcher", run_name="__main__")
"""


def kernel(folder: Path, name: str, *argv: str, **metadata: object) -> None:
    """Writes a kernelspec."""
    path = folder / "kernels" / name / "kernel.json"
    path.parent.mkdir(parents=True)
    content = {"argv": [sys.executable, *argv], "display_name": name, "language": "python"}
    path.write_text(json.dumps({**content, "metadata": metadata}))


def test_kernels_of_each_kind_and_those_that_do_not_start(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(UNKNOWN)
    kernel(tmp_path, "script", str(script), "-f", "{connection_file}")
    kernel(tmp_path, "broken", "-c", "raise SystemExit(1)", "{connection_file}")
    by_jupyter = {"kernel_provisioner": {"provisioner_name": "local-provisioner"}}
    launcher = ("-m", "ipykernel_launcher", "-f", "{connection_file}")
    kernel(tmp_path, "own", *launcher, **by_jupyter)
    book = Book(tmp_path / "book", {"nb_execution_mode": "cache"})
    book.page("a_script", CONNECTION, kernel="script")
    book.page("a_own", CONNECTION, kernel="own")
    book.page("b_broken", "1", kernel="broken")
    book.page("c_unknown", "1", kernel="unknown")
    book.page("d_no_cells", kernel="broken")
    book.page("index", CONNECTION)
    build = book.build(JUPYTER_PATH=str(tmp_path))
    assert build.status == 0
    assert book.output("a_script") == "'tcp'"  # not known to be ipykernel
    assert book.output("a_own") == "'tcp'"  # started in a way of its own
    assert book.output("index") == "'ipc'"
    broken, unknown = [text for text in build.warnings if re.match("(no )?kernel ", text)]
    assert broken == "kernel 'broken' did not start: Kernel died before replying to kernel_info"
    assert unknown.startswith(
        "no kernel named 'unknown' is installed; installed are: broken, own, "
    )
    assert "Traceback" not in build.log


OWN = """\
import os
print([name for name in ("profile", "startup") if name in globals()])
print(os.path.commonpath([os.environ["IPYTHONDIR"], os.environ["JUPYTER_RUNTIME_DIR"]])[:-8])
print("MPLCONFIGDIR" in os.environ)
print(get_ipython().history_manager.hist_file)"""

FIGURE = """\
import logging
from matplotlib.figure import Figure
figure = Figure()
figure.text(0, 0, "$x^2$")
figure.savefig("figure.svg")
log = logging.getLogger("matplotlib.font_manager")
log.warning("Matplotlib is building the font cache; this may take a moment.")
log.warning("another warning")"""


def test_nothing_of_the_home_folder_reaches_a_page(tmp_path: Path):
    """No startup file, no history, no list of fonts; nor that Matplotlib makes one of its own."""
    profile = tmp_path / ".ipython/profile_default/startup/first.py"
    profile.parent.mkdir(parents=True)
    profile.write_text("profile = 1\nprint('here')")
    (tmp_path / "startup.py").write_text("startup = 1\nprint('here')")
    # Matplotlib trusts the list in the home folder, and warns if it misses fonts.
    damaged = {"_version": str(FontManager.__version__), "ttflist": [], "afmlist": []}
    damaged |= {"__class__": "FontManager", "default_size": None}
    damaged |= {"defaultFamily": {"ttf": "DejaVu Sans", "afm": "Helvetica"}}
    damaged |= {"_FontManager__default_weight": "normal"}
    fonts = tmp_path / f".cache/matplotlib/fontlist-v{FontManager.__version__}.json"
    fonts.parent.mkdir(parents=True)
    fonts.write_text(json.dumps(damaged))
    book = Book(tmp_path / "book", {"nb_execution_mode": "force", "nb_execution_in_temp": True})
    # nbclient keeps the history of no kernel that is called python3.
    kernel(tmp_path, "named", "-m", "ipykernel_launcher", "-f", "{connection_file}")
    book.page("index", OWN, FIGURE, kernel="named")
    places = {"HOME": str(tmp_path), "JUPYTER_PATH": str(tmp_path)}
    build = book.build("-W", PYTHONSTARTUP=str(tmp_path / "startup.py"), **places)
    assert build.status == 0, build.log
    names, folder, matplotlib, history, *said = book.output().split("\n")
    assert names == "[]"
    assert Path(folder).name == "vb-"
    assert matplotlib == "True"
    assert history == ":memory:"
    assert [line for line in said if line] == ["another warning"]


def test_a_long_temporary_path_is_avoided_if_there_is_a_shorter_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    long = tmp_path / ("x" * 100)
    long.mkdir()
    assert not runtime_dir._sockets_work(long)
    monkeypatch.setattr(runtime_dir.tempfile, "gettempdir", lambda: str(long))
    found = runtime_dir.RuntimeDir()
    assert found.sockets
    assert not found.path.is_relative_to(long)
    assert found.path.stat().st_mode & 0o777 == 0o700
    found.close()
    assert not found.path.exists()
    found.close()
