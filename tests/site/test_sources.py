"""What a page of the book depends on runs its cells again when it changes."""

import re
from fnmatch import fnmatch
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
OURS = sorted(path.name for path in (ROOT / "src").iterdir() if (path / "__init__.py").is_file())
# Files of the checkout that a cell reads beside its imports.
READ = re.compile(r'checkout / "(?P<path>[^"]+\.\w+)"')


def patterns() -> list[str]:
    settings = yaml.safe_load((BOOK / "_config.yml").read_text(encoding="utf-8"))
    found = settings["sphinx"]["config"]["verified_book_sources"]
    return [each.removeprefix("../").replace("**/", "") for each in found]


def test_each_package_that_a_page_imports_and_each_file_that_it_reads_is_watched():
    pages = [page for suffix in ("md", "rst") for page in BOOK.rglob(f"*.{suffix}")]
    texts = {page: page.read_text(encoding="utf-8") for page in pages if "_build" not in page.parts}
    needed = {}
    for page, text in texts.items():
        imported = [name for name in OURS if re.search(rf"^\s*(from|import) {name}\b", text, re.M)]
        needed |= {f"src/{name}/any.py": page for name in imported}
        needed |= {found["path"]: page for found in READ.finditer(text)}
    assert len(needed) > len(OURS)
    unwatched = {
        path: page.name
        for path, page in needed.items()
        if not any(fnmatch(path, pattern) for pattern in patterns())
    }
    assert unwatched == {}, "list them under verified_book_sources in book/_config.yml"
