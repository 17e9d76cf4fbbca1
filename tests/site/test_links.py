"""Every link, anchor and file that a page names exists; only links may lead to other hosts."""

import re
from collections import Counter
from urllib.parse import unquote, urljoin, urlsplit

import pytest

pytestmark = pytest.mark.xdist_group("site")


def addresses(soup, selector, attribute):
    """What a page names, in its own words."""
    return [tag[attribute] for tag in soup.select(selector) if tag[attribute] != "#"]


def test_chapters_are_found(pages):
    assert {"index.html", "search.html", "how_to_read.html"} < pages.keys()


def test_internal_links_resolve(html, pages):
    anchors = {
        name: {tag["id"] for tag in soup.select("[id]")}
        | {tag["name"] for tag in soup("a", {"name": True})}
        for name, soup in pages.items()
    }
    dead = set()
    for name, soup in pages.items():
        for address in [*addresses(soup, "[href]", "href"), *addresses(soup, "[src]", "src")]:
            link = urlsplit(urljoin(name, address))
            path, anchor = unquote(link.path), unquote(link.fragment)
            if link.scheme or link.netloc:
                continue
            if not (html / path).is_file() or (
                anchor and anchor not in anchors.get(path, {anchor})
            ):
                dead.add((name, address))
    assert dead == set()


def test_only_links_name_other_hosts(pages):
    named = {
        (name, str(tag))
        for name, soup in pages.items()
        for tag in soup.select("[src], link[href]")
        if urlsplit(tag.get("src") or tag["href"]).netloc and tag.get("rel") != ["canonical"]
    }
    assert named == set()


def test_stylesheets_name_no_other_host(html):
    other_host = re.compile(r"""(?:url\(|@import)\s*["']?(?:https?:)?//""")
    sheets = list(html.rglob("*.css"))
    assert sheets
    assert [file for file in sheets if other_host.search(file.read_text(encoding="utf-8"))] == []


def test_ids_are_of_one_element(pages):
    doubled = {}
    for name, soup in pages.items():
        counts = Counter(tag["id"] for tag in soup.select("[id]"))
        if several := [one for one, number in counts.items() if number > 1]:
            doubled[name] = several
    assert doubled == {}
