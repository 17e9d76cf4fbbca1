"""The tokenizer that is written out: by hand, and against `tokenizers` and `tiktoken`.

`tiktoken` is OpenAI's, and none of its code is that of `tokenizers`. It merges by the rank of what
a merge makes, where ours goes by the rank of the pair.
"""

import functools
import random
import re

import pytest
import regex
import tiktoken
import tokenizers
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from tiktoken.load import data_gym_to_mergeable_bpe_ranks
from tokenizers import models, pre_tokenizers

from tests.transformer_layers.models.gpt2.published import published_files, published_vocabulary
from transformer_layers.tokenizers.byte_pairs import (
    BYTES,
    CHARACTERS,
    decode,
    encode,
    merged,
    pieces,
    spelled,
    train,
)
from transformer_layers.tokenizers.tokenizer import END_OF_TEXT, Tokenizer, train_tokenizer

# As it stands in src/encoder.py of https://github.com/openai/gpt-2.
PUBLISHED_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


@functools.cache
def ranks():
    return {pair: i for i, pair in enumerate(published_vocabulary()[1])}


@functools.cache
def tokens():
    vocab = published_vocabulary()[0]
    return sorted(vocab, key=vocab.get)


@functools.cache
def ours():
    """Encoders of the published vocabulary: written out, by `tokenizers`, by `tiktoken`."""
    vocab, merges = published_vocabulary()
    fast = Tokenizer(vocab, merges)
    theirs = tiktoken.Encoding(
        "gpt2",
        pat_str=PUBLISHED_PATTERN,
        mergeable_ranks=of_tiktoken(),
        special_tokens={END_OF_TEXT: 50256},
    )
    return fast, theirs


@functools.cache
def of_tiktoken():
    numbers, merges = published_files()
    return data_gym_to_mergeable_bpe_ranks(
        vocab_bpe_file=str(merges), encoder_json_file=str(numbers)
    )


def same(text):
    """The tokens of a text, if all three have the same."""
    fast, theirs = ours()
    found = encode(text, published_vocabulary()[0], ranks())
    assert found == fast.encode(text).tolist()
    assert found == theirs.encode_ordinary(text)
    return found


# By hand


def test_bytes_are_spelled_in_printable_characters():
    assert sorted(CHARACTERS) == list(range(256))
    assert len(BYTES) == 256
    assert all(character.isprintable() and character != " " for character in BYTES)
    assert spelled("a \n\0\x7f\xa0\xad") == ["a", "Ġ", "Ċ", "Ā", "ġ", "Â", "ł", "Â", "Ń"]
    assert BYTES.keys() == set(pre_tokenizers.ByteLevel.alphabet())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("it's we'll I'd x'sd", ["it", "'s", " we", "'ll", " I", "'d", " x", "'s", "d"]),
        ("IT'S 'tis", ["IT", "'", "S", " '", "tis"]),
        ("3rd x2 ½²", ["3", "rd", " x", "2", " ½²"]),
        ("a  b   c \n d\n\n e ", ["a", " ", " b", "  ", " c", " \n", " d", "\n\n", " e", " "]),
        ("a\u00a0b\tc", ["a", "\u00a0", "b", "\t", "c"]),
        ("no... (why)?!", ["no", "...", " (", "why", ")?!"]),
        ("e\u0301語", ["e", "\u0301", "語"]),
        ("a_b", ["a", "_", "b"]),
    ],
)
def test_pieces(text, expected):
    assert pieces(text) == expected


def test_the_pair_of_the_lowest_rank_comes_first_and_then_the_leftmost():
    assert merged("abc", {("a", "b"): 0, ("b", "c"): 1}) == ["ab", "c"]
    assert merged("abc", {("a", "b"): 1, ("b", "c"): 0}) == ["a", "bc"]
    assert merged("aaaaa", {("a", "a"): 0}) == ["aa", "aa", "a"]
    assert merged("xabc", {("ab", "c"): 0, ("a", "b"): 1}) == ["x", "abc"]
    assert merged("", {}) == []
    assert merged("a", {("a", "a"): 0}) == ["a"]


# The published vocabulary


@given(st.text())
@example("")
@example("\x00\x00 \r\n\t\u00a0\u2028\x85\u180e\u200b\ufeff")
@example("👩‍👩‍👧‍👦 e\u0301 \u202eabc\ufeff\U0010ffff")
@example("the the The THE  the\nthe")
def test_any_text_is_encoded_alike(text):
    if not any(character in unlike() for character in text):
        assert decode(same(text), tokens()) == text


# Characters that Unicode has had for longest and code points that it has not given out are the same
# to all. Between the two, each library's own table of letters and numbers counts.


