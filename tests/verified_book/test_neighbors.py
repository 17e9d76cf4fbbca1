"""Beside other extensions: parallel reading is offered where all take part, and never forced."""

import re
from pathlib import Path

import pytest

from tests.verified_book.books import Build, sphinx_build

pytestmark = pytest.mark.xdist_group("neighbors")

COUNT = 7  # Sphinx reads a few pages in one process, whatever it may do
INDEX = "# A book\n\n```{toctree}\n:glob:\np*\n```\n"


def chapter(number: int) -> str:
    """A page with something of each neighbor, and links to other pages."""
    other = (number + 3) % COUNT
    return f"""\
# Page {number}

```{{prf:theorem}} A theorem
:label: theorem-{number}

It is so.
```

```{{exercise}} A question
:label: exercise-{number}

Why?
```

````{{solution}} exercise-{number}
:label: solution-{number}

Because.
````

See {{prf:ref}}`theorem-{other}`, {{ref}}`exercise-{other}` and {{ref}}`solution-{other}`.
"""


PAGES = {"index.md": INDEX} | {f"p{number}.md": chapter(number) for number in range(COUNT)}
PLAIN = {"index.md": INDEX} | {f"p{n}.md": f"# Page {n}\n\nText.\n" for n in range(COUNT)}


def conf(*extensions: str, **settings: object) -> str:
    names = ["verified_book.claims", "verified_book.parallel", *extensions]
    values = {"extensions": names, "verified_book_jobs": 2, **settings}
    lines = [f"{name} = {value!r}\n" for name, value in values.items()]
    return "".join(["import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\n", *lines])


def reads_in_parallel(build: Build) -> bool:
    """Whether Sphinx names the first and the last page of what each process has read."""
    pattern = r"^reading sources\.\.\. \[ *\d+%\] \w+ \.\. \w+"
    return re.search(pattern, build.log, re.MULTILINE) is not None


def refusal(build: Build) -> str | None:
    """The extensions for whose sake the pages are read one by one."""
    pattern = r"verified_book: pages are read one by one, since .*? that they can: (.*)"
    found = re.search(pattern, build.log)
    return found[1] if found else None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("neighbors")


NEIGHBORS = ("sphinx_proof", "sphinx_exercise", "sphinx_thebe")


def test_the_first_parallel_build_beside_proofs_exercises_and_thebe(folder):
    build = sphinx_build(folder / "parallel", conf(*NEIGHBORS), PAGES)
    assert reads_in_parallel(build)
    assert refusal(build) is None
    serial = sphinx_build(folder / "serial", conf(*NEIGHBORS), PAGES, "-j", "1")
    assert not reads_in_parallel(serial)
    assert serial.pages == build.pages


UNMERGED = """\
from sphinx.domains import Domain

class Notes(Domain):
    name = label = "notes"
    initial_data = {"all": []}

def setup(app):
    app.add_domain(Notes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
"""


def test_what_cannot_be_read_in_parallel_is_read_one_by_one_though_that_is_asked_for(tmp_path):
    build = sphinx_build(tmp_path, conf("own_notes"), PLAIN | {"own_notes.py": UNMERGED}, "-j", "2")
    assert not reads_in_parallel(build)
    assert refusal(build) == "own_notes"
