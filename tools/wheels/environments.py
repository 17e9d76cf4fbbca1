"""Builds distributions and installs them where nothing else is."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from tools.wheels.project import ROOT, Project, oldest

# Nothing of this environment: a checkout on the path would hide what a wheel lacks.
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


class StepError(Exception):
    """A step that did not do what it should; the text is what it said."""


def run(arguments: Iterable[str | Path], folder: Path, status: int = 0) -> str:
    """What a command prints; what it says to stderr is told only if it fails.

    Raises:
        StepError: If it ends with another status.
    """
    command = [str(argument) for argument in arguments]
    ended = subprocess.run(
        command,
        cwd=folder,
        env=CLEAN,
        capture_output=True,
        encoding="utf-8",
    )
    if ended.returncode != status:
        said = ended.stdout + ended.stderr
        raise StepError(f"{' '.join(command)}: status {ended.returncode}\n{said}")
    return ended.stdout


def build(project: Project, folder: Path, change: Callable[[Path], None] | None = None) -> Path:
    """Builds the sdist of a distribution, and from it the wheel.

    Done in a copy, since setuptools leaves folders beside the code.

    Args:
        project: The distribution.
        folder: An empty folder; both are in `dist` there.
        change: Changes the copy before it is built.

    Returns:
        The wheel.

    Raises:
        StepError: If it cannot be built or lacks one of the modules.
    """
    left_out = shutil.ignore_patterns("build", "*.egg-info", "__pycache__", "[.]*", "_build")
    copy = folder / "source"
    if project.folder == ROOT:
        shutil.copytree(ROOT / "src", copy / "src", ignore=left_out)
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, copy)
    else:
        shutil.copytree(project.folder, copy, ignore=left_out)
    if change is not None:
        change(copy)
    run([sys.executable, "-m", "build", "--outdir", folder / "dist", copy], folder)
    (sdist,), (wheel,) = (list((folder / "dist").glob(form)) for form in ("*.tar.gz", "*.whl"))
    with tarfile.open(sdist) as archive:
        has = {Path(*Path(name).parts[1:]).as_posix() for name in archive.getnames()}
    if missing := {"LICENSE", "README.md", "pyproject.toml"} - has:
        raise StepError(f"{sdist.name} lacks {', '.join(sorted(missing))}")
    if missing := contents(project) - set(zipfile.ZipFile(wheel).namelist()):
        raise StepError(f"{wheel.name} lacks {', '.join(sorted(missing))}")
    return wheel


def contents(project: Project) -> set[str]:
    """The files that a wheel must have: every module, and the mark that it is typed."""
    files = set()
    for package in project.packages:
        folder = ROOT / "src" / package
        paths = [*folder.rglob("*.py"), *folder.rglob("static/*"), folder / "py.typed"]
        kept = (path for path in paths if "build" not in path.relative_to(folder).parts)
        files |= {path.relative_to(ROOT / "src").as_posix() for path in kept}
    return files


@dataclass(frozen=True)
class Environment:
    """An environment of its own, with nothing but pip."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / ("Scripts" if os.name == "nt" else "bin") / "python"

    def create(self) -> None:
        run([sys.executable, "-m", "venv", self.folder], self.folder.parent)

    def install(self, wheel: Path, exact: Iterable[Requirement] = ()) -> None:
        """Installs a wheel with what it declares, some of it in the oldest version allowed."""
        pins = self.folder / "oldest.txt"
        pins.write_text("".join(f"{oldest(requirement)}\n" for requirement in exact))
        options = [
            "--quiet",
            "--no-compile",
            "--disable-pip-version-check",
            "--constraint",
            str(pins),
        ]
        run([self.python, "-m", "pip", "install", *options, wheel], self.folder)
        run([self.python, "-m", "pip", "check"], self.folder)

    def versions(self, requirements: Iterable[Requirement]) -> str:
        """The versions that are installed of some requirements, in a line."""
        names = [requirement.name for requirement in requirements]
        code = "from importlib.metadata import version\n" + "\n".join(
            f"print({name!r}, version({name!r}))" for name in names
        )
        return ", ".join(run([self.python, "-I", "-c", code], self.folder).splitlines())
