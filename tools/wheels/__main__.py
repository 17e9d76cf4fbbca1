"""Builds both distributions, installs each where nothing else is, and does what its README says."""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tools.wheels import readme
from tools.wheels.environments import Environment, StepError, build, run
from tools.wheels.project import EXTENSION, LAYERS, Project
from tools.wheels.release import Release

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
    """Checks the README's first page, which is red; accepts it; builds it as a book of Sphinx."""
    page, told = readme.first_page(EXTENSION.readme)
    (folder / "page.md").write_text(page, encoding="utf-8")
    command = [str(environment.python), "-m", "verified_book"]
    said = run([*command, "check", "page.md"], folder, status=1)
    if said != told:
        raise StepError(f"the README says\n{told}\nbut it is\n{said}")
    run([*command, "accept", "page.md"], folder)
    run([*command, "check", "page.md"], folder)
    book = folder / "book"
    book.mkdir()
    conf = 'extensions = ["verified_book"]\nexclude_patterns = ["_build"]\n'
    (book / "conf.py").write_text(conf)
    (book / "index.md").write_text(f"{page}\n# A page\n", encoding="utf-8")
    sphinx: list[str | Path] = [environment.python, "-m", "sphinx", "-q", ".", "_build/html"]
    run(sphinx, book, status=1)
    run([*command, "accept", "."], book)
    run([*sphinx, "-W"], book)


USED = {
    EXTENSION: (("torch", "transformer_layers"), use_extension),
    LAYERS: (("sphinx", "verified_book"), use_layers),
}


def trial(project: Project, new: bool, release: Release | None, output: Path | None) -> None:
    """Builds, installs and uses a distribution; tells what it ran with, and keeps what it built."""
    start = time.perf_counter()
    foreign, use = USED[project]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(project, folder, release.add_addresses if release else None)
        environment = Environment(folder / "environment")
        environment.create()
        environment.install(wheel, () if new else project.required())
        arguments = [project.name, " ".join(project.packages), " ".join(foreign)]
        run([environment.python, "-I", "-c", WHERE_AND_WHICH, *arguments], folder)
        use(environment, folder)
        versions = environment.versions(project.required())
        if output is not None:
            shutil.copytree(wheel.parent, output, dirs_exist_ok=True)
    python = ".".join(map(str, sys.version_info[:3]))
    seconds = time.perf_counter() - start
    print(
        f"{wheel.name}, by itself on Python {python}, in {seconds:.0f} s; it ran with", flush=True
    )
    print(f"  {versions}", flush=True)


def main() -> int:
    """Tries both distributions, or the one that a tag publishes."""
    parser = argparse.ArgumentParser(prog="python -m tools.wheels", description=__doc__)
    parser.add_argument(
        "--newest",
        action="store_true",
        help="with the newest versions there are, in place of the oldest that are declared",
    )
    parser.add_argument("--output", type=Path, help="keep what was built and tried in this folder")
    parser.add_argument("--tag", help="only what this tag publishes, with the addresses of")
    parser.add_argument("--repository", help="... the repository, https://HOST/OWNER/NAME,")
    parser.add_argument("--site", help="... and the built book")
    options = parser.parse_args()
    addresses = options.tag, options.repository, options.site
    if any(addresses) and not all(addresses):
        parser.error("--tag, --repository and --site belong together")
    release = Release(*addresses) if all(addresses) else None
    try:
        for project in USED if release is None else [release.project]:
            trial(project, options.newest, release, options.output)
    except StepError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
