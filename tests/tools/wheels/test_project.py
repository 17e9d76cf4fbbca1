"""Whoever installs a distribution has all that its modules import."""

import functools
import importlib
import tomllib
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.wheels.environments import contents
from tools.wheels.project import EXTENSION, LAYERS, ROOT, Project, imported, oldest

PROJECTS = pytest.mark.parametrize("project", [LAYERS, EXTENSION], ids=lambda it: it.name)
# What the extras of each are for; the others build this book and test it.
EXTRAS = {
    LAYERS: ["chat", "hub", "lora", "search", "training"],
    EXTENSION: list(EXTENSION.settings["project"]["optional-dependencies"]),
}


def names(requirements: list[Requirement]) -> set[str]:
    return {canonicalize_name(requirement.name) for requirement in requirements}


installed_distributions = functools.cache(packages_distributions)  # a second each time


def distributions(package: str) -> set[str]:
    """The distributions that bring a package, as they are installed here."""
    return {canonicalize_name(name) for name in installed_distributions().get(package, [package])}


@PROJECTS
def test_what_is_imported_is_declared(project: Project):
    declared = names(project.required()) | names(project.optional(EXTRAS[project]))
    undeclared = {
        package: places
        for package, places in project.imports().items()
        if not distributions(package) & declared
    }
    assert undeclared == {}


@PROJECTS
def test_what_is_declared_is_imported(project: Project):
    used = {name for package in project.imports() for name in distributions(package)}
    # Files to the extension, no module: MathJax.
    assert (names(project.required()) | names(project.optional(EXTRAS[project]))) - used <= {
        "sphinx-mathjax-offline",
    }


@PROJECTS
def test_each_bound_is_the_oldest_that_ran(project: Project):
    for requirement in [*project.required(), *project.optional(EXTRAS[project])]:
        assert oldest(requirement)
        assert requirement.specifier.contains(installed(requirement), prereleases=True)


def installed(requirement: Requirement) -> str:
    return importlib.metadata.version(requirement.name)


def test_only_what_was_seen_to_fail_is_barred():
    for project in (LAYERS, EXTENSION):
        assert project.settings["project"]["requires-python"] == ">=3.11"
        barred = {
            str(requirement)
            for requirement in [*project.required(), *project.optional(EXTRAS[project])]
            if any(part.operator != ">=" for part in requirement.specifier)
        }
        # Jupyter Book 2 has no Sphinx.
        assert barred <= {"jupyter-book<2,>=1.0.4"}


@PROJECTS
def test_the_version_stands_in_one_place(project: Project):
    settings = project.settings
    assert "version" not in settings["project"]
    source = settings["tool"]["setuptools"]["dynamic"]["version"]["attr"].partition(".")[0]
    versions = {
        package: importlib.import_module(package).__version__ for package in project.packages
    }
    assert set(versions.values()) == {versions[source]}


@PROJECTS
def test_a_wheel_has_every_module_and_says_that_it_is_typed(project: Project):
    files = contents(project)
    assert {f"{package}/py.typed" for package in project.packages} <= files
    assert all((ROOT / "src" / file).is_file() for file in files)


def test_the_packages_of_the_source_are_those_of_the_distributions():
    folders = {path.parent.name for path in (ROOT / "src").glob("*/__init__.py")}
    assert folders == {*LAYERS.packages, *EXTENSION.packages, "book_site"}


def test_imports_are_found_wherever_they_stand():
    source = "import os, torch.nn\ndef f():\n    from yaml import safe_load\nfrom . import x\n"
    assert list(imported(source)) == [("torch", 1), ("yaml", 3)]


def test_the_oldest_version_of_a_requirement():
    assert oldest(Requirement("safetensors[torch]>=0.8")) == "safetensors==0.8"
    assert oldest(Requirement("SQLAlchemy>=2.0.25,<3")) == "sqlalchemy==2.0.25"
    with pytest.raises(
        ValueError, match=r"^torch: it should have one bound of the form >=VERSION$"
    ):
        oldest(Requirement("torch"))


def test_the_requirements_of_the_book_install_both_from_the_checkout():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    assert {"-e .", "-e ./src/book_site", "-e ./src/verified_book"} <= set(lines)
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    assert found["find"]["exclude"] == ["book_site*", "verified_book*"]
    assert (EXTENSION.folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
