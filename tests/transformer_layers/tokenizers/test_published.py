"""Published tokenizers against `transformers`, on files that the library makes here."""

import json
import pickle
import re

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import AutoTokenizer

import transformer_layers
from transformer_layers import PublishedTokenizer, load_tokenizer, train_tokenizer

TEXTS = [
    "The model reads one token after another, and it's the next token that it predicts.",
    "Don't the tokens' bytes, 3 or 4 of them, make 1234 characters?  Two spaces\n\nand lines.",
    "Größe, naïveté, 語彙, Ελληνικά, and 🙂🙂🙂 are tokens too.",
]
CONFIG = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
SPLIT = (
    r"'s|'t|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA3 = """{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{%- if not date_string is defined %}{% set date_string = strftime_now("%d %b %Y") %}{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" + date_string + "\\n" + system_message }}
{%- if tools is not none %}{{- tools | tojson(indent=4) }}{%- endif %}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {% generation %}
    {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n'+ message['content'] | trim
        + '<|eot_id|>' }}
    {% endgeneration %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
MISTRAL = (
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != "
    "(loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate user/assistant') }}"
    "{% endif %}{% if message['role'] == 'user' %}"
    "{{ ' [INST] ' + message['content'] + ' [/INST]' }}"
    "{% else %}{{ ' ' + message['content'] + eos_token }}{% endif %}{% endfor %}"
)
CHAT = [
    {"role": "user", "content": " <b>Größe?</b> "},
    {"role": "assistant", "content": "語彙 & 'so' <|im_end|>", "name": None},
    {"role": "user", "content": "🙂"},
]


def trained(library, trainer):
    library.train_from_iterator(TEXTS * 3, trainer)
    return library


def llama3():
    library = Tokenizer(models.BPE(ignore_merges=True))
    pieces = pre_tokenizers.Split(Regex(SPLIT), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    library.pre_tokenizer = pre_tokenizers.Sequence([pieces, level])
    library.decoder = decoders.ByteLevel()
    special = ["<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    kinds = {"initial_alphabet": sorted(alphabet), "show_progress": False}
    trained(library, trainers.BpeTrainer(vocab_size=330, special_tokens=special, **kinds))
    begin = (special[0], library.token_to_id(special[0]))
    template = processors.TemplateProcessing(single=[special[0], "$A"], special_tokens=[begin])
    library.post_processor = processors.Sequence([processors.ByteLevel(), template])
    return library, {"bos_token": special[0], "eos_token": special[1], "chat_template": LLAMA3}


def qwen():
    library, _ = llama3()
    entries = json.loads(library.to_str())
    entries["post_processor"] = None
    entries["normalizer"] = {"type": "NFC"}
    library = Tokenizer.from_str(json.dumps(entries))
    library.add_special_tokens(["<|im_start|>", "<|im_end|>", "<|endoftext|>"])
    library.add_tokens([AddedToken("<think>", normalized=False)])
    # With flags, as others have them.
    library.add_tokens([AddedToken("<mask>", lstrip=True, normalized=True)])
    library.add_tokens([AddedToken("<word>", rstrip=True, single_word=True)])
    named = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "add_bos_token": False}
    return library, named | {"chat_template": CHATML}


def mistral():
    library = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    library.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    library.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)])
    special = ["<unk>", "<s>", "</s>"]
    tokens = [*special, *(f"<0x{i:02X}>" for i in range(256))]
    words = trainers.BpeTrainer(
        vocab_size=420, special_tokens=tokens, show_progress=False, limit_alphabet=40
    )
    trained(library, words)
    entries = json.loads(library.to_str())
    entries["added_tokens"] = [
        each for each in entries["added_tokens"] if each["content"] in special
    ]
    library = Tokenizer.from_str(json.dumps(entries))
    around = {"special_tokens": [("<s>", 1), ("</s>", 2)]}
    library.post_processor = processors.TemplateProcessing(single="<s> $A", **around)
    named = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    added = {"add_bos_token": True, "add_eos_token": False, "chat_template": MISTRAL}
    return library, named | added


def unigram():
    library = Tokenizer(models.Unigram())
    library.normalizer = normalizers.Sequence([normalizers.NFKC()])
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.decoder = decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    words = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    trained(library, words)
    end = ("</s>", library.token_to_id("</s>"))
    library.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[end])
    named = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    return library, named | {"additional_special_tokens": ["<unk>"]}


FAMILIES = {each.__name__: each for each in (llama3, qwen, mistral, unigram)}


def written(folder, library, entries):
    folder.mkdir(parents=True, exist_ok=True)
    library.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(CONFIG | entries))
    return folder


