"""Builds both distributions, installs each where nothing else is, and does what its README says."""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tools.wheels import readme
from tools.wheels.environments import Environment, StepError, build, run
from tools.wheels.project import EXTENSION, LAYERS, Project

WHERE_AND_WHICH = """\
import importlib, importlib.util, sys
from importlib.metadata import version
name, packages, absent = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()
for package in packages:
    module = importlib.import_module(package)
    if not module.__file__.startswith(sys.prefix):
        sys.exit(f"{package} is {module.__file__}, not the installed one")
    if module.__version__ != version(name):
        sys.exit(f"{package} says it is {module.__version__}; {name} is {version(name)}")
there = [package for package in absent if importlib.util.find_spec(package)]
if there:
    sys.exit(f"with {name} came {', '.join(there)}")
"""


def use_layers(environment: Environment, folder: Path) -> None:
    """Runs the README's Python; a warning is an error."""
    program = folder / "program.py"
    program.write_text(readme.python(LAYERS.readme), encoding="utf-8")
    run([environment.python, "-I", "-W", "error", program], folder)


def use_extension(environment: Environment, folder: Path) -> None:
    """Checks the README's first page, which is red; accepts it, and checks it again."""
    page, told = readme.first_page(EXTENSION.readme)
    (folder / "page.md").write_text(page, encoding="utf-8")
    command = [str(environment.python), "-m", "verified_book"]
    said = run([*command, "check", "page.md"], folder, status=1)
    if said != told:
        raise StepError(f"the README says\n{told}\nbut it is\n{said}")
    run([*command, "accept", "page.md"], folder)
    run([*command, "check", "page.md"], folder)


def trial(
    project: Project, foreign: tuple[str, ...], use: Callable[[Environment, Path], None], new: bool
) -> None:
    """Builds, installs and uses a distribution; tells what it ran with."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(project, folder)
        environment = Environment(folder / "environment")
        environment.create()
        environment.install(wheel, () if new else project.required())
        arguments = [project.name, " ".join(project.packages), " ".join(foreign)]
        run([environment.python, "-I", "-c", WHERE_AND_WHICH, *arguments], folder)
        use(environment, folder)
        versions = environment.versions(project.required())
    python = ".".join(map(str, sys.version_info[:3]))
    seconds = time.perf_counter() - start
    print(
        f"{wheel.name}, by itself on Python {python}, in {seconds:.0f} s; it ran with", flush=True
    )
    print(f"  {versions}", flush=True)


def main() -> int:
    """Tries both distributions."""
    parser = argparse.ArgumentParser(prog="python -m tools.wheels", description=__doc__)
    parser.add_argument(
        "--newest",
        action="store_true",
        help="with the newest versions there are, in place of the oldest that are declared",
    )
    new = parser.parse_args().newest
    try:
        trial(EXTENSION, ("torch", "transformer_layers"), use_extension, new)
        trial(LAYERS, ("sphinx", "verified_book"), use_layers, new)
    except StepError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
