"""What is installed is what is there, and the README's first page does what it says."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import verified_book
from tests.verified_book.commands.conftest import Command

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("commands")]


ROOT = Path(__file__).parents[3]
HERE = ROOT / "src/verified_book"
README = (HERE / "README.md").read_text(encoding="utf-8")


def project(folder: Path) -> dict[str, Any]:
    """The settings of a distribution."""
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_package_is_listed():
    folders = {path.parent.relative_to(HERE) for path in HERE.rglob("*.py")}
    names = {".".join(["verified_book", *folder.parts]) for folder in folders}
    built = {name for name in names if name.startswith("verified_book.build")}
    assert set(project(HERE)["tool"]["setuptools"]["packages"]) == names - built


def test_the_version_stands_in_one_place():
    assert "version" not in project(HERE)["project"]
    assert re.search(r"^## (.*)$", (HERE / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == (
        verified_book.__version__
    )


def test_the_layers_do_not_ship_it():
    assert project(ROOT)["tool"]["setuptools"]["packages"]["find"]["exclude"] == ["verified_book*"]
    assert "-e ./src/verified_book" in (ROOT / "requirements.txt").read_text().splitlines()
    assert (HERE / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def example(after: str) -> str:
    """The indented text below a line of the README."""
    lines = README.partition(after)[2].split("\n\n", 1)[1].split("\n")
    end = next(number for number, line in enumerate(lines) if line and not line.startswith("    "))
    return "\n".join(line[4:] for line in lines[:end]).strip("\n") + "\n"


def test_the_first_page_is_red_as_it_says(command: Command, tmp_path: Path):
    page, _, told = example("Save this as").partition("\n$ python -m verified_book check page.md\n")
    (tmp_path / "page.md").write_text(page)
    (tmp_path / "page.rst").write_text(example("In reStructuredText"))
    said = command("check", "page.md")
    assert (said.status, said.out) == (1, told)
    assert command("check", "page.rst").status == 0
