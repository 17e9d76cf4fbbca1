"""GPT-2's tokenizer: from text to tokens and back."""

import hashlib
import json
import os
import re
import time
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import tokenizers
import torch
from jaxtyping import Int
from tokenizers import AddedToken, decoders, models, pre_tokenizers, trainers
from torch import Tensor

from transformer_layers.checkpoints.atomic_save import (
    PAUSES,
    TOKENIZER,
    TOKENIZER_FOR_OTHERS,
    left_behind,
    saving,
)
from transformer_layers.checkpoints.json_file import LARGEST, read_json_object, shown
from transformer_layers.checkpoints.regular_file import read_regular
from transformer_layers.tokenizers.byte_pairs import BYTES, LONGEST
from transformer_layers.tokenizers.ids import require_ids, require_one
from transformer_layers.validation import require_size, require_text

END_OF_TEXT = "<|endoftext|>"
_VERSION = "#version: 0.2"
_SEAL = re.compile(re.escape(_VERSION) + " - SHA-256 of vocabulary and merges: ([0-9a-f]{64})")
_SPECIAL = re.compile("<.+>")  # a token that no merge makes, such as the end of a text


class Tokenizer:
    r"""GPT-2's byte-level byte pair encoding.

    It is the `Encoder` of `src/encoder.py` in https://github.com/openai/gpt-2, described in section
    2.2 of "Language Models are Unsupervised Multitask Learners"; byte pair encoding came to
    machine translation with https://arxiv.org/abs/1508.07909. A text is cut into words, numbers and
    runs of other characters, each with the space before it, and endings such as 's. The bytes of
    each piece in UTF-8 are its first tokens; then, merge by merge, the first in the list first,
    neighbors become one token. Every byte is a token, so every text can be written, and decoding
    gives it back.

    A byte is spelled as a printable character: a space is Ġ, a line break Ċ. All this is written
    out in `transformer_layers.tokenizers.byte_pairs`; here the `tokenizers` library computes it.

    Args:
        vocab: The number of each token, from 0 on, as in a `vocab.json`.
        merges: Pairs of tokens to merge, in the order in which that is done, as in a `merges.txt`.

    Attributes:
        vocab_size: Number of tokens.
        end_of_text: Number of the token `<|endoftext|>`.
        eos_token: The same, under the name that every tokenizer has for what ends a text.

    Raises:
        ValueError: If the numbers are not 0, 1, 2, ..., a byte or `<|endoftext|>` has none, a
            merge has a token, or makes one, that is not in `vocab`, or no merge makes a token of
            two bytes or more. Names in angle brackets need none: they are of special tokens.

    Examples:
        >>> tokenizer = train_tokenizer(["low lower lowest"], vocab_size=260)
        >>> tokenizer.encode("low lows")
        tensor([257, 258,  82])
        >>> tokenizer.decode(torch.tensor([257, 258, 82]))
        'low lows'
    """

    def __init__(self, vocab: Mapping[str, int], merges: Iterable[tuple[str, str]]) -> None:
        self._vocab = dict(vocab)
        self._merges = list(merges)
        _require_tokens(self._vocab)
        _require_merges(self._vocab, self._merges)
        self.vocab_size = len(self._vocab)
        self.end_of_text = self.eos_token = self._vocab[END_OF_TEXT]
        self._library = _cutting_as_gpt2(models.BPE(vocab=self._vocab, merges=self._merges))

    def encode(self, text: str, special: bool = False) -> Int[Tensor, " seq"]:
        """The tokens of a text.

        Args:
            text: Any text.
            special: Whether `<|endoftext|>` in the text stands for the token of that name, as in
                `transformers`. If not, it is text like any other, so that nobody who writes a text
                can end it for the model.

        Returns:
            Their numbers, int64 of shape `(seq,)`.

        Raises:
            TypeError: If `text` is no str.
            ValueError: If it holds half of a surrogate pair, which UTF-8 cannot write.
        """
        require_text("text", text)
        parts = text.split(END_OF_TEXT) if special else [text]
        ids = [self._library.encode(part).ids for part in parts]
        between = (number for part in ids[1:] for number in (self.end_of_text, *part))
        return torch.tensor([*ids[0], *between], dtype=torch.int64)

    def decode(self, ids: Int[Tensor, " seq"]) -> str:
        """The text of tokens.

        Args:
            ids: Numbers of tokens, int64 or int32 of shape `(seq,)`.

        Returns:
            The text. Bytes that are no UTF-8, as when a character is cut in two, become U+FFFD.

        Raises:
            TypeError: If `ids` are not int64 or int32.
            ValueError: If they are not of one axis, or one is not in the vocabulary.
        """
        require_ids(ids, range(self.vocab_size))
        return self._library.decode(ids.tolist(), skip_special_tokens=False)

    def decode_stream(self, ids: Iterable[Int[Tensor, "1"]]) -> Iterator[str]:
        """The text of tokens that come one by one, as :meth:`GPT2.stream` yields them.

        Args:
            ids: Numbers of tokens, each int64 or int32 of shape `(1,)`.

        Yields:
            What each token adds to the text, where a character that is not yet whole is nothing;
            together what :meth:`decode` returns.

        Raises:
            TypeError: If one is not int64 or int32.
            ValueError: If one is not of one axis with one element, or not in the vocabulary.

        Examples:
            >>> tokenizer = train_tokenizer(["low lower lowest"], vocab_size=260)
            >>> ids = tokenizer.encode("low é")  # é has two bytes
            >>> [*tokenizer.decode_stream(ids.split(1))]
            ['low', ' ', '', 'é', '']
        """
        decoder = getincrementaldecoder("utf-8")(errors="replace")
        for each in ids:
            require_ids(each, range(self.vocab_size))
            require_one(each)
            yield decoder.decode(self._bytes_of(int(each)))
        yield decoder.decode(b"", final=True)

    def _bytes_of(self, number: int) -> bytes:
        token: str = self._library.id_to_token(number)  # type: ignore[assignment]
        return bytes(BYTES[each] for each in token) if BYTES.keys() >= {*token} else token.encode()

    def has(self, vocab: object, merges: object) -> bool:
        """Whether its vocabulary and its merges are these."""
        return self._vocab == vocab and self._merges == merges

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes what :func:`load_tokenizer` and `transformers.AutoTokenizer` load.

        `vocab.json` and `merges.txt` are written whole under other names before they take their
        own. By the first line of `merges.txt`, which others skip, :func:`load_tokenizer` knows
        whether they belong together. `tokenizer.json` and `tokenizer_config.json` say the same for
        others: there `<|endoftext|>` in a text stands for the token, as in `transformers`.

        Args:
            folder: Where they are written; made if needed.

        Raises:
            OSError: If a file cannot be written.
            ValueError: If `folder` is the empty text.
        """
        seal = (
            f"{_VERSION} - SHA-256 of vocabulary and merges: {_digest(self._vocab, self._merges)}"
        )
        lines = [seal, *(f"{first} {second}" for first, second in self._merges), ""]
        vocab = json.dumps(self._vocab, ensure_ascii=False)
        texts = ("\n".join(lines), vocab, *self._for_others())
        names = (*TOKENIZER, *TOKENIZER_FOR_OTHERS)
        with saving(folder, TOKENIZER, TOKENIZER_FOR_OTHERS) as unfinished:
            for name, text in zip(names, texts, strict=True):
                (unfinished / name).write_text(text, encoding="utf-8")

    def _for_others(self) -> tuple[str, str]:
        """What `tokenizer.json` and `tokenizer_config.json` hold."""
        library = _cutting_as_gpt2(models.BPE(vocab=self._vocab, merges=self._merges))
        library.add_special_tokens([AddedToken(END_OF_TEXT, normalized=False, special=True)])
        entries = {
            "add_prefix_space": False,
            "bos_token": END_OF_TEXT,
            "clean_up_tokenization_spaces": False,
            "eos_token": END_OF_TEXT,
            "tokenizer_class": "PreTrainedTokenizerFast",
        }
        return library.to_str(), json.dumps(entries, indent=2) + "\n"


def read_pair(place: Path, folder: str | os.PathLike[str]) -> Tokenizer:
    """Reads a tokenizer from `vocab.json` and `merges.txt`.

    Args:
        place: The folder.
        folder: What was asked for: the folder, or a name on the hub.

    Returns:
        The tokenizer.

    Raises:
        FileNotFoundError: If one of the files is not there.
        OSError: If a file cannot be opened.
        ValueError: If a file is damaged, or larger than 8 MiB, or the two do not fit.
    """
    merges_path, vocab_path = (place / name for name in TOKENIZER)
    for path in (vocab_path, merges_path):
        if not os.path.exists(path):
            raise FileNotFoundError(
                f"there is no {path}; a tokenizer's folder has vocab.json and merges.txt"
                + _from_the_hub(folder, place)
            )
    for pause in PAUSES:
        seal, merges = _read_merges(merges_path)
        for path in (vocab_path, *left_behind(place, TOKENIZER)):
            vocab = _vocab_in(path)
            if vocab is not None and (seal is None or seal == _digest(vocab, merges)):
                try:
                    return Tokenizer(vocab, merges)
                except ValueError as error:
                    what = f"no tokenizer can be made of vocab.json and merges.txt in {place}"
                    raise ValueError(f"{what}: {error}") from error
        time.sleep(pause)  # a process that saves may have replaced one of them
    raise ValueError(
        f"{merges_path}: says in its first line that it was saved with another vocab.json, or with "
        f"other merges; if you changed them on purpose, make that line {_VERSION!r}"
    )


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Makes the tokenizer that writes given texts in few tokens.

    The pair of neighbors that is met most often becomes a token, again and again. The same texts
    give the same tokenizer, whatever their order. A piece of more than 1,024 bytes, such as a long
    run of letters without a space, is counted in parts of so many, since the work would grow with
    the square of its length. Encoding cuts no such piece.

    Args:
        texts: The texts.
        vocab_size: Number of tokens: 256 bytes, a token for each pair, and, last, `<|endoftext|>`.

    Returns:
        The tokenizer.

    Raises:
        TypeError: If `texts` is one str, holds what is no str, or `vocab_size` is no int.
        ValueError: If `vocab_size` is below 257, or more than the texts have pairs for, or a text
            holds half of a surrogate pair.
    """
    require_size("vocab_size", vocab_size, minimum=len(BYTES) + 1)
    if isinstance(texts, str):
        raise TypeError("texts must be several texts, got one str; put it into a list")
    texts = list(texts)
    for i, text in enumerate(texts):
        require_text(f"texts[{i}]", text)
    library = _cutting_as_gpt2(models.BPE(), LONGEST)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1, initial_alphabet=sorted(BYTES), show_progress=False
    )
    library.train_from_iterator(texts, trainer)
    trained = json.loads(library.to_str())["model"]
    vocab = {**trained["vocab"], END_OF_TEXT: len(trained["vocab"])}
    if len(vocab) < vocab_size:
        raise ValueError(
            f"the texts have pairs for a vocab_size of {len(vocab)} at most, got {vocab_size}; "
            "give more text or ask for fewer tokens"
        )
    return Tokenizer(vocab, [(first, second) for first, second in trained["merges"]])


