"""What an index lists: terms, names, and where each is spoken of."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from docutils import nodes

from verified_book.toc_order import reading_order

if TYPE_CHECKING:
    from sphinx.environment import BuildEnvironment

_MANY = 8  # claims that say nothing of a term any more
_OF_MODULES = {"module", "data"}


@dataclass(frozen=True)
class Place:
    """A place in the book, and what to call it."""

    title: str
    page: str
    anchor: str = ""


@dataclass(frozen=True)
class IndexEntry:
    """A line of the index.

    Attributes:
        word: A term or a name.
        is_name: Whether it is a name in code.
        told: Where a term is explained.
        places: The sections about it; of a name, what has it.
        claims: The claims about it, by their ids.
    """

    word: str
    is_name: bool
    told: Place | None
    places: tuple[Place, ...]
    claims: tuple[Place, ...] = ()


def entries(env: "BuildEnvironment") -> list[IndexEntry]:
    """The lines of the index, by their letters."""
    explained = _terms(env)
    pattern = words_pattern(explained)
    spoken = _about(pattern, _sections(env))
    claimed = _about(pattern, _claims(env))
    terms = [
        IndexEntry(
            term,
            False,
            told,
            tuple(place for place in spoken[term.lower()] if place.page != told.page),
            tuple(claimed[term.lower()]) if len(claimed[term.lower()]) <= _MANY else (),
        )
        for term, told in explained.items()
    ]
    return sorted([*terms, *_names(env)], key=lambda entry: (entry.word.casefold(), entry.is_name))


def _about(
    pattern: re.Pattern[str], places: Iterable[tuple[Place, str]]
) -> dict[str, dict[Place, None]]:
    """The places of each term, in their order."""
    found: dict[str, dict[Place, None]] = defaultdict(dict)
    for place, words in places:
        for term in found_in(words, pattern):
            found[term][place] = None
    return found


def words_pattern(terms: Iterable[str]) -> re.Pattern[str]:
    """What finds any of the terms, the longest first, also in the plural.

    Examples:
        >>> pattern = words_pattern(["attention", "attention map"])
        >>> found_in("Attention maps, and what attention is", pattern)
        ['attention map', 'attention']
    """
    longest = sorted(terms, key=len, reverse=True)
    either = "|".join(re.escape(term) for term in longest)
    return re.compile(rf"(?<![\w-])({either})s?(?![\w-])" if longest else r"(?!)", re.IGNORECASE)


def found_in(words: str, pattern: re.Pattern[str]) -> list[str]:
    """The terms in a text, in lower case, each once."""
    return list(dict.fromkeys(match[1].lower() for match in pattern.finditer(words)))


def _terms(env: "BuildEnvironment") -> dict[str, Place]:
    """The terms of all glossaries."""
    objects = env.get_domain("std").get_objects()
    return {
        shown: Place(env.titles[page].astext(), page, anchor)
        for _, shown, kind, page, anchor, _ in objects
        if kind == "term"
    }


def _sections(env: "BuildEnvironment") -> Iterable[tuple[Place, str]]:
    """Every section of the book in its order, with its title."""
    for page in reading_order(env):
        if page not in env.tocs:
            continue
        chapter = env.titles[page].astext()
        for number, link in enumerate(env.tocs[page].findall(nodes.reference)):
            title = link.astext()
            shown = chapter if number == 0 else f"{chapter}: {title}"
            yield Place(shown, page, link["anchorname"].removeprefix("#")), title


def _claims(env: "BuildEnvironment") -> Iterable[tuple[Place, str]]:
    """Every claim of the book in its order, with its statement."""
    if "claims" in env.domains:
        from verified_book.claims.domain import claims_domain

        for claim in claims_domain(env).ordered_claims():
            yield Place(claim.id, claim.page, claim.anchor), claim.text


def _names(env: "BuildEnvironment") -> list[IndexEntry]:
    """The names of the API; what has its name within several classes is one line."""
    found: dict[str, dict[Place, None]] = defaultdict(dict)
    for full, _, kind, page, anchor, priority in env.get_domain("py").get_objects():
        if kind not in _OF_MODULES and priority >= 0:
            owner, _, name = full.rpartition(".")
            found[name][Place(owner, page, anchor)] = None
    return [IndexEntry(name, True, None, tuple(places)) for name, places in found.items()]
