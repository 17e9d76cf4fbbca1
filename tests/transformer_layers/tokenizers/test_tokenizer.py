"""GPT-2's tokenizer against that of `transformers`, by hand, and by its laws."""

import errno
import functools
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import huggingface_hub
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from tests.transformer_layers.checkpoints.savers import (
    killed_at_each_step,
    needs_fork,
)
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

FILES = ["merges.txt", "tokenizer.json", "tokenizer_config.json", "vocab.json"]


@functools.cache
def trained(vocab_size=300):
    return train_tokenizer(TEXTS, vocab_size)


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


def spelled(tokenizer, text):
    names = {number: token for token, number in tokenizer._vocab.items()}
    return [names[number] for number in tokenizer.encode(text).tolist()]


@pytest.fixture(scope="module")
def of_transformers(tmp_path_factory):
    from transformers import GPT2TokenizerFast

    folder = tmp_path_factory.mktemp("tokenizer")
    trained().save(folder)
    return GPT2TokenizerFast.from_pretrained(folder)


# By hand


def test_merges_are_done_in_the_order_of_the_list():
    assert spelled(with_merges(("a", "b"), ("b", "c")), "abc") == ["ab", "c"]
    assert spelled(with_merges(("b", "c"), ("a", "b")), "abc") == ["a", "bc"]
    # That "abc" is a token, too, changes nothing: no merge makes it of "a" and "bc".
    assert spelled(with_merges(("b", "c"), ("a", "b"), ("ab", "c")), "abc") == ["a", "bc"]


def test_a_merge_is_done_everywhere_before_the_next():
    tokenizer = with_merges(("a", "a"), ("aa", "b"), ("aa", "aa"))
    assert spelled(tokenizer, "aaaab") == ["aa", "aab"]
    assert spelled(tokenizer, "aaaaa") == ["aaaa", "a"]


def test_a_text_is_cut_before_each_space_and_between_letters_digits_and_others():
    merges = [("Ġ", "a"), ("a", "b"), ("1", "2"), ("b", "1"), ("2", "!"), ("!", "!"), ("b", "Ġ")]
    pieces = spelled(with_merges(*merges), "ab ab12!!ab  ab")
    assert pieces == ["ab", "Ġa", "b", "12", "!!", "ab", "Ġ", "Ġa", "b"]


def test_an_apostrophe_stays_with_its_letters():
    assert spelled(with_merges(("t", "'"), ("'", "s")), "it's") == ["i", "t", "'s"]


def test_training_merges_the_most_frequent_pair():
    # hu 4 times and ug 3; then hu and g 3 times. A comma is a piece of its own.
    assert train_tokenizer(["hug,hug,hug,hu"], 257 + 2)._merges == [("h", "u"), ("hu", "g")]


def test_numbers_are_those_of_gpt2():
    # Bytes in the order of their characters, merges in theirs, the end of text last: as published.
    vocab = trained()._vocab
    assert list(vocab.values()) == list(range(300))
    assert list(vocab)[:256] == sorted(byte_names().values())
    assert list(vocab)[256:-1] == [first + second for first, second in trained()._merges]
    assert vocab["<|endoftext|>"] == trained().end_of_text == 299
    assert trained().vocab_size == 300


# Bytes


def test_every_byte_is_a_token():
    tokenizer, names = with_merges(), byte_names()
    # Each byte that UTF-8 uses, in a text; the others are tokens that no text needs.
    text = "".join(
        map(chr, [*range(0x800), *range(0x800, 0xD800, 61), *range(0xE000, 0x110000, 997)])
    )
    data = text.encode()
    assert len(set(data)) == 256 - 13
    assert spelled(tokenizer, text) == [names[byte] for byte in data]
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_a_character_cut_in_two_is_replaced():
    ids = with_merges().encode("é!")
    assert with_merges().decode(ids[1:]) == "\ufffd!"


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


@given(st.text() | pieces_of_text)
@example("<|endoftext|> <|endoftext|>the")
def test_equals_the_tokenizer_of_transformers(of_transformers, text):
    ids = trained().encode(text, special=True)
    assert ids.tolist() == of_transformers.encode(text)
    assert trained().decode(ids) == of_transformers.decode(ids, clean_up_tokenization_spaces=False)


