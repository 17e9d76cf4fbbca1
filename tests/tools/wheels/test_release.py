"""A tag publishes what code and changelog say, with the addresses of the repository it is in."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

from tools.wheels import __main__
from tools.wheels.environments import StepError
from tools.wheels.project import LAYERS, ROOT, Project
from tools.wheels.release import PREFIXES, Release, newest

HOST = "https://example.org/owner/name"
SITE = "https://owner.example.org/name/"
PROJECTS = pytest.mark.parametrize(("prefix", "project"), PREFIXES.items(), ids=list(PREFIXES))


@PROJECTS
def test_the_newest_entry_of_the_changelog_is_the_version(prefix: str, project: Project):
    version, day = newest(project.changelog)
    assert version == project.version
    assert Release(f"{prefix}{version}", HOST, SITE).project is project
    if project is LAYERS:
        citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
        assert (citation["version"], citation["date-released"]) == (version, day)


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("v1", "v1 is no tag of a release: layers-v or verified-book-v begins one"),
        ("layers-v9.9", f"the tag is layers-v9.9, the version of {LAYERS.name} {LAYERS.version}, "),
    ],
)
def test_a_tag_of_nothing_is_refused(
    tag: str, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    arguments = ["wheels", "--tag", tag, "--repository", HOST, "--site", SITE]
    monkeypatch.setattr("sys.argv", arguments)
    assert __main__.main() == 1
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("first", ["## [Unreleased]", "## [0.3.0] - soon"])
def test_an_entry_without_version_and_day_is_refused(first: str):
    with pytest.raises(StepError, match=re.escape(repr(first))):
        newest(f"# Changelog\n\n{first}\n\n## [0.2.0] - 2026-11-21\n")


@PROJECTS
def test_links_lead_to_the_repository(prefix: str, project: Project, tmp_path: Path):
    shutil.copy(project.folder / "pyproject.toml", tmp_path)
    Release(f"{prefix}{project.version}", HOST, SITE).add_addresses(tmp_path)
    settings = tomllib.loads((tmp_path / "pyproject.toml").read_text())
    changelog = settings["project"]["urls"]["Changelog"]
    assert (ROOT / changelog.removeprefix(f"{HOST}/blob/{prefix}{project.version}/")).is_file()
    assert "urls" not in project.settings["project"]  # it is known to the workflow alone
    links = re.findall(r"\]\(([^)]+)\)", (tmp_path / "README.md").read_text())
    assert all(link.startswith("https://") for link in links)
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", (tmp_path / "README.md").read_text())
    assert all(link.startswith(f"{HOST}/raw/") for link in pictures)  # not a page around it
    for link in re.findall(r"\]\((?!https)([^)]+)\)", project.readme):
        assert (project.folder / link).is_file()


def test_the_workflow_builds_what_the_tag_names():
    workflow = (ROOT / ".github/workflows/release.yml").read_text()
    assert set(yaml.safe_load(workflow)[True]["push"]["tags"]) == {f"{it}*" for it in PREFIXES}
    for option in ("--tag", "--repository", "--site", "--output"):
        assert option in workflow
