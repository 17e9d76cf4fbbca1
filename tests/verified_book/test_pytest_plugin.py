"""Expected blocks are pytest's items, when and only when it is asked for them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.verified_book.commands.conftest import GREEN, RED, write
from verified_book import pytest_plugin

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("commands")]

PAGE = """\
# Page

```{code-cell}
print("one")
```

```{expect-output}
one
```

````md
```{expect-output}
as text
```
````

```{code-cell}
print("two")
```

```{expect-output}
zwei
```
"""
FIRST, TEXT, SECOND = 7, 12, 21


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch):
    """Runs pytest with the plugin, and without those that are only installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(*arguments: str) -> pytest.RunResult:
        return pytester.runpytest_inprocess("-p", "verified_book.pytest_plugin", *arguments)

    return run


@pytest.fixture
def found(monkeypatch) -> dict[str, Any]:
    """What a run of any page leaves; to be filled in by the test."""
    results: dict[str, Any] = {}
    runs: list[Path] = []

    def run(path: Path) -> dict[str, Any]:
        runs.append(path)
        page = {"path": str(path), "executed": True, "blocks": [], **results.get("page", {})}
        page["blocks"] = [{"source": str(path), **block} for block in page["blocks"]]
        failures = [failure(**{"source": str(path), **f}) for f in results.get("failures", [])]
        return {"pages": [page], "failures": failures} | results.get("instead", {})

    def failure(**values: Any) -> dict[str, Any]:
        given = {"cell": None, "message": "wrong", "remedy": "Mend it."}
        return given | {"expected": None, "executed": None} | values

    monkeypatch.setattr(pytest_plugin, "_results", run)
    results["runs"] = runs
    return results


def block(line: int, cell: int, compared: bool = True) -> dict[str, Any]:
    return {"line": line, "cell": cell, "compared": compared}


BLOCKS = [block(FIRST, 1), block(SECOND, 3)]


def test_a_real_page(run, pytester: pytest.Pytester):
    write(pytester.path, {"book/red.md": RED, "book/README.md": "# No cells", "test_x.py": ""})
    result = run("--verified-book", "book", "-vv")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "book/red.md::line-11 FAILED*",
            "book/red.md::page PASSED*",
            "*___ red.md:11 ___*",
            "book/red.md:11: the output differs from the expected one",
            "assert '42' == '41'",
            "  - 41",
            "  + 42",
            "Remedy: Mend the code; or run `python -m verified_book accept` and review *",
            "FAILED book/red.md::line-11 - Failed: book/red.md:11: the output differs *",
        ]
    )


def test_items_are_collected_without_a_run(run, found, pytester: pytest.Pytester):
    write(pytester.path, {"b/page.md": PAGE, "b/green.rst": GREEN, "b/cells.ipynb": "{}"})
    write(pytester.path, {"b/_build/page.md": PAGE, "b/jupyter_execute/page.md": PAGE})
    write(pytester.path, {"b/.hidden/x.md": PAGE, "b/data.csv": "1"})
    result = run("--verified-book", "b", "--collect-only", "-q")
    assert [line for line in result.outlines if "::" in line] == [
        "b/cells.ipynb::page",
        "b/green.rst::line-8",
        "b/green.rst::page",
        f"b/page.md::line-{FIRST}",
        f"b/page.md::line-{TEXT}",
        f"b/page.md::line-{SECOND}",
        "b/page.md::page",
    ]
    assert found["runs"] == []


def test_a_page_runs_once_and_an_item_can_be_chosen(run, found, pytester: pytest.Pytester):
    write(pytester.path, {"page.md": PAGE})
    found["page"] = {"blocks": BLOCKS}
    run("--verified-book", "page.md").assert_outcomes(passed=3, skipped=1)
    assert len(found["runs"]) == 1
    run("--verified-book", "page.md", f"page.md::line-{FIRST}").assert_outcomes(passed=1)
    run("--verified-book", "page.md", "-k", "page.md and 21").assert_outcomes(
        passed=1, deselected=3
    )


@pytest.mark.parametrize(
    ("failure", "items"),
    [
        ({"line": SECOND, "cell": 3}, [f"line-{SECOND}"]),
        ({"line": TEXT}, [f"line-{TEXT}"]),  # no directive was made of it
        ({"source": "/other.md", "line": FIRST}, [f"line-{TEXT}", "page"]),
    ],
)
def test_each_failure_is_that_of_an_item(run, found, pytester, failure, items):
    write(pytester.path, {"page.md": PAGE})
    found |= {"page": {"blocks": BLOCKS}, "failures": [failure]}
    result = run("--verified-book", "page.md", "-rf")
    failed = [line for line in result.outlines if line.startswith("FAILED")]
    assert [line.partition("::")[2].partition(" ")[0] for line in failed] == items


def test_the_ini_value_is_as_testpaths(run, found, pytester: pytest.Pytester):
    write(pytester.path, {"b/page.md": PAGE, "t/test_x.py": "def test_x(): 0"})
    pytester.makeini("[pytest]\nverified_book = b\ntestpaths = t\n")
    found["page"] = {"blocks": BLOCKS}
    run().assert_outcomes(passed=4, skipped=1)
    run("t").assert_outcomes(passed=1)


def test_nothing_happens_unasked(run, pytester: pytest.Pytester):
    write(pytester.path, {"page.md": PAGE, "test_x.py": "def test_x(): pass"})
    run().assert_outcomes(passed=1)
    loads = "import sys, verified_book.pytest_plugin as p; print([m for m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=True)
    heavy = {"sphinx", "myst_nb", "docutils", "yaml", "nbformat", "IPython"}
    assert heavy.isdisjoint(json.loads(done.stdout.replace("'", '"')))


def test_one_worker_runs_a_page(found, pytester: pytest.Pytester, monkeypatch):
    write(pytester.path, {"page.md": PAGE})
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    groups = []

    class Group:
        def pytest_collection_modifyitems(self, items):
            groups.extend(item.get_closest_marker("xdist_group").args for item in items)

    options = ["-p", "verified_book.pytest_plugin", "-p", "xdist", "--strict-markers"]
    options += ["--verified-book", "page.md", "--collect-only"]
    pytester.runpytest_inprocess(*options, plugins=[Group()])
    assert groups == [("page.md",)] * 4
