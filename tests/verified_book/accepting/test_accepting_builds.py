"""Books that are built and accepted: what a reader of `git diff` would see."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.verified_book import forks
from tests.verified_book.accepting.edits import FRONT_MATTER
from tests.verified_book.books import Build, run

pytestmark = pytest.mark.xdist_group("accepting-builds")

CONFIG = """\
extensions = ["verified_book", "sphinx.ext.autodoc", "sphinx_design"]
nb_execution_mode = "cache"
nb_execution_allow_errors = True
myst_enable_extensions = ["colon_fence"]
html_theme = "basic"
verified_book_distributions = []

import sys
sys.path.insert(0, ".")


def rewritten(app, docname, content):
    if docname == "rewritten":
        content[0] = content[0].replace("AUTHOR", "someone")


def setup(app):
    app.connect("source-read", rewritten)
"""

MARKDOWN = f"""\
{FRONT_MATTER}
# Markdown

````{{code-cell}}
text = '''
```{{expect-output}}
not a block
```


'''
````

```{{code-cell}}
:tags: [allow-stderr]
import sys
print("write"); print("err", file=sys.stderr)
```


:::{{expect-output}} stderr
read
...
:::

```{{code-cell}}
print("a 0.3333\\nb 2\\nc")
```



```{{expect-output}}
a 0.33
b 1
...
```

~~~{{code-cell}}
print("---\\n:x: y\\n\\n  ~~~\\n+++")
~~~
Prose.

```{{code-cell}}
:load: loaded.py
```

```{{include}} block.txt
```

```{{code-cell}}
"last"
```"""

MARKDOWN_AFTER = (
    MARKDOWN.replace("read\n...", "write\n...")
    .replace("b 1", "b 2")
    .replace(
        "~~~\nProse",
        "~~~\n\n~~~~{expect-output}\n---\n:x: y\n\n  ~~~\n+++\n~~~~\nProse",
    )
    + "\n\n```{expect-output}\n'last'\n```"
)

RST = """\
reStructuredText
================

.. list-table::

   * - .. code-cell::

          1 + 1

     - .. code-cell::

          2 + 2

       .. expect-output::

          5

.. tab-set::

   .. tab-item:: One

      .. code-cell::

         'tab'

+--------------------+
| .. code-cell::     |
|                    |
|    'grid'          |
+--------------------+

.. include:: part.txt

