"""What is installed is what is there, and the README's first page does what it says."""

import re
from pathlib import Path

import pytest

import verified_book
from tests.verified_book.commands.conftest import Command
from tools.wheels import readme
from tools.wheels.project import EXTENSION

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("commands")]


def test_every_package_is_listed():
    here = EXTENSION.folder
    folders = {path.parent.relative_to(here) for path in here.rglob("*.py")}
    names = {".".join(["verified_book", *folder.parts]) for folder in folders}
    built = {name for name in names if name.startswith("verified_book.build")}
    assert set(EXTENSION.settings["tool"]["setuptools"]["packages"]) == names - built


def test_the_changelog_begins_with_the_version():
    changes = (EXTENSION.folder / "CHANGELOG.md").read_text()
    assert re.search(r"^## (.*)$", changes, re.MULTILINE)[1] == verified_book.__version__


def test_the_first_page_is_red_as_it_says(command: Command, tmp_path: Path):
    page, told = readme.first_page(EXTENSION.readme)
    (tmp_path / "page.md").write_text(page)
    (tmp_path / "page.rst").write_text(readme.indented(EXTENSION.readme, "In reStructuredText"))
    said = command("check", "page.md")
    assert (said.status, said.out) == (1, told)
    assert command("check", "page.rst").status == 0
