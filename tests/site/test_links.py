"""Every link, anchor and file that a page names exists; only links may lead to other hosts."""

import re
from collections import Counter
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

import pytest

pytestmark = pytest.mark.xdist_group("site")


class Named(HTMLParser):
    """What a page names. All pages have 400,000 tags: a tree of them would take half a minute.

    Attributes:
        ids: Of its elements, in order.
        anchors: What else an address may end in.
        addresses: Of links, files and images, in its own words.
        loaded: Of these, what a browser loads by itself.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.anchors: set[str] = set()
        self.addresses: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(text)
        self.addresses.discard("#")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        if "id" in named:
            self.ids.append(named["id"])
            self.anchors.add(named["id"])
        if tag == "a" and "name" in named:
            self.anchors.add(named["name"])
        addresses = {named[each] for each in ("href", "src") if each in named}
        self.addresses |= addresses
        if "src" in named or (tag == "link" and named.get("rel") != "canonical"):
            self.loaded |= addresses


@pytest.fixture(scope="module")
def named(texts):
    return {name: Named(text) for name, text in texts.items()}


def test_chapters_are_found(texts):
    assert {"index.html", "search.html", "how_to_read.html"} < texts.keys()


def test_internal_links_resolve(html, named):
    dead = set()
    for name, page in named.items():
        for address in page.addresses:
            link = urlsplit(urljoin(name, address))
            path, anchor = unquote(link.path), unquote(link.fragment)
            if link.scheme or link.netloc:
                continue
            if not (html / path).is_file() or (
                anchor and path in named and anchor not in named[path].anchors
            ):
                dead.add((name, address))
    assert dead == set()


def test_only_links_name_other_hosts(named):
    loaded = [(name, address) for name, page in named.items() for address in page.loaded]
    assert loaded
    assert [each for each in loaded if urlsplit(each[1]).netloc] == []


def test_stylesheets_name_no_other_host(html):
    other_host = re.compile(r"""(?:url\(|@import)\s*["']?(?:https?:)?//""")
    sheets = list(html.rglob("*.css"))
    assert sheets
    assert [file for file in sheets if other_host.search(file.read_text(encoding="utf-8"))] == []


def test_ids_are_of_one_element(named):
    doubled = {
        name: several
        for name, page in named.items()
        if (several := [one for one, number in Counter(page.ids).items() if number > 1])
    }
    assert doubled == {}