@pytest.fixture(scope="module", params=FAMILIES)
def both(request, tmp_path_factory):
    folder = written(tmp_path_factory.mktemp(request.param), *FAMILIES[request.param]())
    return load_tokenizer(folder), AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module", params=["llama3", "qwen", "mistral"])
def talking(request, tmp_path_factory):
    folder = written(tmp_path_factory.mktemp(request.param), *FAMILIES[request.param]())
    return load_tokenizer(folder), AutoTokenizer.from_pretrained(folder)


PIECES = [
    "<s>",
    "</s>",
    "<|eot_id|>",
    "<|im_end|>",
    "<think>",
    "<mask>",
    "<word>",
    " ",
    "語",
    "é",
    "a",
]
texts = st.text(max_size=30) | st.lists(st.sampled_from([*PIECES, *TEXTS]), max_size=6).map("".join)


@settings(max_examples=40)
@given(text=texts)
@example("")
@example(" ")
@example("  a  <mask>  b <word> c<word>")
def test_encodes_and_decodes_as_transformers(both, text):
    ours, theirs = both
    ids = ours.encode(text, special=True)
    assert ids.tolist() == theirs(text).input_ids
    assert ours.decode(ids) == theirs.decode(ids)
    skipped = theirs.decode(ids, skip_special_tokens=True)
    assert ours.decode(ids, skip_special_tokens=True) == skipped
    bare = ours.encode(text, special=True, add_special_tokens=False)
    assert bare.tolist() == theirs(text, add_special_tokens=False).input_ids


@settings(max_examples=40)
@given(text=st.text(max_size=30))
@example("a </s> b<|eot_id|><|im_end|><s>")
def test_names_in_a_text_are_text(talking, text):
    ours, theirs = talking
    expected = theirs(text, split_special_tokens=True).input_ids
    assert ours.encode(text).tolist() == expected
    around = ours.encode("", special=True).tolist()
    inner = ours.encode(text, add_special_tokens=False).tolist()
    ends = {ours.bos_token, ours.eos_token, *around} - {None}
    assert not ends & {*inner}


def test_a_name_that_cannot_be_text_is_refused(tmp_path):
    # A unigram model knows the names among its pieces.
    ours = load_tokenizer(written(tmp_path, *unigram()))
    with pytest.raises(ValueError, match="'</s>' in it, which this tokenizer cannot write as te"):
        ours.encode("a </s>")
    assert ours.encode("a </s>", special=True).tolist().count(ours.eos_token) == 2


@settings(max_examples=40)
@given(numbers=st.lists(st.integers(0, 10**6), max_size=30), text=texts)
def test_a_stream_is_the_text(both, numbers, text):
    ours, _ = both
    numbers = torch.tensor([number % ours.vocab_size for number in numbers], dtype=torch.int64)
    for ids in (numbers, ours.encode(text, special=True)):
        for skip in (False, True):
            pieces = [
                *ours.decode_stream(ids.split(1) if len(ids) else [], skip_special_tokens=skip)
            ]
            assert "".join(pieces) == ours.decode(ids, skip_special_tokens=skip)
            assert len(pieces) == len(ids) + 1


def test_a_copy_encodes_alike(both):
    ours, _ = both
    ours.encode("a", special=True)
    again = pickle.loads(pickle.dumps(ours))
    assert again.encode(TEXTS[2]).equal(ours.encode(TEXTS[2]))
    assert again.encode("a </s>", special=True).equal(ours.encode("a </s>", special=True))


def test_saves_what_both_open(both, tmp_path):
    ours, theirs = both
    ours.save(tmp_path / "a" / "b")
    again, opened = (
        load_tokenizer(tmp_path / "a" / "b"),
        AutoTokenizer.from_pretrained(tmp_path / "a" / "b"),
    )
    for text in TEXTS:
        assert again.encode(text).equal(ours.encode(text))
        assert opened(text).input_ids == theirs(text).input_ids
    assert again.chat_template == ours.chat_template == opened.chat_template


# Chats


@pytest.mark.parametrize("prompted", [True, False])
def test_a_chat_has_the_tokens_of_transformers(talking, prompted):
    ours, theirs = talking
    expected = theirs.apply_chat_template(
        CHAT, tokenize=True, add_generation_prompt=prompted, return_dict=False
    )
    assert ours.chat(CHAT, add_generation_prompt=prompted).tolist() == expected


