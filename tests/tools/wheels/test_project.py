"""Whoever installs a distribution has all that its modules import."""

import functools
import importlib
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.wheels.project import EXTENSION, LAYERS, ROOT, Project, oldest

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


@PROJECTS
def test_the_version_stands_in_one_place(project: Project):
    settings = project.settings
    assert "version" not in settings["project"]
    source = settings["tool"]["setuptools"]["dynamic"]["version"]["attr"].partition(".")[0]
    versions = {
        package: importlib.import_module(package).__version__ for package in project.packages
    }
    assert set(versions.values()) == {versions[source]}


def test_the_packages_of_the_source_are_those_of_the_distributions():
    folders = {path.parent.name for path in (ROOT / "src").glob("*/__init__.py")}
    assert folders == {*LAYERS.packages, *EXTENSION.packages, "book_site"}