@given(st.lists(st.integers(0, 299), max_size=12))
def test_decodes_any_tokens_as_transformers(of_transformers, ids):
    text = trained().decode(torch.tensor(ids, dtype=torch.int64))
    assert text == of_transformers.decode(ids, clean_up_tokenization_spaces=False)


@given(st.lists(st.integers(0, 299), max_size=12))
@example([188, 162, 188])  # ends within a character
def test_a_stream_is_the_text_token_by_token(ids):
    ids = torch.tensor(ids, dtype=torch.int64)
    for each in (ids, ids.int()):
        assert "".join(trained().decode_stream(each[:, None])) == trained().decode(ids)


def test_a_character_appears_when_it_is_whole():
    tokenizer = Tokenizer(with_merges()._vocab | {"<a b>": 257}, [])
    ids = torch.cat([tokenizer.encode("a🙂b"), torch.tensor([257])])
    stream = tokenizer.decode_stream(ids.split(1))
    assert list(stream) == ["a", "", "", "", "🙂", "b", "<a b>", ""]
    assert list(tokenizer.decode_stream(ids[:3].split(1))) == ["a", "", "", "\ufffd"]
    assert list(tokenizer.decode_stream([])) == [""]


def test_a_stream_waits_for_nothing():
    endless = itertools.repeat(trained().encode("a"))
    assert next(trained().decode_stream(endless)) == "a"


def test_the_end_of_text_is_one_token_where_it_is_allowed():
    tokenizer = trained()
    assert tokenizer.encode("<|endoftext|>", special=True).tolist() == [tokenizer.end_of_text]
    assert len(tokenizer.encode("<|endoftext|>")) > 4
    assert tokenizer.decode(torch.tensor([tokenizer.end_of_text])) == "<|endoftext|>"
    parts = [tokenizer.encode(text).tolist() for text in ("a b", "", " c")]
    joined = [*parts[0], 299, *parts[1], 299, *parts[2]]
    text = "a b<|endoftext|><|endoftext|> c"
    assert tokenizer.encode(text, special=True).tolist() == joined


# Training


def test_each_merge_is_of_the_most_frequent_pair():
    # Training by the definition: count the neighbors inside of words, merge, count again.
    words = [
        spelled(with_merges(), word) for word in ["low", " low", " lower", " lowest", " newest"]
    ]
    merges = train_tokenizer(["low low lower lowest newest"], 257 + 8)._merges
    for pair in merges:
        counts = {}
        for word in words:
            for neighbors in itertools.pairwise(word):
                counts[neighbors] = counts.get(neighbors, 0) + 1
        assert counts[pair] == max(counts.values())
        words = [merged(word, pair) for word in words]


def merged(word, pair):
    result = []
    for token in word:
        if result and (result[-1], token) == pair:
            result[-1] += token
        else:
            result.append(token)
    return result


WITHOUT_BREAKS = """
import random
from transformer_layers import train_tokenizer

letters = "".join(random.Random(0).choices("abcdefghijklmnopqrstuvwxyz", k=300_000))
for text in (letters, "a" * 1_000_000, "\\n" * 1_000_000, "\\0" * 200_000, "low" * 300_000):
    tokenizer = train_tokenizer([text], 262)
    assert tokenizer.decode(tokenizer.encode(text)) == text
print("done")
"""


def test_texts_without_breaks_come_to_an_end():
    # In a process of its own with a time limit, as a guard: uncut, it takes half an hour.
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_BREAKS], capture_output=True, text=True, timeout=300
    )
    assert found.stdout == "done\n", found.stderr


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


@pytest.fixture(scope="module", params=[False, True])
def opened_by_transformers(request, tmp_path_factory):
    """What `AutoTokenizer` opens, where the tokenizer stands alone, and beside a model."""
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("opened")
    if request.param:
        GPT2(GPT2Config(300, 8, 12, 1, 2)).save_pretrained(folder)
    trained().save(folder)
    return AutoTokenizer.from_pretrained(folder)


