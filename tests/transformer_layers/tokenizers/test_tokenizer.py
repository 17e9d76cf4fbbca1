"""GPT-2's tokenizer against that of `transformers`, by hand, and by its laws."""

import functools
import json
import re

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from transformer_layers import GPT2, GPT2Config
from transformer_layers.tokenizers.load import load_tokenizer
from transformer_layers.tokenizers.tokenizer import (
    Tokenizer,
    train_tokenizer,
)

TEXTS = [
    "The model reads one token after another, and it's the next token that it predicts.",
    "Don't the tokens' bytes, 3 or 4 of them, make 1234 characters?  Two spaces\n\nand lines.",
    "Größe, naïveté, 語彙, Ελληνικά, and 🙂🙂🙂 are tokens too.",
]


@functools.cache
def trained():
    return train_tokenizer(TEXTS, 300)


@functools.cache
def byte_names():
    """What GPT-2 spells each byte as: itself where it is visible, or one of 256, 257, ..."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) for byte in visible} | {
        byte: chr(256 + i) for i, byte in enumerate(hidden)
    }


def with_merges(*merges):
    """A tokenizer of the 256 bytes, the results of the merges, and the end of text."""
    tokens = [*byte_names().values(), *(first + second for first, second in merges)]
    tokens.append("<|endoftext|>")
    return Tokenizer({token: i for i, token in enumerate(tokens)}, merges)


# By hand


def test_numbers_are_those_of_gpt2():
    # Bytes in the order of their characters, merges in theirs, the end of text last: as published.
    vocab = trained()._vocab
    assert list(vocab.values()) == list(range(300))
    assert list(vocab)[:256] == sorted(byte_names().values())
    assert list(vocab)[256:-1] == [first + second for first, second in trained()._merges]
    assert vocab["<|endoftext|>"] == trained().end_of_text == 299
    assert trained().vocab_size == 300


# Laws


@given(st.text())
@example("")
@example("\x00\x00 \r\n\t\u00a0\u2028\x85")
@example("👩‍👩‍👧‍👦 e\u0301 \u202eabc\ufeff\U0010ffff")
@example("<|endoftext|><|endoftext| ><|<|endoftext|>")
@example("  a   b\n \n  ")
def test_decoding_gives_the_text_back(text):
    for tokenizer in (trained(), with_merges()):
        ids = tokenizer.encode(text)
        assert ids.dtype == torch.int64
        assert ids.ndim == 1
        assert tokenizer.end_of_text not in ids
        assert tokenizer.decode(ids) == text == tokenizer.decode(tokenizer.encode(text, True))
        assert tokenizer.decode(ids.int()) == text


pieces_of_text = st.lists(
    st.sampled_from([*"abetok 'sd\n\t 3é語🙂", "token", " the", "<|endoftext|>", "n't", "  "])
).map("".join)


def test_a_character_appears_when_it_is_whole():
    tokenizer = Tokenizer(with_merges()._vocab | {"<a b>": 257}, [])
    ids = torch.cat([tokenizer.encode("a🙂b"), torch.tensor([257])])
    stream = tokenizer.decode_stream(ids.split(1))
    assert list(stream) == ["a", "", "", "", "🙂", "b", "<a b>", ""]
    assert list(tokenizer.decode_stream(ids[:3].split(1))) == ["a", "", "", "\ufffd"]
    assert list(tokenizer.decode_stream([])) == [""]


# Files


def test_loads_what_it_saves(tmp_path):
    trained().save(tmp_path / "a" / "b")
    loaded = load_tokenizer(tmp_path / "a" / "b")
    assert loaded._vocab == trained()._vocab
    assert loaded._merges == trained()._merges
    loaded.save(str(tmp_path / "c"))
    for name in ("vocab.json", "merges.txt"):
        first, second = tmp_path / "a" / "b" / name, tmp_path / "c" / name
        assert first.read_bytes() == second.read_bytes()


@pytest.fixture(scope="module")
def opened_by_transformers(tmp_path_factory):
    """What `AutoTokenizer` opens, beside a model."""
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("opened")
    GPT2(GPT2Config(300, 8, 12, 1, 2)).save_pretrained(folder)
    trained().save(folder)
    return AutoTokenizer.from_pretrained(folder)


@given(text=st.text(max_size=40) | pieces_of_text)
@example("")
@example("<|endoftext|>")
@example("a <|endoftext|> b<|endoftext|>")
def test_transformers_opens_what_it_saves(opened_by_transformers, text):
    ids = trained().encode(text, special=True)
    assert opened_by_transformers(text).input_ids == ids.tolist()
    assert opened_by_transformers.decode(ids) == trained().decode(ids)
    assert opened_by_transformers.eos_token_id == trained().end_of_text
    assert len(opened_by_transformers) == trained().vocab_size


def test_the_files_are_written_as_the_published_ones(tmp_path):
    # The line of the version is not to be left out: GPT-2's own code drops the first line.
    with_merges(("Ġ", "a"), ("Ġa", "b")).save(tmp_path)
    merges = (tmp_path / "merges.txt").read_bytes().decode()
    first, rest = merges.split("\n", 1)
    assert re.fullmatch("#version: 0.2 - SHA-256 of vocabulary and merges: [0-9a-f]{64}", first)
    assert rest == "Ġ a\nĠa b\n"
    vocab = (tmp_path / "vocab.json").read_bytes().decode()
    assert '"Ġa": 256, "Ġab": 257, "<|endoftext|>": 258}' in vocab


def test_reads_escaped_json_and_the_line_ends_of_windows(tmp_path):
    trained().save(tmp_path)
    vocab, merges = tmp_path / "vocab.json", tmp_path / "merges.txt"
    vocab.write_text(json.dumps(json.loads(vocab.read_text(encoding="utf-8")), indent=2))
    merges.write_bytes(merges.read_bytes().replace(b"\n", b"\r\n"))
    assert "\\u0120" in vocab.read_text()
    assert load_tokenizer(tmp_path)._merges == trained()._merges


# Two files that are one tokenizer


def test_files_of_two_tokenizers_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer_layers.tokenizers.tokenizer.PAUSES", (0.0,))
    trained().save(tmp_path / "a")
    (tmp_path / "a" / "tokenizer.json").unlink()
    renumbered().save(tmp_path / "b")
    (tmp_path / "b" / "vocab.json").replace(tmp_path / "a" / "vocab.json")
    path = tmp_path / "a" / "merges.txt"
    message = (
        f"{path}: says in its first line that it was saved with another vocab.json, or with other "
        "merges; if you changed them on purpose, make that line '#version: 0.2'"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        load_tokenizer(tmp_path / "a")


def renumbered():
    """The same tokens, but two have each other's numbers."""
    vocab = dict(trained()._vocab)
    vocab["a"], vocab["b"] = vocab["b"], vocab["a"]
    return Tokenizer(vocab, trained()._merges)


