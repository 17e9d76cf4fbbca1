"""Which kinds a machine can be, and what differs on one of them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tools.processors import __main__ as processors
from tools.processors import kinds
from tools.processors.kinds import KINDS, SWITCHES, capability, environment, why_not

NAMED = {kind.name: kind for kind in KINDS}
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
TEST = """\
import os

def test_kind():
    assert os.environ.get("ATEN_CPU_CAPABILITY") is None, "this is no plain processor"
"""


@pytest.fixture
def torch_says(monkeypatch: pytest.MonkeyPatch):
    """Makes torch call a processor something, and heed its switch or not."""

    def say(own: str, heeds: bool = True) -> None:
        def of(variables: Mapping[str, str]) -> str:
            return variables.get("ATEN_CPU_CAPABILITY", own).upper() if heeds else own

        monkeypatch.setattr(kinds, "capability", of)

    return say


def test_a_kind_has_its_switches_and_no_others(monkeypatch: pytest.MonkeyPatch):
    for name in SWITCHES:
        monkeypatch.setenv(name, "of the user")
    monkeypatch.setenv("HOME", "kept")
    for kind in KINDS:
        found = environment(kind, 2)
        assert {name: found[name] for name in SWITCHES & found.keys()} == kind.switches
        assert (found["OMP_NUM_THREADS"], found["HOME"]) == ("2", "kept")


@pytest.mark.parametrize(
    ("own", "possible", "others"),
    [
        ("AVX512", ["own", "none", "avx2", "avx512"], ["none", "avx2"]),
        ("AVX2", ["own", "none", "avx2"], ["none"]),
        ("DEFAULT", ["own", "none"], []),
        ("SVE256", ["own"], []),
    ],
)
def test_a_machine_can_be_what_it_is_and_what_has_less(
    torch_says, own: str, possible: list[str], others: list[str]
):
    torch_says(own)
    assert [kind.name for kind in KINDS if not why_not(kind)] == possible
    assert [kind.name for kind in KINDS if not why_not(kind, others=True)] == others


def test_the_reason_is_told(torch_says):
    torch_says("AVX2")
    assert why_not(NAMED["avx512"]) == "this processor has AVX2 and no AVX512"
    torch_says("AVX512", heeds=False)
    assert why_not(NAMED["avx2"]) == "told to be AVX2, torch says that it is AVX512"


def test_torch_itself_heeds_the_switch_for_no_vectors():
    assert capability(environment(NAMED["none"], 1)) == "DEFAULT"


def test_cells_that_differ_are_named(tmp_path: Path, capfd):
    """And nothing is taken from another kind's run, but from what it has run itself."""
    book = tmp_path / "book"
    book.mkdir()
    (book / "index.md").write_text(PAGE, encoding="utf-8")
    conf = 'extensions = ["verified_book"]\nnb_execution_mode = "cache"\n'
    (book / "conf.py").write_text(conf, encoding="utf-8")
    asked = ["--only", "book", "--book", str(book), "--output", str(tmp_path), "--threads", "1"]
    assert processors.main([*asked, "--kinds", "own", "none"]) == 1
    said = "".join(capfd.readouterr())
    assert "index.md:13: ERROR: the output differs from the expected one" in said
    assert "-None 1\n+default 1" in said
    assert "== own, 1 thread, book: nothing differs, " in said
    assert "== 1 of 2 differ: none, 1 thread, book\n" in said
    assert processors.main([*asked, "--kinds", "own"]) == 0
    assert (tmp_path / "runs").read_text() == "xx"


def test_tests_that_fail_are_named(tmp_path: Path, capfd):
    file = tmp_path / "test_kinds.py"
    file.write_text(TEST, encoding="utf-8")
    asked = ["--only", "tests", "--tests", str(file), "--output", str(tmp_path), "--threads", "2"]
    assert processors.main([*asked, "--kinds", "own", "none"]) == 1
    said = capfd.readouterr().out
    assert "this is no plain processor" in said
    assert "== 1 of 2 differ: none, 2 threads, tests\n" in said


def test_all_kinds_run_with_one_thread_and_with_two(monkeypatch, torch_says, tmp_path: Path):
    ran = []
    torch_says("AVX2")
    monkeypatch.setattr(
        processors.subprocess,
        "call",
        lambda command, cwd, env: ran.append((command[2], env["OMP_NUM_THREADS"])),
    )
    assert processors.main(["--output", str(tmp_path)]) == 0
    each = [("verified_book", "1"), ("pytest", "1"), ("verified_book", "2"), ("pytest", "2")]
    assert ran == 3 * each
    assert len(list(tmp_path.iterdir())) == 6