@functools.cache
def unlike():
    """Letters, numbers and white space to one of `regex` and `tokenizers` alone."""
    everything = "".join(chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000)
    found = set()
    for kind in (r"\p{L}", r"\p{N}", r"\s"):
        removing = tokenizers.normalizers.Replace(tokenizers.Regex(f"{kind}+"), "")
        theirs = set(everything) - set(removing.normalize_str(everything))
        found |= theirs ^ set(regex.findall(kind, everything))
    return found


def test_every_plane_of_unicode_is_encoded_alike():
    codes = [*range(0, 0x40000, 101), *range(0x40000, 0x110000, 10_007)]
    characters = [chr(i) for i in codes if not 0xD800 <= i < 0xE000]
    known = [character for character in characters if character not in unlike()]
    for i in range(0, len(known), 500):
        same("".join(f"{c} {c}1{c}" for c in known[i : i + 500]))


@pytest.mark.parametrize("text", ["ab\udfffc", "\ud83d\ude42"])
def test_half_of_a_surrogate_pair_is_refused(text):
    at = regex.search(r"[\ud800-\udfff]", text).start()
    message = (
        "text must be text that UTF-8 can write, got half of a surrogate pair, "
        f"{text[at]!r}, at position {at}"
    )
    for encoder in (lambda: encode(text, {}, {}), lambda: ours()[0].encode(text)):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            encoder()
    # tiktoken joins the halves where they fit, and replaces the others.
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert ours()[1].encode_ordinary(text) == same(joined)


# Special tokens


def test_special_tokens_are_text_unless_allowed():
    vocab, _ = published_vocabulary()
    fast, theirs = ours()
    for text in (
        END_OF_TEXT,
        f"a{END_OF_TEXT}{END_OF_TEXT} b",
        f"{END_OF_TEXT[:-1]} {END_OF_TEXT}",
    ):
        as_text = same(text)
        assert 50256 not in as_text
        allowed = encode(text, vocab, ranks(), special=[END_OF_TEXT])
        assert allowed == theirs.encode(text, allowed_special="all")
        assert allowed == fast.encode(text, special=True).tolist()
        assert allowed.count(50256) == text.count(END_OF_TEXT)
        assert decode(allowed, tokens()) == decode(as_text, tokens()) == text


# Decoding


@given(st.lists(st.integers(0, 50256), max_size=12))
@example([0, 94, 187, 255, 50256])
def test_any_numbers_are_decoded_alike(numbers):
    text = decode(numbers, tokens())
    assert text == ours()[0].decode(_tensor(numbers))
    assert text == ours()[1].decode(numbers)


def _tensor(numbers):
    return torch.tensor(numbers, dtype=torch.int64)


# Merges that no training made


alphabet_merges = st.lists(
    st.tuples(st.sampled_from(["a", "b", "ab", "ba", "aa", "aab"]), st.sampled_from("ab")),
    unique=True,
    max_size=8,
)


@given(alphabet_merges, st.text("ab", max_size=20))
@example([("ab", "a"), ("a", "b")], "abab")
def test_any_list_of_merges_is_applied_as_tokenizers_does(merges, text):
    tokens = dict.fromkeys(["a", "b"])
    tokens |= dict.fromkeys(token for a, b in merges for token in (a, b, a + b))
    vocab = {token: i for i, token in enumerate(tokens)}
    library = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges))
    expected = library.encode(text).tokens
    assert merged(text, {pair: i for i, pair in enumerate(merges)}) == expected


# Training


@given(st.lists(st.text("ab .", max_size=60), max_size=4))
@example(["a" * 40, "a" * 17 + "b"])
@example(["abab abba ab", "ba ab"])
def test_training_finds_the_merges_of_tokenizers(texts):
    vocab, merges = train(texts, 10_000)
    library = train_tokenizer(texts, len(vocab) + 1)
    assert library._merges == merges
    assert library._vocab == vocab | {END_OF_TEXT: len(vocab)}


def long_pieces():
    """Texts with pieces beyond the length at which training cuts them, within characters too."""
    chance = random.Random(0)
    letters = "".join(chance.choices("abcde", k=3000))
    return [letters, "a" * 5000, "é" * 1023 + "語" * 700, "\n" * 2500, "\0" * 1025 + " low lower"]


def test_training_cuts_long_pieces_as_tokenizers_is_told_to():
    for texts in (*([text] for text in long_pieces()), long_pieces()):
        vocab, merges = train(texts, 330)
        library = train_tokenizer(texts, len(vocab) + 1)
        assert library._merges == merges
        assert all(library.decode(library.encode(text)) == text for text in texts)
        assert len(vocab) > 256
