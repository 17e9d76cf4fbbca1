"""The words, and every text of each kind."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import permutations, product

import torch
from jaxtyping import Int
from torch import Tensor

_SINGULAR = ("cat", "dog", "bird", "fox", "goat", "hen")
_PLURAL = ("cats", "dogs", "birds", "foxes", "goats", "hens")
_PREPOSITIONS = ("near", "behind")
_ADVERBS = ("here", "today")
_VERBS = ("is", "are")
_ADJECTIVES = ("old", "new", "big")
_NAMES = ("ann", "bob", "eve", "max", "pia", "tom")
_COLORS = ("red", "blue", "green", "pink")

NOUNS = _SINGULAR + _PLURAL
WORDS = (
    *NOUNS,
    "the",
    *_PREPOSITIONS,
    "or",
    "and",
    *_ADVERBS,
    *_VERBS,
    *_ADJECTIVES,
    *_NAMES,
    "met",
    "called",
    *_COLORS,
    ".",
)
_NUMBER = {word: number for number, word in enumerate(WORDS)}

VERBS = ("near", "near here", "or", "or here", "and", "and here")
"""The kinds of sentence whose last word is a verb that agrees with a noun."""


def encode(text: str) -> Int[Tensor, " seq"]:
    """Makes tokens of words: a token is the number of its word in `WORDS`.

    Args:
        text: Words with spaces between them.

    Returns:
        The tokens.

    Raises:
        ValueError: If the language lacks one of the words.

    Examples:
        >>> encode("the cat near the dogs")
        tensor([12,  0, 13, 12,  7])
    """
    words = text.split()
    unknown = [word for word in words if word not in _NUMBER]
    if unknown:
        raise ValueError(f"the words are {' '.join(WORDS)}; got {unknown}")
    return torch.tensor([_NUMBER[word] for word in words], dtype=torch.int64)


def decode(ids: Int[Tensor, " seq"]) -> str:
    """Makes words of tokens.

    Args:
        ids: Tokens, each the number of a word in `WORDS`.

    Returns:
        The words, with spaces between them.

    Raises:
        ValueError: If a token is the number of no word.

    Examples:
        >>> decode(encode("the cat near the dogs"))
        'the cat near the dogs'
    """
    numbers = ids.tolist()
    if any(not 0 <= number < len(WORDS) for number in numbers):
        raise ValueError(f"tokens must be from 0 to {len(WORDS) - 1}, got {numbers}")
    return " ".join(WORDS[number] for number in numbers)


@dataclass(frozen=True)
class Kind:
    """Every text of a kind, up to the word that is asked for, and whole.

    Attributes:
        name: What it is called.
        choices: The words that may be right, as text; by chance one of them is.
        prompts: The texts up to the word that is asked for.
        right: The word that is right after each prompt.
        texts: The whole texts, to train on.
    """

    name: str
    choices: tuple[str, ...]
    prompts: Int[Tensor, "n_prompts seq"]
    right: Int[Tensor, " n_prompts"]
    texts: Int[Tensor, "n_texts longer_seq"]

    @property
    def chance(self) -> float:
        """The share of right words of somebody who guesses among the choices."""
        return 1 / len(self.choices)


# What makes the texts of a kind yields prompt, right word, and the rest of the text.
_Texts = Iterator[tuple[str, str, str]]


def _verb(*, plural: bool) -> str:
    return _VERBS[plural]


def _two_nouns(
    joints: Iterable[str], tails: Iterable[str], plural: Callable[[bool, bool], bool]
) -> _Texts:
    places = product(NOUNS, joints, NOUNS, tails, _ADJECTIVES)
    for first, joint, second, tail, adjective in places:
        verb = _verb(plural=plural(first in _PLURAL, second in _PLURAL))
        yield f"the {first} {joint} the {second}{tail}", verb, f"{adjective} ."


def _the_other() -> _Texts:
    for first, second in permutations(_NAMES, 2):
        for caller, called in permutations((first, second)):
            yield f"{first} and {second} met . {caller} called", called, "."


def _facts() -> _Texts:
    for names, colors in product(permutations(_NAMES[:4]), permutations(_COLORS)):
        facts = tuple(zip(names, colors, strict=True))
        said = " ".join(f"{name} {color}" for name, color in facts)
        for name, color in facts:
            yield f"{said} {name}", color, "."


_HERE = tuple(f" {adverb}" for adverb in _ADVERBS)
_MADE: dict[str, tuple[tuple[str, ...], Callable[[], _Texts]]] = {
    "near": (_VERBS, lambda: _two_nouns(_PREPOSITIONS, ("",), lambda first, second: first)),
    "near here": (_VERBS, lambda: _two_nouns(_PREPOSITIONS, _HERE, lambda first, second: first)),
    "or": (_VERBS, lambda: _two_nouns(("or",), ("",), lambda first, second: second)),
    "or here": (_VERBS, lambda: _two_nouns(("or",), _HERE, lambda first, second: second)),
    "and": (_VERBS, lambda: _two_nouns(("and",), ("",), lambda first, second: True)),
    "and here": (_VERBS, lambda: _two_nouns(("and",), _HERE, lambda first, second: True)),
    "the other": (_NAMES, _the_other),
    "facts": (_COLORS, _facts),
}


def kinds() -> tuple[str, ...]:
    """The names of all kinds of text.

    Examples:
        >>> kinds()
        ('near', 'near here', 'or', 'or here', 'and', 'and here', 'the other', 'facts')
    """
    return tuple(_MADE)


@cache
def kind(name: str) -> Kind:
    """Every text of a kind.

    * near: "the cat near the dogs is": the verb agrees with the first noun.
    * or: "the cat or the dogs are": it agrees with the nearer noun.
    * and: "the cat and the dog are": it is plural.
    * near here, or here, and here: "the cat near the dogs here is": the word before the verb is no
      noun, and tells nothing.
    * the other: "ann and bob met . ann called bob": one of the two calls the other.
    * facts: "ann red bob blue eve pink max green bob blue": a color for each of four names, and
      one of the names again.

    Args:
        name: One of :func:`kinds`.

    Returns:
        The kind. Its tensors are made once; leave them as they are.

    Raises:
        ValueError: If no kind has the name.

    Examples:
        >>> or_here = kind("or here")
        >>> decode(or_here.prompts[12]), decode(or_here.right[12:13])
        ('the cat or the cats here', 'are')
    """
    if name not in _MADE:
        raise ValueError(f"the kinds are {', '.join(_MADE)}; got {name!r}")
    choices, made = _MADE[name]
    found = [
        (encode(prompt), _NUMBER[right], encode(f"{prompt} {right} {rest}"))
        for prompt, right, rest in made()
    ]
    prompts = torch.stack([prompt for prompt, _, _ in found])
    asked = torch.cat([prompts, torch.tensor([[right] for _, right, _ in found])], dim=1).unique(
        dim=0
    )
    return Kind(
        name, choices, asked[:, :-1], asked[:, -1], torch.stack([text for _, _, text in found])
    )


def draw(
    names: Iterable[str], n: int, generator: torch.Generator | None = None
) -> Int[Tensor, "total seq"]:
    """Draws texts of some kinds, as many of each; each text of a kind is as likely.

    Args:
        names: Of the kinds.
        n: How many of each.
        generator: Draws; torch's own if not given.

    Returns:
        Their tokens, kind after kind; a text that is shorter than others ends in full stops.

    Raises:
        ValueError: If no kind has one of the names, or there is none.

    Examples:
        >>> decode(draw(["or"], 1, torch.Generator().manual_seed(0))[0])
        'the hen or the bird is big .'
    """
    texts = [kind(name).texts for name in names]
    if not texts:
        raise ValueError(f"name at least one kind of {', '.join(_MADE)}")
    longest = max(each.shape[1] for each in texts)
    drawn = []
    for each in texts:
        chosen = each[torch.randint(len(each), (n,), generator=generator)]
        padding = (0, longest - each.shape[1])
        drawn.append(torch.nn.functional.pad(chosen, padding, value=_NUMBER["."]))
    return torch.cat(drawn)