def test_a_template_gets_tools_and_what_else_is_passed(tmp_path):
    ours = load_tokenizer(written(tmp_path, *llama3()))
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    tools = [{"type": "function", "function": {"name": "größe", "description": "<b> & 'c'"}}]
    given_too = {"tools": tools, "date_string": "1 May"}
    text = theirs.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True, **given_too)
    assert "<b> & 'c'" in text
    assert ours.chat_text(CHAT, **given_too) == text


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages recursive %}{{ loop.index }}{{ loop.last }}{{ m.content }}"
        "{% endfor %}",
        "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.role }}{% break %}"
        "{% endfor %}",
        "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}"
        "{{ ns.n }}{{ messages | tojson }}{{ messages | map(attribute='role') | join(',') }}",
        "{% macro f(x) %}[{{ x }}]{% endmacro %}  {{ f(messages[0].content) }}  \n  {% if 1 %}\n"
        "  a\n  {% endif %}\n{{ unknown }}{{ eos_token }}{{ 'ab' * 2 }}{{ 2 ** 3 }}",
    ],
)
def test_templates_are_rendered_as_by_transformers(tmp_path, template):
    library, entries = qwen()
    ours = load_tokenizer(written(tmp_path, library, entries | {"chat_template": template}))
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    chat = [*CHAT[:1], CHAT[1] | {"reasoning": "hm"}, CHAT[2]]
    assert ours.chat_text(chat) == theirs.apply_chat_template(
        chat, tokenize=False, add_generation_prompt=True
    )


def test_the_templates_own_file_comes_first(tmp_path):
    library, entries = qwen()
    several = [{"name": "default", "template": "one"}, {"name": "tool_use", "template": "two"}]
    written(tmp_path, library, entries | {"chat_template": several})
    assert load_tokenizer(tmp_path).chat_text(CHAT) == "one"
    (tmp_path / "chat_template.jinja").write_text("three", encoding="utf-8")
    assert load_tokenizer(tmp_path).chat_text(CHAT) == "three"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (
            "{{ raise_exception('Roles must alternate') }}",
            "raises on these .*: Roles must alternate",
        ),
        ("{{ ''.__class__.__mro__ }}", "raises on these messages: .*unsafe"),
        (
            "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
            "does not end within 3,000 calls and rounds of loops",
        ),
        (
            "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
            "raises on these messages: .*recursion",
        ),
        ("{{ 'ab' * 99999999 }}", "99,999,999 copies of 'ab' are too many"),
        ("{% for %}", "the chat template cannot be parsed: "),
    ],
)
def test_templates_that_fail(tmp_path, monkeypatch, template, message):
    monkeypatch.setattr("transformer_layers.tokenizers.chat.MOST_STEPS", 3000)
    library, entries = qwen()
    ours = load_tokenizer(written(tmp_path, library, entries | {"chat_template": template}))
    with pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path))}: .*{message}"):
        ours.chat(CHAT)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("messages", "error", "message"),
    [
        ([], ValueError, "one message at least, got none"),
        ("hello", TypeError, "must be a list of dicts .*, got 'hello' of type str"),
        ([{"role": "user", "content": object()}], TypeError, "what JSON can hold, got <object"),
    ],
)
def test_errors_of_messages(tmp_path, messages, error, message):
    ours = load_tokenizer(written(tmp_path, *qwen()))
    with pytest.raises(error, match=message):
        ours.chat(messages)


def test_without_a_template_or_jinja(tmp_path, monkeypatch):
    library, entries = qwen()
    bare = {name: value for name, value in entries.items() if name != "chat_template"}
    ours = load_tokenizer(written(tmp_path / "bare", library, bare))
    with pytest.raises(
        ValueError, match=r"there is no chat template, neither in chat_template\.jin"
    ):
        ours.chat(CHAT)
    ours = load_tokenizer(written(tmp_path, library, entries))
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    assert ours.encode("a").tolist()
    with pytest.raises(ImportError, match="chat templates need the package jinja2; install it"):
        ours.chat(CHAT)


# Which reader a folder gets


def test_gpt2s_own_files_are_read_as_before(tmp_path):
    ours = train_tokenizer(TEXTS, 300)
    ours.save(tmp_path)
    assert type(load_tokenizer(tmp_path)) is transformer_layers.Tokenizer
    (tmp_path / "vocab.json").unlink()
    published = load_tokenizer(tmp_path)
    assert type(published) is PublishedTokenizer
    for text in (*TEXTS, "", "a<|endoftext|>b"):
        for special in (False, True):
            expected = ours.encode(text, special=special)
            assert published.encode(text, special=special).equal(expected)
    assert published.eos_token == ours.eos_token == ours.end_of_text