@given(text=st.text(max_size=40) | st.text(st.sampled_from("ab '\n<|>éß語"), max_size=40))
@example("")
@example("<|endoftext|>")
@example("a <|endoftext|> b<|endoftext|>")
def test_transformers_opens_what_it_saves(opened_by_transformers, text):
    ids = trained().encode(text, special=True)
    assert opened_by_transformers(text).input_ids == ids.tolist()
    assert opened_by_transformers.decode(ids) == trained().decode(ids)


def test_transformers_knows_the_end_of_what_it_saves(opened_by_transformers):
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


def test_loads_what_transformers_saves(tmp_path, of_transformers):
    files = of_transformers.backend_tokenizer.model.save(str(tmp_path))
    assert sorted(path.rsplit("/")[-1] for path in files) == ["merges.txt", "vocab.json"]
    loaded = load_tokenizer(tmp_path)
    assert loaded._vocab == trained()._vocab
    assert loaded._merges == trained()._merges


def test_reads_escaped_json_and_the_line_ends_of_windows(tmp_path):
    trained().save(tmp_path)
    vocab, merges = tmp_path / "vocab.json", tmp_path / "merges.txt"
    vocab.write_text(json.dumps(json.loads(vocab.read_text(encoding="utf-8")), indent=2))
    merges.write_bytes(merges.read_bytes().replace(b"\n", b"\r\n"))
    assert "\\u0120" in vocab.read_text()
    assert load_tokenizer(tmp_path)._merges == trained()._merges


def test_a_merge_may_begin_with_a_number_sign(tmp_path):
    with_merges(("#", "version"[0]), ("#", "#")).save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()  # the pair alone
    assert load_tokenizer(tmp_path)._merges == [("#", "v"), ("#", "#")]
    merges = tmp_path / "merges.txt"
    merges.write_text("# #\n# v\n", encoding="utf-8")  # no line for the version
    assert load_tokenizer(tmp_path)._merges == [("#", "#"), ("#", "v")]


# Two files that are one tokenizer


def other():
    """The same tokens under the same numbers, made in another order."""
    return Tokenizer(trained()._vocab, trained()._merges[::-1])


def encoding_of(folder):
    """What a loaded tokenizer makes of the texts, or None if it is refused."""
    try:
        tokenizer = load_tokenizer(folder)
    except ValueError:
        return None
    return [tokenizer.encode(text).tolist() for text in TEXTS]


@pytest.fixture
def unhurried(monkeypatch):
    """Reading again waits for nobody."""
    monkeypatch.setattr("transformer_layers.tokenizers.tokenizer.PAUSES", (0.0,))


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("sealed", [True, False])
def test_a_truncated_list_of_merges_is_refused_at_every_length(tmp_path, sealed):
    small = trained(290)
    small.save(tmp_path)
    path = tmp_path / "merges.txt"
    expected = encoding_of(tmp_path)
    whole = path.read_bytes()
    if not sealed:  # as others write it
        whole = b"#version: 0.2\n" + whole.split(b"\n", 1)[1]
    loaded = []
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        found = encoding_of(tmp_path)
        assert found in (None, expected), length
        if found:
            loaded.append(length)
    assert loaded == [len(whole) - 1]  # the last line's end is all that is missing


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("name", ["vocab.json", "merges.txt"])
def test_files_of_two_tokenizers_are_refused(tmp_path, name):
    trained().save(tmp_path / "a")
    (tmp_path / "a" / "tokenizer.json").unlink()
    tokenizer = other() if name == "merges.txt" else renumbered()
    tokenizer.save(tmp_path / "b")
    (tmp_path / "b" / name).replace(tmp_path / "a" / name)
    path = tmp_path / "a" / "merges.txt"
    message = (
        f"{path}: says in its first line that it was saved with another vocab.json, or with other "
        "merges; if you changed them on purpose, make that line '#version: 0.2'"
    )
    if name == "merges.txt":  # only the digest can tell them apart, and it is that of these merges
        assert load_tokenizer(tmp_path / "a")._merges == other()._merges
        lines = path.read_text("utf-8").split("\n")
        path.write_text("\n".join([lines[0], *lines[2:], ""]), "utf-8")
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


