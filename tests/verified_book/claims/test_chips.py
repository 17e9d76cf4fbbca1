"""The signs of claims that stand on other pages."""

import pytest
from bs4 import BeautifulSoup

from tests.verified_book.books import FRONT_MATTER, Build, sphinx_build, words

pytestmark = pytest.mark.xdist_group("chips")  # one process builds the pages

CONF = """\
extensions = ["myst_nb", "verified_book.claims"]
nb_execution_mode = "cache"
nb_execution_allow_errors = True
"""
LESSON = """\
# A lesson

It holds {chip}`A1`, it depends {chip}`A2`,
it is false {chip}`A3`, and again {claims:chip}`A1`.
That it is not, is so {chip}`not A3`.
"""
RST = """\
One more
========

It holds :chip:`A1`.

Not so :chip:`claims`.
"""


def claim(name: str, verdict: str, text: str, *cells: tuple[str, str]) -> str:
    parts = [f"```{{claim}} {name}\n:verdict: {verdict}\n\n{text}\n```\n"]
    for shows, code in cells:
        option = f":shows: {shows}\n" if shows else ""
        parts.append(f"```{{code-cell}} ipython3\n{option}{code}\n```\n")
    return "\n".join(parts)


ONE = "one = 1\nassert one == {}"
A1 = claim("A1", "holds", 'It is "so" & <thus>: $1 < 2$.', ("", ONE.format(1)))
A2 = claim(
    "A2",
    "holds-if",
    "It may be, see {claim}`A1`.\n:with luck: a *lot* of it.\n:otherwise: nothing.\n"
    ":without rain:\n:otherwise: wet.\n:with a hat: it is cold.",
    ("", ONE.format(1)),
    *((shows, ONE.format(1)) for shows in ("without luck", "with rain", "without a hat")),
)
A3 = claim(
    "A3",
    "fails",
    "It is not.\n:stated: The post: it is.",
    ("as stated", ONE.format(1)),
    ("", ONE.format(1)),
)
TREE = "# All\n\n```{toctree}\nlesson\nmore\nproofs/all\n```\n"
PAGES = {
    "index.md": TREE,
    "lesson.md": LESSON,
    "more.rst": RST.replace("Not so :chip:`claims`.\n", ""),
    "proofs/all.md": f"{FRONT_MATTER}\n# Proofs\n\n{A1}\n{A2}\n{A3}",
}


def chips(build: Build, name: str = "lesson.html"):
    return BeautifulSoup(build.pages[name], "html.parser").select("a.claim-chip")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("chips")


@pytest.fixture(scope="module")
def build(folder) -> Build:
    return sphinx_build(folder, CONF, PAGES, "-j2")


def test_each_verdict_has_its_sign_a_link_and_a_name(build):
    shown = chips(build)
    first = ("✓ A1", "holds: claim A1, It is “so” & <thus>: $1 < 2$.", "claim-holds")
    assert [(chip.get_text(), chip["aria-label"], chip["class"][1]) for chip in shown] == [
        first,
        ("≈ A2", "holds if: claim A2, It may be, see Claim A1.", "claim-holds-if"),
        ("✗ A3", "believed, and false: claim A3, The post: it is.", "claim-fails"),
        first,
        ("✓ A3", "holds: claim A3, It is not.", "claim-holds"),
    ]
    links = [f"proofs/all.html#claim-a{number}" for number in (1, 2, 3, 1, 3)]
    assert [chip["href"] for chip in shown] == links


def test_a_condition_says_what_is_needed_and_what_happens_otherwise(build):
    box = BeautifulSoup(build.pages["proofs/all.html"], "html.parser").select_one("#claim-a2")
    assert [words(str(line)) for line in box.select(".claim-conditions > p")] == [
        "Needs: a lot of it. Otherwise: nothing. without luck: as expected in one cell",
        "Needs: no rain. Otherwise: wet. with rain: as expected in one cell",
        "with a hat: it is cold. without a hat: as expected in one cell",
    ]


def test_other_builders_show_a_link_with_sign_and_number(folder, build):
    text = sphinx_build(folder, CONF, PAGES, "-b", "text").site / "lesson.txt"
    assert "It holds ✓ A1, it depends ≈ A2, it is false ✗ A3" in " ".join(text.read_text().split())


def test_a_changed_verdict_writes_the_page_again(folder, build):
    changed = PAGES["proofs/all.md"].replace(":verdict: holds\n", ":verdict: holds-if\n", 1)
    changed = changed.replace("$1 < 2$.", "$1 < 2$.\n:with luck: some.", 1).replace(
        "```{claim} A2",
        f"```{{code-cell}} ipython3\n:shows: without luck\n{ONE.format(1)}\n```\n\n```{{claim}} A2",
    )
    build = sphinx_build(folder, CONF, {**PAGES, "proofs/all.md": changed}, "-j2")
    assert [chip.get_text() for chip in chips(build)] == ["≈ A1", "≈ A2", "✗ A3", "≈ A1", "✓ A3"]
    assert [chip.get_text() for chip in chips(build, "more.html")] == ["≈ A1"]


def test_a_chip_of_what_is_not_proven_and_one_that_denies_what_holds_are_named(folder, build):
    broken = PAGES["proofs/all.md"].replace(ONE.format(1), ONE.format(2), 1)
    denied = f"{LESSON}\nNor {{chip}}`not A2`.\n"
    pages = {**PAGES, "lesson.md": denied, "proofs/all.md": broken, "more.rst": RST}
    build = sphinx_build(folder, CONF, pages, status=1)
    unproven = "WARNING: a chip of claim A1, which is not proven in this build"
    log = build.log.replace("see ", "").replace(f"{folder}/book/", "")
    assert f"lesson.md:3: {unproven}" in log
    assert f"more.rst:4: {unproven}" in log
    said = {(failure.file, failure.line): failure.message for failure in build.failures}
    assert said["more.rst", 6] == "a reference to the claim claims, which does not exist"
    assert said["lesson.md", 7] == "a chip denies the claim A2, which does not fail"
    shown = chips(build)[:5]
    assert [chip.get_text() for chip in shown] == ["! A1", "≈ A2", "✗ A3", "! A1", "✓ A3"]
    assert shown[0]["aria-label"].startswith("not proven: claim A1, ")
    assert shown[0]["class"][1] == "claim-broken"
    assert "Not so claims." in words(build.pages["more.html"])