def test_a_description_of_another_vocabulary_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer_layers.tokenizers.load.PAUSES", (0.0,))
    train_tokenizer(TEXTS, 300).save(tmp_path / "other")
    train_tokenizer(TEXTS, 290).save(tmp_path)
    (tmp_path / "other" / "tokenizer.json").replace(tmp_path / "tokenizer.json")
    with pytest.raises(
        ValueError, match=r"/tokenizer\.json: holds another vocabulary, or other mer"
    ):
        load_tokenizer(tmp_path)


def test_a_named_token_keeps_the_flags_that_it_has(tmp_path):
    named = {"__type": "AddedToken", "content": "<|end|>", "lstrip": True, "normalized": True}
    library, _ = llama3()
    library.add_special_tokens([AddedToken("<|end|>", rstrip=True)])
    written(tmp_path, library, {"eos_token": named, "extra_special_tokens": ["<|end|>"]})
    theirs, ours = AutoTokenizer.from_pretrained(tmp_path), load_tokenizer(tmp_path)
    for text in ("a <|end|>\n b", "a<|end|>b"):
        assert ours.encode(text, special=True).tolist() == theirs(text).input_ids


def test_tools_have_a_template_of_their_own(tmp_path):
    library, entries = qwen()
    tools = "{{ tools | length }} tools{% for m in messages %}{{ m.content }}{% endfor %}"
    place = tmp_path / "first"
    written(place, library, entries | {"chat_template": None})
    (place / "additional_chat_templates").mkdir()  # as transformers writes them
    (place / "additional_chat_templates" / "tool_use.jinja").write_text(tools)
    (place / "chat_template.jinja").write_text(CHATML)
    load_tokenizer(place).save(tmp_path / "second")
    for folder in (place, tmp_path / "second"):
        theirs, ours = AutoTokenizer.from_pretrained(folder), load_tokenizer(folder)
        for options in ({}, {"tools": [{"type": "function"}]}):
            expected = theirs.apply_chat_template(
                CHAT, add_generation_prompt=True, return_dict=False, **options
            )
            assert ours.chat(CHAT, **options).tolist() == expected


def test_older_folders_name_special_tokens_in_a_file(tmp_path):
    library, entries = mistral()
    named = {name: entries.pop(name) for name in ("bos_token", "eos_token", "unk_token")}
    named["eos_token"] = {"content": "</s>", "lstrip": False, "normalized": False}
    written(tmp_path, library, entries)
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(named))
    ours, theirs = load_tokenizer(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    assert ours.eos_token == theirs.eos_token_id == 2
    assert ours.encode("a </s>", special=True).tolist() == theirs("a </s>").input_ids


# What is refused


def changed(folder, name, text):
    written(folder, *mistral())
    (folder / name).write_bytes(text)
    return folder


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("tokenizer.json", b'{"model": ', "/tokenizer.json: cannot be read as JSON: "),
        (
            "tokenizer.json",
            b'{"model": {"type": "Tree"}}',
            "/tokenizer.json: model must be an object with a type of BPE, Unigram, .*, got 'Tree'",
        ),
        (
            "tokenizer_config.json",
            b'{"eos_token": "<end>"}',
            "/tokenizer_config.json: eos_token is '<end>', and tokenizer.json has no token of that",
        ),
        (
            "tokenizer_config.json",
            b'{"added_tokens_decoder": {"7": {"content": "</s>"}}}',
            "added_tokens_decoder says that '</s>' is the token '7'; in tokenizer.json it is 2",
        ),
        (
            "tokenizer_config.json",
            b'{"chat_template": 7}',
            "chat_template must be a text, or a list of objects with a name and a template, got 7",
        ),
        ("chat_template.jinja", b"\xff", "/chat_template.jinja: cannot be read as UTF-8: "),
    ],
)
def test_errors_of_files(tmp_path, name, text, message):
    with pytest.raises(ValueError, match=message):
        load_tokenizer(changed(tmp_path, name, text))


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (torch.tensor([1, 5000]), ValueError, "numbers of tokens, and 5000 is that of none"),
        (torch.tensor([[1]]), ValueError, r"of shape \(seq,\), got \(1, 1\)"),
    ],
)
def test_errors_of_decoding(tmp_path, ids, error, message):
    ours = load_tokenizer(written(tmp_path, *mistral()))
    with pytest.raises(error, match=message):
        ours.decode(ids)
    with pytest.raises(error, match=message):
        list(ours.decode_stream([ids]))


def test_refuses_to_save_over_another_tokenizer(tmp_path):
    train_tokenizer(TEXTS, 300).save(tmp_path)
    ours = load_tokenizer(written(tmp_path / "mine", *mistral()))
    with pytest.raises(ValueError, match=r"/merges\.txt: is of another tokenizer; save elsewhere"):
        ours.save(tmp_path)