def loaded_whole(folder):
    loaded = load_tokenizer(folder)
    assert loaded._vocab in (trained()._vocab, renumbered()._vocab)
    return loaded._vocab["a"]


@needs_fork
def test_a_kill_at_any_step_leaves_a_tokenizer(tmp_path):
    trained().save(tmp_path)
    found = []
    for _ in killed_at_each_step(tmp_path, renumbered().save, tmp_path):
        found.append(loaded_whole(tmp_path))
        trained().save(tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    assert len(set(found)) == 2
    assert found[-1] == renumbered()._vocab["a"]


@pytest.mark.parametrize("failing", range(4))
def test_a_full_disk_leaves_the_tokenizer_that_was_there(tmp_path, monkeypatch, failing):
    trained().save(tmp_path)
    whole, calls = Path.write_text, itertools.count()

    def half(path, text, **options):
        if next(calls) == failing:
            whole(path, text[: len(text) // 2], **options)
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(path, text, **options)

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(
        OSError, match=r"merges\.txt and vocab\.json cannot be written: .* No space"
    ):
        renumbered().save(tmp_path)
    assert loaded_whole(tmp_path) == trained()._vocab["a"]
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES


def test_refuses_the_empty_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for use in (trained().save, load_tokenizer):
        with pytest.raises(ValueError, match="folder must be the name of one, got ''; the working"):
            use("")
    assert not list(tmp_path.iterdir())


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
        ("merges.txt", None, FileNotFoundError, "there is no .*/merges.txt; a tokenizer's folder"),
        ("vocab.json", b'{"a": 1', ValueError, "/vocab.json: cannot be read as JSON: .* column 8"),
        ("vocab.json", b"", ValueError, "/vocab.json: cannot be read as JSON"),
        ("vocab.json", b'{"\xff": 1}', ValueError, "/vocab.json: cannot be read .*byte 0xff"),
        (
            "vocab.json",
            b"[1, 2]",
            ValueError,
            r"/vocab.json: must hold a JSON object, got \[1, 2\]",
        ),
        (
            "vocab.json",
            b'{"a": 0, "b": 2}',
            ValueError,
            "/merges.txt: says in its first line that it was saved with another vocab.json, or",
        ),
        (
            "merges.txt",
            b"a \xff",
            ValueError,
            "/merges.txt: cannot be read as text in UTF-8: .*byte 0xff",
        ),
        (
            "merges.txt",
            b"#version: 0.2\nt h\nt h e\n",
            ValueError,
            "/merges.txt: must have two tokens on each line, with a space between, got 't h e' on "
            "line 3",
        ),
        ("merges.txt", b"t h\n#version: 0.2 \n", ValueError, "got '#version: 0.2 ' on line 2"),
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


@pytest.mark.usefixtures("as_users_run_it")
def test_a_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="it is no name on the Hugging Face hub"):
        load_tokenizer(tmp_path / "nowhere")
    (tmp_path / "vocab.json").touch()
    with pytest.raises(ValueError, match="is a file; pass the folder that it is in"):
        load_tokenizer(tmp_path / "vocab.json")


# A name on the hub


def test_a_name_is_fetched_from_the_hub(tmp_path, monkeypatch):
    calls = []

    def snapshot_download(*args, **kwargs):
        calls.append((args, kwargs))
        return str(tmp_path)

    trained().save(tmp_path)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    loaded = load_tokenizer("openai-community/gpt2")
    assert loaded._merges == trained()._merges
    wanted = sorted((*FILES, "chat_template.jinja", "special_tokens_map.json"))
    options = {"revision": None, "allow_patterns": wanted}
    assert calls == [(("openai-community/gpt2",), options)]


def test_a_folder_comes_before_a_name_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub, "snapshot_download", None)
    monkeypatch.chdir(tmp_path)
    trained().save("gpt2")
    assert load_tokenizer("gpt2")._merges == trained()._merges


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


def test_what_was_fetched_is_loaded_without_a_network(hubs_cache, tmp_path):
    trained().save(tmp_path / "saved")
    kept(hubs_cache, *(tmp_path / "saved").iterdir())
    assert load_tokenizer("openai-community/gpt2")._vocab == trained()._vocab


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("changed", "merges", "message"),
    [
        ({"!": None}, [], r"each of 256 bytes and <\|endoftext\|>, 1 missing: !"),
        ({"<|endoftext|>": None}, [], r"1 missing: <\|endoftext\|>"),
        ({'"': True}, [], "the 257 tokens must be numbered 0 to 256, each number once"),
        ({"!": 255}, [], "the 257 tokens must be numbered 0 to 256"),
        ({"!": "0"}, [], "the 257 tokens must be numbered 0 to 256"),
        ({"new": 258}, [], "the 258 tokens must be numbered 0 to 257"),
        ({"ab": 257}, [("a", "b"), ("ab", "c")], "merge 1 is of 'ab' and 'c', .* has no 'abc'"),
        ({"ab": 257}, [("ab", "語")], "merge 0 is of 'ab' and '語', .* has no '語'"),
        (
            {"ab": 257},
            [],
            "no merge makes the token 'ab', and 0 others, so that no text would have them; the "
            "list of merges was cut short, or is of another vocabulary",
        ),
        (
            {"abc": 257, "ab": 258},
            [("a", "b")],
            "no merge makes the token 'abc', and 0 others",
        ),
        ({"ab": 257}, [("xy", "a")], "merge 0 is of 'xy' and 'a', .* has no 'xy'"),
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
    ("text", "error", "message"),
    [
        (3, TypeError, "text must be a str, got 3 of type int"),
        (b"abc", TypeError, "text must be a str, got b'abc' of type bytes"),
        (None, TypeError, "text must be a str, got None of type NoneType"),
        (
            "ab\ud83dc",
            ValueError,
            r"text must be text that UTF-8 can write, got half of a surrogate pair, '\\ud83d', at "
            "position 2",
        ),
    ],
)
def test_errors_of_encoding(text, error, message):
    with pytest.raises(error, match=message):
        trained().encode(text)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (torch.tensor([3, 300]), ValueError, r"in \[0, 300\), got values from 3 to 300"),
        (torch.tensor([-1]), ValueError, r"in \[0, 300\), got values from -1 to -1"),
        (
            torch.tensor(3),
            ValueError,
            r"must be of shape \(seq,\), got \(\); one row .* is ids\[0\]",
        ),
        (torch.tensor([[3]]), ValueError, r"of shape \(seq,\), got \(1, 1\)"),
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
    ("ids", "error", "message"),
    [
        (torch.tensor([3, 4]), ValueError, r"must come one by one, of shape \(1,\), got \(2,\)"),
        (torch.tensor([300]), ValueError, r"in \[0, 300\), got values from 300 to 300"),
        (torch.tensor(3), ValueError, r"must be of shape \(seq,\), got \(\)"),
        (torch.tensor([3.0]), TypeError, "tensor of int64 or int32, got torch.float32"),
    ],
)
def test_errors_of_a_stream(ids, error, message):
    with pytest.raises(error, match=message):
        next(trained().decode_stream([ids]))


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("texts", "vocab_size", "error", "message"),
    [
        (TEXTS, 256, ValueError, "vocab_size must be at least 257, got 256"),
        (TEXTS, 300.0, TypeError, "vocab_size must be an int, got 300.0 of type float"),
        ("abc", 257, TypeError, "texts must be several texts, got one str; put it into a list"),
        (["a", 3], 257, TypeError, r"texts\[1\] must be a str, got 3 of type int"),
        (["\udc00"], 257, ValueError, r"texts\[0\] must be text that UTF-8 can write"),
        (
            ["abc abc"],
            262,
            ValueError,
            "the texts have pairs for a vocab_size of 260 at most, got 262; give more text or ask "
            "for fewer tokens",
        ),
        ([], 258, ValueError, "for a vocab_size of 257 at most, got 258"),
    ],
)
def test_errors_of_training(texts, vocab_size, error, message):
    with pytest.raises(error, match=message):
        train_tokenizer(texts, vocab_size)


def test_training_may_use_up_all_pairs():
    assert train_tokenizer(["abc abc"], 260).encode(" abc abc").tolist() == [258, 258]
    assert train_tokenizer([], 257).vocab_size == 257
