"""Byte pair encoding of bytes, written out as it is defined.

:class:`transformer_layers.Tokenizer` computes the same in the `tokenizers` library.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

import regex

from transformer_layers.validation import require_text

Pair = tuple[str, str]

_VISIBLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_HIDDEN = (byte for byte in range(256) if byte not in _VISIBLE)
# A printable character for each byte, so that a file can list tokens: a space is Ġ.
CHARACTERS = {byte: chr(byte) for byte in _VISIBLE}
CHARACTERS |= {byte: chr(256 + i) for i, byte in enumerate(_HIDDEN)}
BYTES = {character: byte for byte, character in CHARACTERS.items()}

# The endings of it's, don't, ...; words, numbers and other characters, each with the space before
# it; white space, but for the one character that a piece after it takes.
PIECES = regex.compile(r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")

# Training counts the pairs of a longer piece in parts of so many bytes: else a merge would take as
# many steps as the piece has bytes, and the library's own the square of that.
LONGEST = 1024


def pieces(text: str) -> list[str]:
    """Cuts a text; no token reaches from one piece into the next.

    Args:
        text: Any text.

    Returns:
        Its pieces, which together are the text.

    Examples:
        >>> pieces("It's 12 o'clock,  no?")
        ['It', "'s", ' 12', ' o', "'", 'clock', ',', ' ', ' no', '?']
    """
    return PIECES.findall(text)


def spelled(piece: str) -> list[str]:
    """The bytes of a text in UTF-8, each as a character: the first tokens.

    Args:
        piece: Any text.

    Returns:
        A token for each byte.

    Examples:
        >>> spelled(" né")
        ['Ġ', 'n', 'Ã', '©']
    """
    return [CHARACTERS[byte] for byte in piece.encode()]


def merged(tokens: Sequence[str], ranks: Mapping[Pair, int]) -> list[str]:
    """Joins neighbors, each time the pair of the lowest rank, and of equal ones the leftmost.

    Pairs wait in a heap, and a join changes two of them, so that n tokens take O(n log n) steps.

    Args:
        tokens: The bytes of a piece.
        ranks: Places in the list of merges.

    Returns:
        The tokens when no neighbors have a rank any more.

    Examples:
        >>> merged(["h", "u", "g", "s"], {("u", "g"): 0, ("h", "ug"): 1})
        ['hug', 's']
    """
    tokens = ["", *tokens, ""]  # an end has no rank with anything
    before, after = list(range(-1, len(tokens) - 1)), list(range(1, len(tokens) + 1))
    waiting = [(ranks[pair], i) for i, pair in enumerate(pairwise(tokens)) if pair in ranks]
    heapify(waiting)
    while waiting:
        rank, i = heappop(waiting)
        j = after[i]
        if ranks.get((tokens[i], tokens[j])) != rank:
            continue  # one of the two was joined with another neighbor
        tokens[i] += tokens[j]
        tokens[j] = ""
        after[i], before[after[j]] = after[j], i
        for left in (before[i], i):
            pair = tokens[left], tokens[after[left]]
            if pair in ranks:
                heappush(waiting, (ranks[pair], left))
    return [token for token in tokens if token]


def encode(
    text: str, vocab: Mapping[str, int], ranks: Mapping[Pair, int], special: Iterable[str] = ()
) -> list[int]:
    """The numbers of a text's tokens.

    Args:
        text: Any text.
        vocab: The number of each token.
        ranks: The place of each pair in the list of merges.
        special: Names of tokens, such as `<|endoftext|>`, that stand for these tokens where the
            text has them. All others are text.

    Returns:
        The numbers.

    Raises:
        TypeError: If `text` is no str.
        ValueError: If it holds half of a surrogate pair, which UTF-8 cannot write.

    Examples:
        >>> vocab, merges = train(["low lower lowest"], vocab_size=259)
        >>> encode("low lows", vocab, {pair: i for i, pair in enumerate(merges)})
        [257, 258, 82]
    """
    require_text("text", text)
    names = sorted(special, key=len, reverse=True)  # the longer where one begins another
    parts = regex.split(f"({'|'.join(map(regex.escape, names))})", text) if names else [text]
    numbers = []
    for i, part in enumerate(parts):
        if i % 2:  # split puts what it splits at in between
            numbers.append(vocab[part])
            continue
        cut = pieces(part)
        known = {
            piece: [vocab[token] for token in merged(spelled(piece), ranks)] for piece in set(cut)
        }
        numbers += [number for piece in cut for number in known[piece]]
    return numbers


def decode(numbers: Iterable[int], tokens: Sequence[str]) -> str:
    """The text of tokens.

    Args:
        numbers: Their numbers.
        tokens: All tokens, in the order of their numbers.

    Returns:
        The text. Bytes that are no UTF-8, as when a character is cut in two, become U+FFFD.
    """
    spelling = "".join(tokens[number] for number in numbers)
    return bytes(BYTES[character] for character in spelling).decode(errors="replace")


def train(texts: Iterable[str], vocab_size: int) -> tuple[dict[str, int], list[Pair]]:
    """Finds the merges: again and again the pair of neighbors that is met most often.

    Of pairs that are met equally often it is the one whose tokens have the lower numbers, the first
    token's before the second's. A piece of more than 1,024 bytes, which words do not have, is
    counted in parts of so many.

    Args:
        texts: The texts.
        vocab_size: Number of tokens: 256 bytes, and one for each merge.

    Returns:
        The number of each token, and the merges in their order; fewer if no pair is left.

    Examples:
        >>> train(["hug hug hugs"], vocab_size=258)[1]
        [('h', 'u'), ('hu', 'g')]
    """
    times: Counter[str] = Counter()
    for piece, number in Counter(piece for text in texts for piece in pieces(text)).items():
        spelling = "".join(spelled(piece))
        for begin in range(0, len(spelling), LONGEST):
            times[spelling[begin : begin + LONGEST]] += number
    words = {piece: list(piece) for piece in times}
    vocab = {character: i for i, character in enumerate(sorted(BYTES))}
    merges: list[Pair] = []
    counts: Counter[Pair] = Counter()
    places = defaultdict(set)

    def count(piece: str, sign: int) -> None:
        for pair in pairwise(words[piece]):
            counts[pair] += sign * times[piece]
            places[pair].add(piece)

    def order(pair: Pair) -> tuple[int, int, int]:
        return counts[pair], -vocab[pair[0]], -vocab[pair[1]]

    for piece in times:
        count(piece, 1)
    while len(vocab) < vocab_size:
        counts = +counts  # without the pairs that are met no more
        if not counts:
            break
        best = max(counts, key=order)
        merges.append(best)
        vocab.setdefault("".join(best), len(vocab))
        for piece in places.pop(best):
            count(piece, -1)
            words[piece] = merged(words[piece], {best: 0})
            count(piece, 1)
    return vocab, merges
