"""The words and the sentences."""

import torch
from jaxtyping import Int
from torch import Tensor

_SINGULAR = ("key", "box", "door", "cup", "lamp", "book")
_PLURAL = ("keys", "boxes", "doors", "cups", "lamps", "books")
_PREPOSITIONS = ("to", "near", "under")
_VERBS = ("is", "are")
_ADJECTIVES = ("old", "new", "red")

NOUNS = _SINGULAR + _PLURAL
WORDS = (*NOUNS, "the", *_PREPOSITIONS, *_VERBS, *_ADJECTIVES, ".")
_NUMBER = {word: number for number, word in enumerate(WORDS)}


def encode(text: str) -> Int[Tensor, " seq"]:
    """Makes tokens of words: a token is the number of its word in `WORDS`.

    Args:
        text: Words with spaces between them.

    Returns:
        The tokens.

    Raises:
        ValueError: If the language lacks one of the words.

    Examples:
        >>> encode("the keys to the box")
        tensor([12,  6, 13, 12,  1])
    """
    words = text.split()
    unknown = [word for word in words if word not in _NUMBER]
    if unknown:
        raise ValueError(f"the words are {' '.join(WORDS)}; got {unknown}")
    return torch.tensor([_NUMBER[word] for word in words])


def decode(ids: Int[Tensor, " seq"]) -> str:
    """Makes words of tokens.

    Args:
        ids: Tokens, each the number of a word in `WORDS`.

    Returns:
        The words, with spaces between them.

    Raises:
        ValueError: If a token is the number of no word.

    Examples:
        >>> decode(encode("the keys to the box"))
        'the keys to the box'
    """
    numbers = ids.tolist()
    if any(not 0 <= number < len(WORDS) for number in numbers):
        raise ValueError(f"tokens must be from 0 to {len(WORDS) - 1}, got {numbers}")
    return " ".join(WORDS[number] for number in numbers)


def right_verb(first_noun: Int[Tensor, " *batch"]) -> Int[Tensor, " *batch"]:
    """Tells which verb a sentence has.

    Args:
        first_noun: Tokens of nouns, the first ones of their sentences.

    Returns:
        The token of "is" where the noun is singular, of "are" where it is plural.

    Examples:
        >>> decode(right_verb(encode("key keys")))
        'is are'
    """
    return _NUMBER["is"] + (first_noun >= len(_SINGULAR)).long()


def sentences(n: int) -> Int[Tensor, "n 8"]:
    """Draws sentences such as "the keys to the box are old ." with torch's generator.

    Args:
        n: How many.

    Returns:
        Their tokens; every choice of nouns, preposition and adjective is as likely.

    Examples:
        >>> sentences(3).shape
        torch.Size([3, 8])
    """

    def column(words: tuple[str, ...]) -> Tensor:
        return _NUMBER[words[0]] + torch.randint(len(words), (n,))

    the, end = encode("the").expand(n), encode(".").expand(n)
    first, second = column(NOUNS), column(NOUNS)
    verb = right_verb(first)
    rows = [the, first, column(_PREPOSITIONS), the, second, verb, column(_ADJECTIVES), end]
    return torch.stack(rows, dim=1)
