"""The index of a book: its terms and names, and where each is spoken of."""

import re

import pytest

from tests.verified_book.books import sphinx_build, words

pytestmark = pytest.mark.xdist_group("light")

CONF = """
extensions = ["myst_nb", "verified_book.claims", "book_site.general_index"]
html_theme = "sphinx_book_theme"
verified_book_notes = {"book": "this book"}
nb_execution_mode = "cache"
nb_execution_allow_errors = True
"""
START = """\
# The book

```{toctree}
masks
end
```
"""
MASKS = """\
---
file_format: mystnb
kernelspec: {name: python3, display_name: Python 3, language: python}
---
# Masks

## What a causal mask hides

```{claim} A1
:note: book
:verdict: holds

A mask hides; attention maps show it.
```

```{code-cell}
assert sum(range(3)) == 3
```

```{claim} A2
:note: book
:verdict: holds

Two masks hide more.
```

```{code-cell}
assert sum(range(3)) == 3
```

## Attention maps

Words.
"""
END = """\
# The end

```{glossary}
mask
  Hides.

attention
  Looks.

attention map
  A picture.

ε
  Small.
```

```{py:class} Norm
```

```{py:method} Norm.forward(x)
```

```{py:function} attend(x)
```

## Index

```{general-index}
```
"""
PAGES = {"index.md": START, "masks.md": MASKS, "end.md": END}


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    return sphinx_build(tmp_path_factory.mktemp("index"), CONF, PAGES)


def lines(build):
    listed = re.findall(
        r'<ul class="general-index simple">(.*?)</ul>', build.article("end.html"), re.DOTALL
    )
    return [words(line) for line in re.findall(r"<li>(.*?)</li>", "".join(listed), re.DOTALL)]


def test_terms_and_names_stand_under_their_letters(build):
    assert lines(build) == [
        "ε",
        "attend",
        "attention",
        "attention map , Masks: Attention maps ; claim A1",
        "forward , Norm",
        "mask , Masks ; Masks: What a causal mask hides ; claims A1 , A2",
        "Norm",
    ]
    heads = re.findall(r'<h3 class="rubric" id="([^"]*)">(.*?)</h3>', build.article("end.html"))
    assert heads == [(f"index-{key.lower()}", key) for key in ["Signs", "A", "F", "M", "N"]]
    links = re.findall(r'href="#(index-[^"]*)">', build.article("end.html"))
    assert links == [anchor for anchor, _ in heads]


def test_entries_lead_to_what_they_name(build):
    page = build.article("end.html")
    assert 'href="#term-mask"' in page
    assert 'href="masks.html#what-a-causal-mask-hides"' in page
    assert 'href="#Norm.forward"' in page


def test_it_is_written_again_when_a_title_elsewhere_is_another(tmp_path):
    sphinx_build(tmp_path, CONF, PAGES)
    changed = MASKS.replace("Attention maps", "Pictures")
    again = sphinx_build(tmp_path, CONF, {**PAGES, "masks.md": changed})
    assert "attention map , claim A1" in lines(again)


def test_what_stands_in_the_directive_is_a_failure(tmp_path):
    pages = {**PAGES, "end.md": END.replace("{general-index}\n", "{general-index}\nwords\n")}
    log = sphinx_build(tmp_path, CONF, pages, status=1).log
    assert "general-index: it has no content" in log
    assert "Remove what stands in it." in log
