"""What differs is named: the line of a page with both texts, and the test with its reason."""

import json
import subprocess
from pathlib import Path

import pytest

from tools.processors import __main__ as processors
from tools.processors import runs
from tools.processors.kinds import KINDS, Kind
from tools.processors.runs import Surroundings, differing_cells, failing_tests

OWN, NONE = KINDS[:2]
PAGE = """\
---
file_format: mystnb
kernelspec: {name: python3, display_name: Python 3}
---
# Page

```{code-cell} ipython3
import os
open("../runs", "a").write("x")
print(os.environ.get("ATEN_CPU_CAPABILITY"), os.environ["OMP_NUM_THREADS"])
```

```{expect-output}
None 1
```
"""
TESTS = """\
import os

def test_kind():
    assert os.environ.get("ATEN_CPU_CAPABILITY") is None, "this is no plain processor"

def test_threads():
    assert int(os.environ["OMP_NUM_THREADS"]) in (1, 2)
"""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book of a page that differs."""
    folder = tmp_path / "book"
    folder.mkdir()
    (folder / "index.md").write_text(PAGE, encoding="utf-8")
    conf = 'extensions = ["verified_book"]\nnb_execution_mode = "cache"\n'
    (folder / "conf.py").write_text(conf, encoding="utf-8")
    return folder


def where(tmp_path: Path, kind: Kind, threads: int = 1) -> Surroundings:
    return Surroundings(kind, threads, tmp_path / f"{kind.name}-{threads}")


def test_a_cell_that_differs_is_named_with_both_texts(book: Path, tmp_path: Path):
    assert differing_cells(where(tmp_path, OWN), book) == []
    for kind, threads, shown in ((NONE, 1, "default 1"), (OWN, 2, "None 2")):
        (text,) = differing_cells(where(tmp_path, kind, threads), book)
        place, *lines = text.splitlines()
        assert place.endswith("index.md:13: the output differs from the expected one")
        assert lines == ["  expected: None 1", f"  found: {shown}"]
    assert (tmp_path / "runs").read_text() == "xxx"  # nothing was taken from another
    assert differing_cells(where(tmp_path, OWN), book) == []
    assert (tmp_path / "runs").read_text() == "xxx"  # but from what it has run itself


def test_a_cell_that_raises_is_told_by_its_message(book: Path, tmp_path: Path):
    (book / "index.md").write_text(PAGE.replace("import os", "1 / 0"), encoding="utf-8")
    found = "\n".join(differing_cells(where(tmp_path, OWN), book))
    assert "index.md:" in found
    assert "ZeroDivisionError" in found


def test_a_book_that_cannot_be_run_differs(tmp_path: Path):
    (text,) = differing_cells(where(tmp_path, OWN), tmp_path / "none")
    assert text.startswith("the book could not be run: ")
    assert "there is no such page or folder" in text


def test_a_test_that_fails_is_named_with_its_reason(tmp_path: Path):
    file = tmp_path / "test_kinds.py"
    file.write_text(TESTS, encoding="utf-8")
    assert failing_tests(where(tmp_path, OWN), [str(file)]) == []
    (text,) = failing_tests(where(tmp_path, NONE, 2), [str(file)])
    name, reason, *_ = text.splitlines()
    assert name.endswith("test_kinds::test_kind")
    assert "this is no plain processor" in reason


@pytest.mark.parametrize("text", ["import no_such_module\n", ""])
def test_tests_that_do_not_run_differ(tmp_path: Path, text: str):
    file = tmp_path / "test_broken.py"
    file.write_text(text, encoding="utf-8")
    (said,) = failing_tests(where(tmp_path, OWN), [str(file)])
    assert "no_such_module" in said or said.startswith("pytest ended with 5:")


def test_a_result_of_an_earlier_run_is_none_of_this_one(tmp_path: Path, monkeypatch):
    here = where(tmp_path, OWN)
    here.folder.mkdir()
    (here.folder / "book.json").write_text(json.dumps({"pages": [], "failures": []}))
    (here.folder / "tests.xml").write_text("<testsuites/>")
    killed = subprocess.CompletedProcess([], -9, stdout="killed")
    monkeypatch.setattr(subprocess, "run", lambda *command, **options: killed)
    assert differing_cells(here, tmp_path) == ["the book could not be run (status -9):\nkilled"]
    assert failing_tests(here, []) == ["the tests could not be run (status -9):\nkilled"]


def test_processes_beside_each_other_share_the_cores(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(runs.os, "cpu_count", lambda: 4)
    found = [where(tmp_path, OWN, threads).beside for threads in (1, 2, 3, 8)]
    assert found == [4, 2, 1, 1]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What `main` runs; the tests differ where there are no vectors."""
    said: list[str] = []

    def cells(where: Surroundings, book: Path) -> list[str]:
        said.append(f"{where.name}, book in {where.folder.name}")
        return []

    def tests(where: Surroundings, tests: object) -> list[str]:
        said.append(f"{where.name}, tests")
        return ["a::b\n  a reason"] if where.kind.name == "none" else []

    monkeypatch.setattr(processors, "differing_cells", cells)
    monkeypatch.setattr(processors, "failing_tests", tests)
    lacks = {"avx512": "this processor has AVX2 and no AVX512"}
    monkeypatch.setattr(processors, "why_not", lambda kind, others: lacks.get(kind.name, ""))
    return said


def test_all_kinds_run_with_one_thread_and_with_two(ran: list[str], capsys):
    assert processors.main([]) == 1
    wanted = []
    for kind in ("own", "none", "avx2"):
        for name, folder in (("1 thread", "1"), ("2 threads", "2")):
            wanted += [f"{kind}, {name}, book in {kind}-{folder}", f"{kind}, {name}, tests"]
    assert ran == wanted
    out = capsys.readouterr().out
    skipped = "skipped, this processor has AVX2 and no AVX512\n"
    for name in ("1 thread", "2 threads"):
        assert f"== avx512, {name}: {skipped}" in out
        assert f"a::b\n  a reason\n== none, {name}, tests: 1 differ, " in out
        assert f"== none, {name}, book: nothing differs, " in out
    assert "== 2 of 12 differ: none, 1 thread, tests; none, 2 threads, tests\n" in out


def test_kinds_and_threads_can_be_picked(ran: list[str], capsys):
    assert processors.main(["--kinds", "avx2", "own", "--threads", "1", "--only", "book"]) == 0
    assert ran == ["avx2, 1 thread, book in avx2-1", "own, 1 thread, book in own-1"]
    assert capsys.readouterr().out.endswith("== nothing differs in 2\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--kinds", "sse"], "invalid choice: 'sse'"),
        (["--threads", "0"], "a number of threads is at least 1, got '0'"),
        (["--threads", "two"], "a number of threads is at least 1, got 'two'"),
    ],
)
def test_what_is_no_kind_and_no_number_is_refused(capsys, options: list[str], said: str):
    with pytest.raises(SystemExit, match="2"):
        processors.main(options)
    assert said in capsys.readouterr().err