def test_reads_again_when_one_was_replaced_meanwhile(tmp_path, monkeypatch):
    trained().save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    renumbered().save(tmp_path / "new")
    (tmp_path / "new" / "merges.txt").replace(tmp_path / "merges.txt")

    def then(_):
        (tmp_path / "new" / "vocab.json").replace(tmp_path / "vocab.json")

    monkeypatch.setattr("transformer_layers.tokenizers.tokenizer.time.sleep", then)
    assert load_tokenizer(tmp_path)._vocab == renumbered()._vocab


# Errors


def damaged(folder, name, text):
    trained().save(folder)
    (folder / "tokenizer.json").unlink()  # the pair alone
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(text)
    return folder


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("name", "text", "error", "message"),
    [
        (
            "vocab.json",
            None,
            FileNotFoundError,
            r"there is no .*/vocab.json; a tokenizer's folder has vocab.json and merges.txt",
        ),
        ("vocab.json", b'{"a": 1', ValueError, "/vocab.json: cannot be read as JSON: .* column 8"),
        (
            "merges.txt",
            b"#version: 0.2\nt h\nt h e\n",
            ValueError,
            "/merges.txt: must have two tokens on each line, with a space between, got 't h e' on "
            "line 3",
        ),
        (
            "merges.txt",
            b"q z\n",
            ValueError,
            "made of vocab.json and merges.txt in .*: merge 0 is of 'q' and 'z', but the "
            "vocabulary has no 'qz'",
        ),
    ],
)
def test_errors_of_files(tmp_path, name, text, error, message):
    with pytest.raises(error, match=message):
        load_tokenizer(damaged(tmp_path, name, text))


