"""Each extension by itself, in plain Sphinx: what it brings, and that it brings nothing else."""

import re
from pathlib import Path

import nbformat
import pytest

from tests.verified_book.books import FRONT_MATTER, Build, sphinx_build, words

pytestmark = pytest.mark.xdist_group("parts")

INDEX = "# A book\n\n```{toctree}\n:glob:\npages/*\n```\n"
MARKDOWN = (
    f"{FRONT_MATTER}# Markdown\n\n"
    "```{code-cell}\n6 * 7\n```\n\n```{expect-output}\n42\n```\n\n$x^2$\n"
)
RST = "RST\n===\n\n.. code-cell::\n\n   7 * 6\n\n.. expect-output::\n\n   42\n"
PAGES = {"index.md": INDEX, "pages/md.md": MARKDOWN, "pages/rst.rst": RST}
CLAIM = "```{claim} A1\n:verdict: holds\n\nIt is six.\n```\n"
PROVEN = f"{FRONT_MATTER}# Claims\n\n{CLAIM}\n```{{code-cell}}\nsix = 6\nassert six\n```\n"


def conf(*extensions: str, **settings: object) -> str:
    """A configuration; MyST Markdown with maths between dollars."""
    values = {"extensions": list(extensions), "myst_enable_extensions": ["dollarmath"], **settings}
    return "".join(f"{name} = {value!r}\n" for name, value in values.items())


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return sphinx_build(tmp_path_factory.mktemp("outputs"), conf("verified_book"), PAGES)


def test_outputs_alone_fail_a_build_and_have_no_claims(tmp_path):
    page = MARKDOWN.replace("6 * 7", "6 * 8") + "\n```{claim} A1\n```\n\n```{claims-index}\n```\n"
    build = sphinx_build(tmp_path, conf("verified_book"), {"index.md": page}, status=1)
    (failure,) = build.failures
    assert (failure.file, failure.line) == ("index.md", 11)
    assert failure.message.startswith("the output differs from the expected one\n--- expected")
    assert "ERROR: 1 failed check(s) in the book\n" in build.log
    assert "<span" in build.pages["index.html"]  # written all the same
    for name in ("claim", "claims-index"):
        assert f"Unknown directive type: '{name}'" in build.log


@pytest.fixture(scope="module")
def claims(tmp_path_factory: pytest.TempPathFactory) -> Build:
    index = f"{INDEX}\nSee {{claim}}`A1`, {{claims:claim}}`A1` or {{claim}}`the first <A1>`.\n"
    second = PROVEN.replace("A1", "A2").replace("{claim}", "{claims:claim}")
    pages = {
        "index.md": f"{index}\n```{{claims-index}}\n```\n\n```{{claims:index}}\n```\n",
        "pages/one.md": PROVEN,
        "pages/two.md": second.replace("six", "seven"),
    }
    return sphinx_build(tmp_path_factory.mktemp("claims"), conf("verified_book.claims"), pages)


def test_directives_and_roles_have_a_short_and_a_long_name(claims):
    index = claims.pages["index.html"]
    link = '<a class="reference internal" href="pages/one.html#claim-a1" title="It is six.">'
    assert index.count(f"{link}<span>Claim A1</span></a>") == 2
    assert f"{link}<span>the first</span></a>" in re.sub(r'<span class="[^"]*">', "<span>", index)
    assert words(claims.pages["pages/two.html"]).count("holds A2 It is") == 1
    assert index.count('<table class="claims-index') == 2


def test_advice_is_configuration_and_a_page_that_is_no_notebook_proves_nothing(tmp_path):
    settings = conf("verified_book.claims", verified_book_claim_remedy="Prove it with `proof()`.")
    pages = {
        "index.md": PROVEN.replace("\nassert six\n", "\n") + "\n```{toctree}\nbroken\n```\n",
        "broken.md": PROVEN.replace("python3}", "python3").replace("A1", "B1"),
    }
    build = sphinx_build(tmp_path, settings, pages, status=1)
    (failure,) = [f for f in build.failures if f.file == "index.md"]
    assert failure.message == "the proof of claim A1 cannot fail: it asserts and expects nothing"
    assert failure.remedy == "Prove it with `proof()`."
    assert [item["proven"] for item in build.claims] == [False, False]
    assert "Not proven in this build: see its log." in build.pages["broken.html"]
    (failure,) = [f for f in build.failures if "front matter" in f.message]
    assert (failure.file, failure.line) == ("broken.md", 3)


STOPS = """
def setup(app):
    app.connect("env-check-consistency", stop)

def stop(app, env):
    raise ValueError("in a handler")
"""


def test_a_build_that_ends_with_an_exception_publishes_no_claims(tmp_path):
    settings = conf("verified_book.claims", "verified_book.offline") + STOPS
    build = sphinx_build(tmp_path, settings, {"index.md": "# A\n"}, status=2)
    assert "in a handler" in build.log
    assert not build.site.joinpath("claims.json").exists()


@pytest.mark.parametrize("mode", ["inline", "cache"])
def test_notebooks_alone_have_their_outputs_however_pages_run(tmp_path, mode):
    settings = conf("book_site.notebooks", nb_execution_mode=mode, book_site_notebook_link="")
    name, code = ("rst.rst", "7 * 6") if mode == "cache" else ("md.md", "6 * 7")
    pages = {"index.md": INDEX, f"pages/{name}": PAGES[f"pages/{name}"]}
    build = sphinx_build(tmp_path, settings, pages)
    if mode == "cache":
        build = sphinx_build(tmp_path, settings, pages, "-E")
        assert not build.executed
    stem = Path(name).stem
    assert "notebook-download" not in build.pages[f"pages/{stem}.html"]  # as its author wants it
    file = build.site / "_sources" / "pages" / f"{stem}.ipynb"
    notebook = nbformat.read(file, as_version=nbformat.NO_CONVERT)
    (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cell.source == code
    assert [output.data["text/plain"] for output in cell.outputs] == ["42"]


def test_failures_may_be_hidden_but_fail_the_build_all_the_same(tmp_path):
    settings = conf("verified_book", suppress_warnings=["verified_book.failure"])
    page = "# A\n\n```{expect-output}\n42\n```\n"
    build = sphinx_build(tmp_path, settings, {"index.md": page}, status=1)
    assert build.failures == []
    assert "ERROR: 1 failed check(s) in the book\n" in build.log