def _cutting_as_gpt2(model: models.BPE, longest: int | None = None) -> tokenizers.Tokenizer:
    """The library's tokenizer; `longest` is the number of bytes at which pieces are cut again."""
    library = tokenizers.Tokenizer(model)
    pieces = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.pre_tokenizer = pieces
    if longest is not None:
        parts = pre_tokenizers.FixedLength(longest)
        library.pre_tokenizer = pre_tokenizers.Sequence([pieces, parts])
    library.decoder = decoders.ByteLevel()
    return library


def _from_the_hub(name_or_folder: str | os.PathLike[str], folder: Path) -> str:
    if folder == Path(name_or_folder):
        return ""
    return f". This folder keeps what was fetched of {name_or_folder!r}: with a network, fetch it"


def _require_tokens(vocab: dict[str, int]) -> None:
    numbers = sorted(number for number in vocab.values() if type(number) is int)
    if numbers != list(range(len(vocab))):
        raise ValueError(
            f"the {len(vocab)} tokens must be numbered 0 to {len(vocab) - 1}, each number once"
        )
    missing = sorted(({*BYTES, END_OF_TEXT}) - vocab.keys())
    if missing:
        raise ValueError(
            f"the vocabulary must have a token for each of 256 bytes and {END_OF_TEXT}, "
            f"{len(missing)} missing: {' '.join(missing[:5])}"
        )