# A name on the hub


@pytest.fixture
def hubs_cache(tmp_path, monkeypatch):
    """The hub's cache, without a network."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    return tmp_path


def kept(cache, *paths):
    """Puts files into the hub's cache, as if they had been fetched."""
    repository = cache / "models--openai-community--gpt2"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0" * 40)
    snapshot = repository / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    for path in paths:
        (snapshot / path.name).write_bytes(path.read_bytes())
    return snapshot


def test_without_a_network_the_error_says_what_is_missing(hubs_cache):
    start = "there is no folder 'openai-community/gpt2', and the Hugging Face hub could not be"
    with pytest.raises(FileNotFoundError, match=f"^{start}"):
        load_tokenizer("openai-community/gpt2")
    snapshot = kept(hubs_cache)  # the model was fetched, its tokenizer was not
    message = (
        f"there is no {snapshot}/vocab.json; a tokenizer's folder has vocab.json and merges.txt. "
        "This folder keeps what was fetched of 'openai-community/gpt2': with a network, fetch it"
    )
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(message)}$"):
        load_tokenizer("openai-community/gpt2")


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("changed", "merges", "message"),
    [
        ({"!": None}, [], r"each of 256 bytes and <\|endoftext\|>, 1 missing: !"),
        ({"!": 255}, [], "the 257 tokens must be numbered 0 to 256"),
        ({"ab": 257}, [("a", "b"), ("ab", "c")], "merge 1 is of 'ab' and 'c', .* has no 'abc'"),
        (
            {"ab": 257},
            [],
            "no merge makes the token 'ab', and 0 others, so that no text would have them; the "
            "list of merges was cut short, or is of another vocabulary",
        ),
    ],
)
def test_errors_of_construction(changed, merges, message):
    vocab = with_merges()._vocab | changed
    kept = [token for token, number in vocab.items() if number is not None]
    if None in vocab.values():
        vocab = {token: i for i, token in enumerate(kept)}
    with pytest.raises(ValueError, match=message):
        Tokenizer(vocab, merges)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (torch.tensor([3, 300]), ValueError, r"in \[0, 300\), got values from 3 to 300"),
        (
            torch.tensor(3),
            ValueError,
            r"must be of shape \(seq,\), got \(\); one row .* is ids\[0\]",
        ),
        (
            torch.tensor([3.0]),
            TypeError,
            "ids must be a tensor of int64 or int32, got torch.float32",
        ),
    ],
)
def test_errors_of_decoding(ids, error, message):
    with pytest.raises(error, match=message):
        trained().decode(ids)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("texts", "vocab_size", "error", "message"),
    [
        (TEXTS, 256, ValueError, "vocab_size must be at least 257, got 256"),
        ("abc", 257, TypeError, "texts must be several texts, got one str; put it into a list"),
        (["\udc00"], 257, ValueError, r"texts\[0\] must be text that UTF-8 can write"),
        (
            ["abc abc"],
            262,
            ValueError,
            "the texts have pairs for a vocab_size of 260 at most, got 262; give more text or ask "
            "for fewer tokens",
        ),
    ],
)
def test_errors_of_training(texts, vocab_size, error, message):
    with pytest.raises(error, match=message):
        train_tokenizer(texts, vocab_size)
