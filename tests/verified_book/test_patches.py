"""The table of what is replaced in other packages is whole; a build says where it does not fit."""

import ast
import logging
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from sphinx.errors import ExtensionError

from book_site.patches import TABLE as OF_SITE
from verified_book import patches
from verified_book.patches import TABLE, Package

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "src/verified_book", ROOT / "src/book_site")
SOURCES = [path for package in PACKAGES for path in package.rglob("*.py")]
KNOWN = {name for package in (*TABLE, *OF_SITE) for name in package.patches}
JSON = Package("sphinx", (1, 0), (2, 5), {"json.dumps": "all is well", "json.decoder.no_such": "-"})


def imported(tree: ast.Module) -> dict[str, str]:
    """The names that a module imports of other packages, each with what it stands for."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {each.asname or each.name: each.name for each in node.names}
    return found


def assigned(tree: ast.Module) -> Iterator[str]:
    """Attributes of imported names that a module assigns to."""
    names = imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in names:
                yield f"{names[node.value.id]}.{node.attr}"


def own_names(trees: list[ast.Module]) -> set[str]:
    """The names that our modules define."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    found = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, kinds):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [part for target in targets for part in ast.walk(target)]
            found |= {part.id for part in parts if isinstance(part, ast.Name)}
            found |= {part.attr for part in parts if isinstance(part, ast.Attribute)}
    return found


def test_each_name_that_is_replaced_and_each_private_one_stands_in_the_table():
    trees = [ast.parse(path.read_text()) for path in SOURCES]
    inside = {"sys.argv"}  # of a process of our own
    replaced = {name for tree in trees for name in assigned(tree)} - inside
    assert replaced
    assert replaced <= KNOWN
    last = {name.rpartition(".")[2] for name in KNOWN}
    attributes = {n.attr for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    private = {name for name in attributes if re.match(r"_[a-z]", name)}
    private -= {"_exit", "_getframe", "_replace"}  # of os, of sys, of named tuples: documented
    assert private - own_names(trees) <= last


def test_the_tested_versions_are_those_that_are_declared_and_pinned():
    project = tomllib.loads((ROOT / "src/verified_book/pyproject.toml").read_text())["project"]
    bounds = dict(line.split(">=") for line in project["dependencies"])
    pins = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "requirements.txt").read_text(), re.M))
    pins = {name.lower(): version for name, version in pins.items()}
    for package in (*TABLE, *OF_SITE):
        assert patches._minor(bounds[package.name]) == package.oldest
        assert package.oldest <= patches._minor(pins[package.name]) <= package.newest


def test_the_names_are_there():
    patches.require()
    patches.require(OF_SITE)


def test_a_name_that_has_gone_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Package, "installed", "3.1.4")
    message = (
        r"verified_book does not know sphinx 3\.1\.4: it has no json\.decoder\.no_such, by which "
        r'-\. Remedy: python -m pip install "sphinx>=1\.0,<=2\.5\.999"'
    )
    with pytest.raises(ExtensionError, match=message):
        patches.require([JSON])
    for name in ("json.JSONDecoder.nothing.at_all", "no_such_package.name", "json.JSONDecoder._x"):
        with pytest.raises(ExtensionError, match=re.escape(f"it has no {name}, by")):
            patches.require([Package("sphinx", (1, 0), (9, 0), {name: "it works"})])


@pytest.mark.parametrize(
    ("version", "told"),
    [("0.9", True), ("2.5.7rc1", False), ("2.6.0", True)],
)
def test_a_version_that_was_not_tested_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, version: str, told: bool
):
    logger = logging.getLogger("sphinx.verified_book.patches")
    monkeypatch.setattr(logger, "parent", logging.getLogger())
    monkeypatch.setattr(Package, "installed", version)
    caplog.set_level(logging.INFO)
    patches.report([JSON])
    message = (
        f"verified_book was tested with sphinx 1.0 to 2.5, and not with {version}, of which it "
        "replaces or uses json.dumps, json.decoder.no_such. If the build misbehaves: "
        'python -m pip install "sphinx>=1.0,<=2.5.999"'
    )
    assert caplog.messages == [message] * told