.. autofunction:: module.function
"""

CELL = ".. code-cell::\n\n   {}\n"
BLOCK = "\n.. expect-output::\n\n   {}\n"

FILES = {
    "conf.py": CONFIG,
    "index.rst": f"{RST}\n.. toctree::\n\n   "
    + "\n   ".join(["page", "rewritten", "notebook", "link", "green\n"]),
    "part.txt": CELL.format("'part'"),
    "module.py": 'def function():\n    """Text.\n\n    .. code-cell::\n\n       3\n    """\n',
    "page.md": MARKDOWN,
    "block.txt": "```{expect-output}\nloaded\n```\n",
    "loaded.py": "'loaded'\n",
    "rewritten.md": f"{FRONT_MATTER}\n# By AUTHOR\n\n```{{code-cell}}\n4\n```\n",
    "green.md": f"{FRONT_MATTER}\n# G\n\n```{{code-cell}}\n5\n```\n```{{expect-output}}\n5\n```\n",
    "notebook.ipynb": (
        '{"nbformat": 4, "nbformat_minor": 4, "metadata": {"kernelspec": {"name": "python3", '
        '"display_name": "Python 3"}}, "cells": [{"cell_type": "markdown", "metadata": {}, '
        '"source": "# N"}, {"cell_type": "code", "metadata": {}, "source": "6", '
        '"execution_count": null, "outputs": []}]}'
    ),
    "elsewhere/target.txt": "Link\n====\n\n.. code-cell::\n\n   7",
}


def build(folder: Path, accept: bool, twice: bool = False) -> Build:
    """Builds a book with Sphinx alone."""
    arguments = ["-b", "dummy", "-E", ".", "_build"]
    return run(
        forks.sphinx,
        arguments,
        folder / "_build",
        folder,
        accept,
        VERIFIED_BOOK_ACCEPT_TWICE="1" if twice else "",
    )


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())


def texts(folder: Path, files: Mapping[str, str] = FILES) -> dict[str, str]:
    return {name: (folder / name).read_bytes().decode() for name in files}


def refusals(done: Build) -> dict[str, set[str]]:
    """The reasons, by the file of the failure."""
    found: dict[str, set[str]] = {}
    for failure in done.failures:
        reason = failure.message.rpartition("not accepted: ")[2].partition(": ")[2]
        found.setdefault(failure.file, set()).add(reason)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("accepting")
    write(folder, FILES)
    (folder / "link.rst").symlink_to(Path("elsewhere", "target.txt"))
    return folder


@pytest.fixture(scope="module")
def accepted(folder: Path) -> Build:
    return build(folder, accept=True)


@pytest.fixture(scope="module")
def after(folder: Path, accepted: Build) -> dict[str, str]:
    return texts(folder)


def test_markdown(after: dict[str, str]):
    assert after["page.md"] == MARKDOWN_AFTER


def test_rst(after: dict[str, str]):
    def block(indent: str, output: str) -> str:
        return f"\n\n{indent}.. expect-output::\n\n{indent}   {output}\n"

    expected = (
        FILES["index.rst"]
        .replace("1 + 1\n", "1 + 1" + block(" " * 7, "2"))
        .replace(" 5\n", " 4\n")
        .replace(" 'tab'\n", " 'tab'" + block(" " * 6, "'tab'"))
    )
    assert after["index.rst"] == expected


def test_a_linked_page(folder: Path, after: dict[str, str]):
    assert (folder / "link.rst").is_symlink()
    block = BLOCK.format(7).rstrip()
    assert after["elsewhere/target.txt"] == f"{FILES['elsewhere/target.txt']}\n{block}"


def test_what_is_refused_stays_red_and_says_why(accepted: Build, after: dict[str, str]):
    assert accepted.status == 1
    assert refusals(accepted) == {
        "index.rst": {"it stands in a table that is drawn with characters"},
        "part.txt": {"it stands in another file, and accept writes pages alone"},
        "block.txt": {"it stands in another file, and accept writes pages alone"},
        "rewritten.md": {"an extension has rewritten the page before it was parsed"},
    }
    assert "it stands in a docstring, and accept writes pages alone" in accepted.log
    assert "accept writes MyST Markdown and reStructuredText, and this is .ipynb" in accepted.log
    for name in (
        "part.txt",
        "block.txt",
        "rewritten.md",
        "module.py",
        "notebook.ipynb",
        "green.md",
    ):
        assert after[name] == FILES[name]


def test_accepting_again_changes_nothing(folder: Path, accepted: Build, after: dict[str, str]):
    again = build(folder, accept=True)
    assert texts(folder) == after
    assert "rewrote" not in again.log
    assert refusals(again) == refusals(accepted)


MOVING = {
    "conf.py": CONFIG.replace("cache", "force"),
    "index.md": f"""\
{FRONT_MATTER}
# Moving

```{{code-cell}}
import time
print("step 1\\ntook", time.perf_counter_ns(), "ns")
```

```{{expect-output}}
step ...
took long
```

```{{code-cell}}
time.perf_counter_ns()
```

```{{code-cell}}
print("still")
```
""",
}


def test_what_moves_between_two_runs_is_masked(tmp_path: Path):
    write(tmp_path, MOVING)
    done = build(tmp_path, accept=True, twice=True)
    assert (tmp_path / "index.md").read_text() == MOVING["index.md"].replace(
        "took long", "took ... ns"
    ).replace(
        '```{code-cell}\nprint("still")\n```\n',
        '```{code-cell}\nprint("still")\n```\n\n```{expect-output}\nstill\n```\n',
    ).replace(
        "```{code-cell}\ntime.perf_counter_ns()\n```\n",
        "```{code-cell}\ntime.perf_counter_ns()\n```\n\n```{expect-output} varies\n...\n```\n",
    )
    assert "index.md" not in refusals(done)
