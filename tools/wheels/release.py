"""What a release needs: a tag that fits version and changelog, and the repository's address.

No file names the address: the workflow that publishes knows in which repository it runs, and the
links to it are added to the copy that is built.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tools.wheels.environments import StepError
from tools.wheels.project import EXTENSION, LAYERS, ROOT, Project

PREFIXES = {"layers-v": LAYERS, "verified-book-v": EXTENSION}
RELATIVE_LINK = re.compile(r"(!?)(\[[^\]]*\]\()(?!https?:|#|mailto:)([^)]+\))")


@dataclass(frozen=True)
class Release:
    """A version of a distribution that a tag publishes.

    Attributes:
        tag: `layers-v0.1.0`, say.
        repository: Its address, `https://HOST/OWNER/NAME`.
        site: The address of the built book.
    """

    tag: str
    repository: str
    site: str

    @property
    def project(self) -> Project:
        """The distribution.

        Raises:
            StepError: If the tag names none, or another version than code and changelog.
        """
        for prefix, project in PREFIXES.items():
            if not self.tag.startswith(prefix):
                continue
            version = self.tag.removeprefix(prefix)
            if not version == project.version == newest(project.changelog)[0]:
                raise StepError(
                    f"the tag is {self.tag}, the version of {project.name} {project.version}, "
                    f"the first entry of its changelog {newest(project.changelog)[0]}"
                )
            return project
        raise StepError(f"{self.tag} is no tag of a release: {' or '.join(PREFIXES)} begins one")

    def add_addresses(self, copy: Path) -> None:
        """Adds links to a copy of the source: its metadata's, and those of its README."""
        inside = self.project.folder.relative_to(ROOT).as_posix().removeprefix(".")
        below = "/".join(filter(None, (self.tag, inside)))
        urls = {
            "Repository": self.repository,
            "Documentation": self.site,
            "Issues": f"{self.repository}/issues",
            "Changelog": f"{self.repository}/blob/{below}/CHANGELOG.md",
        }
        with (copy / "pyproject.toml").open("a", encoding="utf-8") as settings:
            settings.write("\n[project.urls]\n")
            settings.writelines(f'{name} = "{url}"\n' for name, url in urls.items())
        text = RELATIVE_LINK.sub(
            lambda link: (
                f"{link[1]}{link[2]}{self.repository}/"
                f"{'raw' if link[1] else 'blob'}/{below}/{link[3]}"
            ),
            self.project.readme,
        )
        (copy / "README.md").write_text(text, encoding="utf-8")


def newest(changelog: str) -> tuple[str, str]:
    """The version and the day of a changelog's first entry.

    Raises:
        StepError: If the first entry has no version or no day.
    """
    first = next((line for line in changelog.splitlines() if line.startswith("## ")), "no entry")
    found = re.fullmatch(r"## \[(.+)\] - (\d{4}-\d\d-\d\d)", first)
    if found is None:
        raise StepError(f"{first!r}: a changelog begins with `## [VERSION] - YYYY-MM-DD`")
    return found[1], found[2]
