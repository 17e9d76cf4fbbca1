"""The words of both languages, the rules of the translation, and every pair of sentences."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from transformer_layers import padding_mask
from transformer_training import toy_language
from transformer_training.toy_language import NOUNS, VERBS

# Of each animal: its gender, and the noun in the singular, in the plural, in its dative.
_ANIMALS = (
    ("feminine", "Katze", "Katzen", "Katzen"),
    ("masculine", "Hund", "Hunde", "Hunden"),
    ("masculine", "Vogel", "Vögel", "Vögeln"),
    ("masculine", "Fuchs", "Füchse", "Füchsen"),
    ("feminine", "Ziege", "Ziegen", "Ziegen"),
    ("neuter", "Huhn", "Hühner", "Hühnern"),
)
_ARTICLES = {  # of the nominative, and of the dative
    "masculine": ("der", "dem"),
    "feminine": ("die", "der"),
    "neuter": ("das", "dem"),
    "plural": ("die", "den"),
}
_PREPOSITIONS = {"near": "bei", "behind": "hinter"}
_CONJUNCTIONS = {"or": "oder", "and": "und"}
_ADVERBS = {"here": "hier", "today": "heute"}
_ADJECTIVES = {"old": "alt", "new": "neu", "big": "groß"}

PADDING, START, END = 0, 1, 2  # the tokens that `TransformerConfig` has for them
_MARKS = ("<padding>", "<start>", "<end>")
_ENGLISH = (
    *NOUNS,
    "the",
    *_PREPOSITIONS,
    *_CONJUNCTIONS,
    *_ADVERBS,
    "is",
    "are",
    *_ADJECTIVES,
)
_GERMAN = (
    *dict.fromkeys(form for _, *forms in _ANIMALS for form in forms),
    *dict.fromkeys(article for both in _ARTICLES.values() for article in both),
    *_PREPOSITIONS.values(),
    *_CONJUNCTIONS.values(),
    *_ADVERBS.values(),
    "ist",
    "sind",
    *_ADJECTIVES.values(),
)
WORDS = (*_MARKS, ".", *_ENGLISH, *_GERMAN)
"""The words of both languages, the three marks in front; a token is the number of its word."""

_NUMBER = {word: number for number, word in enumerate(WORDS)}


@dataclass(frozen=True)
class Pair:
    """A sentence and its translation.

    Attributes:
        kind: One of `toy_language.VERBS`.
        source: The English sentence.
        target: The German one.
    """

    kind: str
    source: str
    target: str


def encode(text: str) -> Int[Tensor, " seq"]:
    """Makes tokens of the words of a sentence, and ends them with `END`.

    Args:
        text: Words of either language, with spaces between them.

    Returns:
        The tokens.

    Raises:
        ValueError: If neither language has one of the words.

    Examples:
        >>> encode("the cat is old .")
        tensor([16,  4, 23, 25,  3,  2])
    """
    words = text.split()
    unknown = [word for word in words if _NUMBER.get(word, 0) < len(_MARKS)]
    if unknown:
        raise ValueError(f"the words are {' '.join(WORDS[len(_MARKS) :])}; got {unknown}")
    return torch.tensor([*(_NUMBER[word] for word in words), END], dtype=torch.int64)


def decode(ids: Int[Tensor, " seq"]) -> str:
    """Makes words of tokens, up to the first `END`; other marks are left out.

    Args:
        ids: Tokens, each the number of a word in `WORDS`.

    Returns:
        The words, with spaces between them.

    Raises:
        ValueError: If a token is the number of no word.

    Examples:
        >>> decode(torch.tensor([START, *encode("die Katze ist alt ."), PADDING]))
        'die Katze ist alt .'
    """
    numbers = ids.tolist()
    if any(not 0 <= number < len(WORDS) for number in numbers):
        raise ValueError(f"tokens must be from 0 to {len(WORDS) - 1}, got {numbers}")
    if END in numbers:
        numbers = numbers[: numbers.index(END)]
    return " ".join(WORDS[number] for number in numbers if number >= len(_MARKS))


def batch(texts: Iterable[str]) -> Int[Tensor, "batch seq"]:
    """The tokens of sentences, those of shorter ones filled up with `PADDING`.

    Args:
        texts: Sentences of either language.

    Returns:
        Shape `(batch, seq)`, as long as the longest with its `END`.

    Raises:
        ValueError: If there is no sentence, or neither language has one of the words.

    Examples:
        >>> batch(["the cat is old .", "here ."])
        tensor([[16,  4, 23, 25,  3,  2],
                [21,  3,  2,  0,  0,  0]])
    """
    rows = [encode(text) for text in texts]
    if not rows:
        raise ValueError("a batch must hold a sentence, got none")
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PADDING)


def source_mask(source_ids: Int[Tensor, "batch seq"]) -> Bool[Tensor, "batch 1 seq"]:
    """Which positions of each source are not padding, as `Transformer` takes it.

    Args:
        source_ids: What :func:`batch` gives.

    Returns:
        Shape `(batch, 1, seq)`.

    Examples:
        >>> source_mask(batch(["the cat .", "here ."])).int()
        tensor([[[1, 1, 1, 1]],
        <BLANKLINE>
                [[1, 1, 1, 0]]], dtype=torch.int32)
    """
    return padding_mask((source_ids != PADDING).sum(dim=1), source_ids.shape[1])


def translation(text: str) -> str:
    """The German of a sentence, by rules.

    * The article has the gender and the number of its noun; after a preposition it is in the
      dative, and so is the noun.
    * An adverb comes first. The verb is the second part of a sentence: it stands before the subject
      where there is an adverb, and behind it elsewhere.
    * The verb agrees as in English: with the first noun; with the nearer one, where "oder" joins
      two; and it is plural where "und" does. Before the subject the first noun is the nearer.

    Args:
        text: A sentence of one of the kinds in `toy_language.VERBS`.

    Returns:
        The German sentence.

    Raises:
        ValueError: If it is no such sentence.

    Examples:
        >>> translation("the cats behind the dog are old .")
        'die Katzen hinter dem Hund sind alt .'
        >>> translation("the cats behind the dog today are old .")
        'heute sind die Katzen hinter dem Hund alt .'
        >>> translation("the dog or the hens today are old .")
        'heute ist der Hund oder die Hühner alt .'
    """
    if text not in _kinds():
        raise ValueError(f"{text!r} is no sentence of the kinds {', '.join(VERBS)}")
    _, first, joint, _, second, *rest = text.split()
    adjective = _ADJECTIVES[rest[-2]]
    adverb = _ADVERBS.get(rest[0])
    dative = joint in _PREPOSITIONS
    subject = (
        *_noun(first, dative=False),
        _PREPOSITIONS[joint] if dative else _CONJUNCTIONS[joint],
        *_noun(second, dative=dative),
    )
    agreeing = first if dative or adverb else second
    verb = "sind" if joint == "and" or _is_plural(agreeing) else "ist"
    words = (adverb, verb, *subject) if adverb else (*subject, verb)
    return " ".join((*words, adjective, "."))


@cache
def pairs() -> tuple[Pair, ...]:
    """Every sentence of the kinds in `toy_language.VERBS`, with its translation.

    Examples:
        >>> len(pairs())
        5184
        >>> pairs()[0].source, pairs()[0].target
        ('the cat near the cat is old .', 'die Katze bei der Katze ist alt .')
    """
    return tuple(Pair(kind, text, translation(text)) for text, kind in _kinds().items())


@cache
def training() -> tuple[Pair, ...]:
    """The pairs to learn from: all but those that are held out.

    Examples:
        >>> len(training())
        4320
    """
    return tuple(pair for pair in pairs() if not _is_held_out(pair))


@cache
def held_out() -> tuple[Pair, ...]:
    """A sixth of the pairs, which nobody learns from.

    Each animal stands before one other, whatever their numbers, in no sentence of
    :func:`training`: "the dogs near the hen" is held out, as is all that joins dogs to hens. Every
    noun is in other sentences there, in both places.

    Examples:
        >>> len(held_out())
        864
        >>> held_out()[-1].source
        'the hens and the dogs today are big .'
    """
    return tuple(pair for pair in pairs() if _is_held_out(pair))


def draw(
    n: int, generator: torch.Generator | None = None, among: int | None = None
) -> tuple[Int[Tensor, "n source_seq"], Int[Tensor, "n target_seq"]]:
    """Draws pairs of :func:`training`; each is as likely.

    Args:
        n: How many.
        generator: Draws; torch's own if not given.
        among: From so many of the pairs, spread evenly over all; from all if not given.

    Returns:
        Tokens of sources and of targets, padded to the longest of all pairs.

    Raises:
        ValueError: If there are not as many pairs.

    Examples:
        >>> source_ids, target_ids = draw(1, torch.Generator().manual_seed(0))
        >>> decode(source_ids[0]), decode(target_ids[0])
        ('the cats near the foxes here are big .', 'hier sind die Katzen bei den Füchsen groß .')
    """
    sources, targets = _training_ids()
    many = len(sources)
    if among is not None and not 1 <= among <= many:
        raise ValueError(f"among must be from 1 to {many} pairs, got {among}")
    chosen = torch.randint(among or many, (n,), generator=generator)
    if among is not None:
        chosen = chosen * many // among
    return sources[chosen], targets[chosen]


@cache
def _training_ids() -> tuple[Tensor, Tensor]:
    return batch(pair.source for pair in training()), batch(pair.target for pair in training())


@cache
def _kinds() -> dict[str, str]:
    """The kind of each sentence."""
    texts = ((name, toy_language.kind(name).texts) for name in VERBS)
    return {toy_language.decode(row): name for name, rows in texts for row in rows}


def _is_held_out(pair: Pair) -> bool:
    words: Sequence[str] = pair.source.split()
    return (_animal(words[1]) + _animal(words[4])) % len(_ANIMALS) == 0


def _animal(noun: str) -> int:
    return NOUNS.index(noun) % len(_ANIMALS)


def _is_plural(noun: str) -> bool:
    return NOUNS.index(noun) >= len(_ANIMALS)


def _noun(noun: str, *, dative: bool) -> tuple[str, str]:
    """The German article and noun."""
    gender, *forms = _ANIMALS[_animal(noun)]
    plural = _is_plural(noun)
    return _ARTICLES["plural" if plural else gender][dative], forms[plural * (1 + dative)]
