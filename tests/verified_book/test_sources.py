"""What the digest of the sources notices, and which execution caches are kept."""

import os
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes
from sphinx.errors import ConfigError

from verified_book import surroundings
from verified_book.sources import digest_of_sources, prepare, retitled_pages

PATTERNS = ["../src/**/*.py"]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The folder of a book, next to its sources."""
    for name in ("src/pkg/__init__.py", "src/pkg/inner/layer.py", "src/single.py", "book/index.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n", encoding="utf-8")
    return tmp_path / "book"


def digest(base: Path, patterns: list[str] = PATTERNS) -> str:
    return digest_of_sources(base, patterns, ["numpy"])


def test_the_digest_notices_new_removed_and_renamed_files(base: Path):
    found = [digest(base)]
    path = base / "../src/new.py"
    path.write_text("", encoding="utf-8")
    found.append(digest(base))
    path.rename(path.with_name("newer.py"))
    found.append(digest(base))
    assert len(set(found)) == 3
    path.with_name("newer.py").unlink()
    assert digest(base) == found[0]


def test_the_digest_notices_versions(base: Path, monkeypatch: pytest.MonkeyPatch):
    before = digest(base)
    with monkeypatch.context() as patch:
        patch.setattr(metadata, "version", lambda name: "0.0")
        assert digest(base) != before
    with monkeypatch.context() as patch:
        patch.setattr(sys, "version", "2.7")
        assert digest(base) != before


def test_a_pattern_without_files_is_an_error(base: Path):
    with pytest.raises(ConfigError, match=r"no file matches '\.\./lib/\*\*/\*\.py' from .*/book;"):
        digest(base, [*PATTERNS, "../lib/**/*.py"])


def prepared(base: Path, **values: object) -> SimpleNamespace:
    """The configuration after `prepare`."""
    app = SimpleNamespace(srcdir=str(base), outdir=str(base / "_build/html"))
    config = SimpleNamespace(
        exclude_patterns=[],
        nb_execution_cache_path="",
        verified_book_sources=PATTERNS,
        verified_book_distributions=["numpy"],
        verified_book_environment=["SWITCH"],
        verified_book_caches_kept=6,
    )
    config.__dict__.update(values)
    prepare(app, config)
    return config


def test_each_state_of_the_sources_has_an_execution_cache_of_its_own(base: Path):
    source = base / "../src/single.py"
    first = prepared(base).nb_execution_cache_path
    assert Path(first).is_dir()
    assert Path(first).parent == base / "_build/.jupyter_cache"
    text = source.read_text(encoding="utf-8")
    source.write_text("changed", encoding="utf-8")
    assert prepared(base).nb_execution_cache_path != first
    source.write_text(text, encoding="utf-8")
    assert prepared(base).nb_execution_cache_path == first


def test_each_kind_of_processor_has_an_execution_cache_of_its_own(
    base: Path, monkeypatch: pytest.MonkeyPatch
):
    found = [prepared(base).nb_execution_cache_path]
    with monkeypatch.context() as patch:
        patch.setenv("SWITCH", "avx2")
        found.append(prepared(base).nb_execution_cache_path)
    with monkeypatch.context() as patch:
        patch.setattr(surroundings, "processor", lambda: "a wider one")
        found.append(prepared(base).nb_execution_cache_path)
    assert len(set(found)) == 3
    assert prepared(base).nb_execution_cache_path == found[0]


def test_the_six_caches_that_were_used_last_are_kept(base: Path):
    caches = base / "_build/.jupyter_cache"
    used = Path(prepared(base).nb_execution_cache_path)
    for age in range(1, 8):
        folder = caches / f"verified-book-old{age}"
        folder.mkdir()
        (folder / "global.db").write_text("", encoding="utf-8")
        os.utime(folder, (1e9 - age, 1e9 - age))
    os.utime(used, (0, 0))
    prepared(base)
    assert sorted(folder.name for folder in caches.iterdir()) == sorted(
        [used.name, *(f"verified-book-old{age}" for age in range(1, 6))]
    )


def test_all_pages_are_written_again_when_a_title_changes():
    env = SimpleNamespace(titles={"b": nodes.title("", "B"), "a": nodes.title("", "A")})
    env.found_docs = {"b", "a"}
    assert retitled_pages(None, env) == ["a", "b"]
    assert retitled_pages(None, env) == []
    env.titles["b"] = nodes.title("", "Another")
    assert retitled_pages(None, env) == ["a", "b"]


def test_a_change_of_the_table_of_contents_is_noticed(base: Path):
    assert not hasattr(prepared(base), "verified_book_toc")
    found = []
    for text in ("root: index", "root: intro"):
        (base / "_toc.yml").write_text(text, encoding="utf-8")
        found.append(prepared(base).verified_book_toc)
    assert found[0] != found[1]
    (base / "_toc.yml").rename(base / "other.yml")
    assert prepared(base, external_toc_path="other.yml").verified_book_toc == found[1]


def test_every_installed_distribution_is_minded_by_a_star(
    base: Path, monkeypatch: pytest.MonkeyPatch
):
    before = digest_of_sources(base, [], ["*"])
    installed = list(metadata.distributions())
    # Half of them: a single one may be found twice, by its sources and by where it is installed.
    fewer = installed[: len(installed) // 2]
    monkeypatch.setattr(metadata, "distributions", lambda: fewer)
    assert digest_of_sources(base, [], ["*"]) != before
