"""Claims are in `objects.inv`: another book links to one, and a link to none is a failure."""

import re
from pathlib import Path

import pytest

from tests.verified_book.books import FRONT_MATTER, Build, sphinx_build, words

pytestmark = pytest.mark.xdist_group("other books")

PAGE = """\
# Claims

See {claim}`B-2`, {claim}`A1` and {any}`A1`.

```{claim} A1
:verdict: holds

It is six.
```

```{claim} B-2
:verdict: fails

It is six.
:stated: It is *seven*.
:without luck: there is *none*.
```

```{code-cell}
not run
```
"""
CONF = 'extensions = ["verified_book.claims"]\nproject = "First"\nnb_execution_mode = "off"\n'


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """A book with claims, of which no cell runs."""
    pages = {
        "index.md": "# A book\n\n```{toctree}\npart/page\n```\n",
        "part/page.md": FRONT_MATTER + PAGE,
    }
    return sphinx_build(tmp_path_factory.mktemp("first"), CONF, pages)


@pytest.fixture
def first(build: Build) -> Path:
    """The site of this book."""
    return build.site


def second(folder: Path, first: Path, page: str, extensions: str, status: int = 0) -> Build:
    conf = f"""\
extensions = ["sphinx.ext.intersphinx", {extensions}]
intersphinx_mapping = {{"first": ("https://first.example/", {str(first / "objects.inv")!r})}}
"""
    return sphinx_build(folder, conf, {"index.md": page}, status=status)


LINK = 'href="https://first.example/part/page.html#claim-a1"'


REFERENCES = {
    "{claim}`A1`": "Claim A1",
    "{external+first:claims:claim}`the first <A1>`": "the first",
    "<inv:first:claims:claim#A1>": "Claim A1",
}


def test_another_book_links_to_a_claim(tmp_path, first):
    page = "# Second\n\n" + "".join(f"* See {reference}.\n" for reference in REFERENCES)
    build = second(tmp_path, first, page, '"verified_book.claims"')
    items = re.findall(r"<li><p>See .*?</li>", build.pages["index.html"], re.DOTALL)
    assert all(LINK in item for item in items), items
    assert [words(item) for item in items] == [f"See {text} ." for text in REFERENCES.values()]


def test_a_claim_that_no_book_has_is_a_failure_and_no_second_warning(tmp_path, first):
    page = "# Second\n\nSee {claim}`A1`\nand {claim}`nowhere` and {claim}`!nothing`.\n"
    build = second(tmp_path, first, page, '"verified_book.claims"', status=1)
    (failure,) = build.failures
    assert (failure.file, failure.line) == ("index.md", 3)
    assert failure.message == "a reference to the claim nowhere, which does not exist"
    assert "reference target not found" not in build.log
    assert "Claim nowhere" in build.pages["index.html"]
