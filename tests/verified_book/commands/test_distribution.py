"""What is installed is what is there, and the README's first page does what it says."""

import re
from datetime import date
from pathlib import Path

import pytest

import transformer_layers
import verified_book
from tests.verified_book.commands.conftest import Command
from tools.wheels import readme
from tools.wheels.project import EXTENSION, ROOT

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("commands")]


def test_every_package_is_listed():
    here = EXTENSION.folder
    folders = {path.parent.relative_to(here) for path in here.rglob("*.py")}
    names = {".".join(["verified_book", *folder.parts]) for folder in folders}
    built = {name for name in names if name.startswith("verified_book.build")}
    assert set(EXTENSION.settings["tool"]["setuptools"]["packages"]) == names - built


@pytest.mark.parametrize("package", [transformer_layers, verified_book], ids=lambda it: it.__name__)
def test_the_changelog_has_the_version_and_its_day_first(package):
    folder = ROOT if package is transformer_layers else EXTENSION.folder
    changes = (folder / "CHANGELOG.md").read_text()
    released = changes.replace("## [Unreleased]\n", "", 1)
    version, day = re.search(r"^## \[(.*)\] - (.*)$", released, re.MULTILINE).groups()
    assert version == package.__version__
    assert date.fromisoformat(day)


def test_the_first_page_is_red_as_it_says(command: Command, tmp_path: Path):
    page, told = readme.first_page(EXTENSION.readme)
    (tmp_path / "page.md").write_text(page)
    (tmp_path / "page.rst").write_text(readme.indented(EXTENSION.readme, "In reStructuredText"))
    said = command("check", "page.md")
    assert (said.status, said.out) == (1, told)
    assert command("check", "page.rst").status == 0
