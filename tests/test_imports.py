"""The imports between modules, of `src/` and beside it: no circle, no arrow between packages."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"

# What each package may import of the others; one that is not named here imports none of them.
ALLOWED = {
    "book_site": {"verified_book"},
    "layer_checks": {"transformer_layers"},
    "transformer_training": {"transformer_layers"},
    "evaluation": {
        *("book_site", "layer_checks", "transformer_layers", "transformer_training"),
        "verified_book",
    },
    "tools": {"evaluation", "verified_book"},
}


def modules() -> dict[str, Path]:
    """The file of each module, by its name."""
    found = {}
    beside = [path for name in ("evaluation", "tools") for path in (ROOT / name).rglob("*.py")]
    for path in [*SOURCES.rglob("*.py"), *beside]:
        parts = path.relative_to(ROOT if path in beside else SOURCES).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def is_for_types(node: ast.AST) -> bool:
    """Whether it is `if TYPE_CHECKING`, whose imports never run."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def names_in(node: ast.AST) -> Iterator[str]:
    """The names that a piece of a module imports when it runs, in functions too."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports are not used here"
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    children = node.orelse if is_for_types(node) else ast.iter_child_nodes(node)
    for child in children:
        yield from names_in(child)


def imports(sources: dict[str, Path]) -> dict[str, set[str]]:
    """The modules that each module imports; a name of a module's own stands for the module."""
    graph: dict[str, set[str]] = {}
    for module, path in sources.items():
        graph[module] = set()
        for name in names_in(ast.parse(path.read_text(encoding="utf-8"))):
            while name and name not in sources:
                name = name.rpartition(".")[0]
            if name:
                graph[module].add(name)
    return graph


def package_of(module: str) -> str:
    """The package at the top that a module is in."""
    return module.partition(".")[0]


GRAPH = imports(modules())
PACKAGES = sorted({package_of(module) for module in GRAPH})


@pytest.mark.parametrize("package", PACKAGES)
def test_the_modules_of_a_package_import_each_other_in_one_direction(package: str):
    own = {name for name in GRAPH if package_of(name) == package}
    try:
        TopologicalSorter({name: GRAPH[name] & own for name in own}).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_those_below_it(package: str):
    below = {package} | ALLOWED.get(package, set())
    arrows = {
        f"{module} -> {other}"
        for module, imported in GRAPH.items()
        for other in imported
        if package_of(module) == package and package_of(other) not in below
    }
    assert arrows == set()


def test_outputs_know_nothing_of_the_other_parts_of_the_extension():
    parts = tuple(f"verified_book.{p}" for p in ("accepting", "claims", "commands", "kernels"))
    arrows = {
        f"{module} -> {other}"
        for module, imported in GRAPH.items()
        for other in imported
        if module.startswith("verified_book.outputs") and other.startswith(parts)
    }
    assert arrows == set()