def _require_merges(vocab: dict[str, int], merges: list[tuple[str, str]]) -> None:
    for i, (first, second) in enumerate(merges):
        for token in (first, second, first + second):
            if token not in vocab:
                raise ValueError(
                    f"merge {i} is of {first!r} and {second!r}, but the vocabulary has no {token!r}"
                )
    made = {first + second for first, second in merges}
    unmade = [token for token in vocab if len(token) > 1 and token not in made]
    unmade = [token for token in unmade if not _SPECIAL.fullmatch(token)]
    if unmade:
        raise ValueError(
            f"no merge makes the token {shown(unmade[0])}, and {len(unmade) - 1} others, so that "
            "no text would have them; the list of merges was cut short, or is of another vocabulary"
        )


def _digest(vocab: Mapping[str, int], merges: list[tuple[str, str]]) -> str:
    content = json.dumps([sorted(vocab.items()), merges])
    return hashlib.sha256(content.encode()).hexdigest()


def _vocab_in(path: Path) -> dict[str, int] | None:
    """The vocabulary in a file; None if a process that saves has just moved it."""
    try:
        return read_json_object(path)
    except FileNotFoundError:
        return None


def _read_merges(path: Path) -> tuple[str | None, list[tuple[str, str]]]:
    """The digest that the first line has, if it has one, and the merges."""
    try:
        text = read_regular(path, LARGEST).decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: cannot be read as text in UTF-8: {error}") from error
    lines = re.split("\r\n?|\n", text)
    seal = _SEAL.fullmatch(lines[0])
    if seal is None and "SHA-256" in lines[0]:
        raise ValueError(
            f"{path}: its first line is damaged, got {shown(lines[0])}; copy the file again, or, "
            f"if you changed it on purpose, make that line {_VERSION!r}"
        )
    if lines[0].startswith("#version"):
        lines[0] = ""
    merges = []
    for number, line in enumerate(lines, start=1):
        tokens = line.split(" ")
        if line != "" and len(tokens) != 2:
            raise ValueError(
                f"{path}: must have two tokens on each line, with a space between, got "
                f"{shown(line)} on line {number}"
            )
        if line != "":
            merges.append((tokens[0], tokens[1]))
    return seal and seal[1], merges
