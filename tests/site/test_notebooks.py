"""The notebooks that the site offers: valid, readable without Sphinx, and they run anywhere."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
from nbformat import v4

from book_site.notebooks.offer import offered

BOOK = Path(__file__).parents[2] / "book"
KINDS = (".md", ".rst")

pytestmark = pytest.mark.xdist_group("site")

FENCED = re.compile(r"^(?:> )?(`{3,})(?!{)[^`\n]*\n.*?^(?:> )?\1$", re.DOTALL | re.MULTILINE)
QUOTED = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
# What the site's notebooks have in the place of the import that only a book can make.
GLUE = re.compile(r"^(from myst_nb import glue|def glue\(.*)$", re.MULTILINE)
DIRECTIVE = re.compile(r"expect-output|\{[\w:-]+\}`|^:{3,}|^`{3,}\{|:[\w:]+:`|^\.\. [\w-]+::", re.M)


@pytest.fixture(scope="module")
def notebooks(html, texts, pages):
    """The notebook of every chapter with cells."""
    possible = [name for name, text in texts.items() if 'class="cell' in text]
    with_cells = [name for name in possible if pages[name].select_one("div.cell")]
    chapters = [name.removesuffix(".html") for name in with_cells]
    assert chapters
    files = {name: html / "_sources" / f"{name}.ipynb" for name in chapters}
    return {name: v4.reads(file.read_text(encoding="utf-8")) for name, file in files.items()}


def test_notebooks_are_valid(notebooks):
    for notebook in notebooks.values():
        nbformat.validate(notebook)
        assert (notebook.nbformat, notebook.nbformat_minor) >= (4, 5)
        assert {"name", "display_name", "language"} <= notebook.metadata.kernelspec.keys()


def test_every_cell_is_there_as_it_ran(html, notebooks):
    for name, notebook in notebooks.items():
        ran = nbformat.read(html.parent / "jupyter_execute" / f"{name}.ipynb", as_version=4)
        (_, *there), expected = (  # the first one installs
            [
                (GLUE.sub("", cell.source), cell.metadata.get("tags", []), cell.outputs)
                for cell in each.cells
                if cell.cell_type == "code"
            ]
            for each in (notebook, ran)
        )
        as_images = [(*rest, [offered(output) for output in of]) for *rest, of in expected]
        assert there == as_images, name


def test_every_figure_is_an_image_that_says_what_it_shows(pages, notebooks):
    """Jupyter shows images before it trusts a notebook, and takes drawings from its HTML."""
    shown = 0
    for name, notebook in notebooks.items():
        outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
        markup = "".join(out.get("data", {}).get("text/html", "") for out in outputs)
        assert "<svg" not in markup, name
        images = re.findall(r'<img alt="[^"]+" width="\d+" src="data:image/svg', markup)
        assert len(images) == len(pages[f"{name}.html"].select("div.cell_output svg")), name
        shown += len(images)
    assert shown > 30


def test_citations_end_in_a_list(pages, notebooks):
    listed = 0
    for name, notebook in notebooks.items():
        cited = {
            tag["title"]
            for tag in pages[f"{name}.html"].select("article a[title*='. ']")
            if "bibliography.html#" in tag["href"]
        }
        entries = [] if not cited else notebook.cells[-1].source.splitlines()[2:]
        assert len(entries) == len(cited), name
        listed += len(entries)
    assert listed > 30


def test_each_says_what_to_install_and_needs_no_book(notebooks):
    for name, notebook in notebooks.items():
        first = notebook.cells[0]
        assert first.cell_type == "markdown", name
        assert "pip install" in first.source, name
        assert notebook.cells[1].source.startswith("install = False"), name
        assert not [cell for cell in notebook.cells if "import glue" in cell.source], name


def test_equations_have_the_numbers_of_the_page(pages, notebooks):
    numbered = 0
    for name, notebook in notebooks.items():
        on_page = [tag.get_text() for tag in pages[f"{name}.html"].select("span.eqno")]
        prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        tags = re.findall(r"\\tag\{(.*?)\}", prose)
        assert [f"({tag})" for tag in tags] == [text.rstrip("#¶") for text in on_page], name
        numbered += len(tags)
    assert numbered > 10


def test_prose_has_no_directives(notebooks):
    left = {
        (name, line)
        for name, notebook in notebooks.items()
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for line in QUOTED.sub("", FENCED.sub("", cell.source)).splitlines()
        if DIRECTIVE.search(line)
    }
    assert left == set()


@pytest.mark.nightly
def test_notebooks_run_from_an_empty_folder(notebooks, tmp_path_factory):
    """One of each kind of source; the build runs every chapter so, with `run_in_temp`."""
    by_length = sorted(notebooks, key=lambda name: len(notebooks[name].cells))
    kinds = [{name for name in notebooks if (BOOK / f"{name}{end}").is_file()} for end in KINDS]
    chosen = [next(name for name in by_length if name in kind) for kind in kinds]

    def run(file):
        command = [sys.executable, "-m", "jupyter", "execute", file]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    alone = [tmp_path_factory.mktemp("empty") / "downloaded.ipynb" for _ in chosen]
    for name, file in zip(chosen, alone, strict=True):
        nbformat.write(notebooks[name], file)
    with ThreadPoolExecutor(max_workers=2) as pool:
        runs = zip(chosen, pool.map(run, alone), strict=True)
        failed = {name: process.stderr[-2000:] for name, process in runs if process.returncode}
    assert failed == {}
