"""Lines of the tokenizer that are wrong, for `test_tokenizer.py`."""

from evaluation.mutation.wrongs import Function

_tokenizer_init = Function("tokenizers/tokenizer:Tokenizer.__init__")
_cutting_as_gpt2 = Function("tokenizers/tokenizer:_cutting_as_gpt2")
_encode = Function("tokenizers/tokenizer:Tokenizer.encode")
_train_tokenizer = Function("tokenizers/tokenizer:train_tokenizer")
_save = Function("tokenizers/tokenizer:Tokenizer.save")
_digest = Function("tokenizers/tokenizer:_digest")
_load_tokenizer = Function("tokenizers/tokenizer:load_tokenizer")
_from_the_hub = Function("tokenizers/tokenizer:_from_the_hub")
_require_merges = Function("tokenizers/tokenizer:_require_merges")
_read_merges = Function("tokenizers/tokenizer:_read_merges")
_require_tokens = Function("tokenizers/tokenizer:_require_tokens")
_require_text = Function("validation:require_text")
_require_ids = Function("tokenizers/tokenizer:Tokenizer._require_ids")
_decode_stream = Function("tokenizers/tokenizer:Tokenizer.decode_stream")
_bytes_of = Function("tokenizers/tokenizer:Tokenizer._bytes_of")

TOKENIZER = (
    # Cutting and merging
    _tokenizer_init("merges in the order of the alphabet", "list", "sorted"),
    _tokenizer_init("first merge taken for the line of the version", "(merges)", "(merges)[1:]"),
    _tokenizer_init(
        "whole words looked up before merging", "_merges))", "_merges, ignore_merges=True))"
    ),
    _cutting_as_gpt2(
        "text not cut", "add_prefix_space=False", "add_prefix_space=False, use_regex=False"
    ),
    _cutting_as_gpt2(
        "cut at spaces, which are lost",
        "ByteLevel(add_prefix_space=False)",
        "Sequence([pre_tokenizers.WhitespaceSplit(),\n"
        "        pre_tokenizers.ByteLevel(add_prefix_space=False)])",
    ),
    _cutting_as_gpt2(
        "apostrophe cut from its letters",
        "ByteLevel(add_prefix_space=False)",
        "Sequence([pre_tokenizers.Split(\"'\", 'isolated'),\n"
        "        pre_tokenizers.ByteLevel(add_prefix_space=False)])",
    ),
    _cutting_as_gpt2(
        "characters composed",
        ".decoder",
        ".normalizer = tokenizers.normalizers.NFC()\n    library.decoder",
    ),
    # Numbers and bytes
    _encode("int32", "int64", "int32"),
    _cutting_as_gpt2(
        "bytes not put together again", "    library.decoder = decoders.ByteLevel()\n", ""
    ),
    _cutting_as_gpt2("spelled bytes joined", "ByteLevel()", "Fuse()"),
    _encode("end of text is text", "text.split(END_OF_TEXT) if special else [text]", "[text]"),
    _encode("end of text is a token unasked", " if special else [text]", ""),
    _encode("end of text left out", "(self.end_of_text, *part)", "part"),
    _train_tokenizer(
        "end of text has the first number",
        '**trained["vocab"], END_OF_TEXT: len(trained["vocab"])',
        'END_OF_TEXT: 0, **{token: i + 1 for token, i in trained["vocab"].items()}',
    ),
    _tokenizer_init(
        "end of text not counted", "\n        self.end_of_text", " - 1\n        self.end_of_text"
    ),
    _tokenizer_init(
        "an attribute that cannot be pickled",
        "vocab_size",
        "number = lambda token: self._vocab[token]\n        self.vocab_size",
    ),
    # Training
    _train_tokenizer(
        "pairs that are rare not merged",
        "show_progress=False",
        "show_progress=False, min_frequency=4",
    ),
    _train_tokenizer(
        "tokens of four bytes at most",
        "show_progress=False",
        "show_progress=False, max_token_length=4",
    ),
    _train_tokenizer(
        "merges sorted after training", 'trained["merges"]', 'sorted(trained["merges"])'
    ),
    _train_tokenizer("texts used up by the check", "    texts = list(texts)\n", ""),
    _train_tokenizer("trained on the first text", ", trainer", "[:1], trainer"),
    _train_tokenizer("one token too many asked for", "vocab_size - 1", "vocab_size"),
    _train_tokenizer("fewer tokens than were asked for", "len(vocab) < vocab_size", "not vocab"),
    _train_tokenizer("end of text not counted in the least size", "(BYTES) + 1", "(BYTES)"),
    _train_tokenizer(
        "characters of one text taken for texts", "isinstance(texts, str)", "texts is None"
    ),
    _train_tokenizer("the error names the first text", 'f"texts[{i}]"', '"texts[0]"'),
    # Files
    _save(
        "merges written over in their place",
        ":\n            (unfinished",
        ":\n            (Path(folder)",
    ),
    _save(
        "vocabulary written over in its place",
        ")\n            (unfinished",
        ")\n            (Path(folder)",
    ),
    _digest(
        "digest without the merges", "[sorted(vocab.items()), merges]", "sorted(vocab.items())"
    ),
    _digest("digest without the numbers", ".items()", ""),
    _digest("digest of the vocabulary in the order of its file", "sorted", "list"),
    _load_tokenizer(
        "digest not compared", "(seal is None or seal == _digest(vocab, merges))", "seal != 1"
    ),
    _load_tokenizer(
        "digest needed",
        "(seal is None or seal == _digest(vocab, merges))",
        "seal == _digest(vocab, merges)",
    ),
    _load_tokenizer(
        "a vocabulary that a killed process did not come to not looked for",
        ", *left_behind(place, TOKENIZER)",
        ",",
    ),
    _require_merges("tokens that no merge makes", "unmade:", "len(unmade) > 40:"),
    _require_merges(
        "special tokens need a merge", "not _SPECIAL.fullmatch(token)", "token != END_OF_TEXT"
    ),
    _load_tokenizer("the working directory read", "    require_named(folder)\n", ""),
    _load_tokenizer("the model's files fetched", ", TOKENIZER, revision", ", revision"),
    _from_the_hub("the hub not named", "folder == Path(name_or_folder)", "folder"),
    _from_the_hub("the hub always named", "folder == Path(name_or_folder)", "not folder"),
    _save("no line for the version", "seal, *", "*"),
    _save("no end of the last line", '_merges), ""', "_merges)"),
    _read_merges("line of the version read as a merge", '"#version"', '"# version"'),
    _read_merges("first line left out, whatever it is", '.startswith("#version")', ""),
    _read_merges("line of a number sign left out", '"#version"', '"#"'),
    _read_merges("line ends of Windows kept", '"\\r\\n?|\\n"', '"\\n"'),
    _read_merges("a damaged first line passed over", '"SHA-256" in lines[0]', "not lines"),
    _read_merges("third token of a line left out", "(tokens) !=", "(tokens) <"),
    _read_merges(
        "the error does not name the file of the merges",
        ' ValueError(f"{path}: cannot be read as text in UTF-8: {error}") from error',
        "",
    ),
    _load_tokenizer("the error does not name the folder", 'f"{what}: {error}"', "str(error)"),
    _load_tokenizer(
        "a folder looked for, but not its files", "os.path.exists(path)", "path.parent.is_dir()"
    ),
    _load_tokenizer("missing folder not noticed", "not os", "path.parent.is_dir() and not os"),
    # Errors
    _require_tokens(
        "numbers not checked", "numbers != list(range(len(vocab)))", "len(numbers) > len(vocab)"
    ),
    _require_tokens("True is a number", "type(number) is int", "isinstance(number, int)"),
    _require_tokens("missing end of text not noticed", "({*BYTES, END_OF_TEXT})", "{*BYTES}"),
    _require_merges("results of merges not looked up", ", first + second", ""),
    _encode("anything written as text", 'require_text("text", text)', "text = str(text)"),
    _require_text("half of a surrogate pair replaced", "encode()", 'encode(errors="replace")'),
    _require_text(
        "one position after the half of a pair",
        'f"{text[error.start]!r}, at position {error.start}"',
        'f"{text[error.start]!r}, at position {error.end}"',
    ),
    _require_ids("floating-point numbers of tokens", '        require_integers("ids", ids)\n', ""),
    _require_ids("a single number decoded", "ndim !=", "ndim >"),
    _require_ids("negative numbers pass", "0 <= ids.min() <= ", ""),
    _require_ids("no tokens refused", "numel() > 0 and", "numel() == 0 or"),
    # Token by token
    _decode_stream("half a character shown", 'errors="replace"', 'errors="ignore"'),
    _decode_stream("what is left at the end not shown", ", final=True", ""),
    _decode_stream("several tokens at once", "numel() != 1", "numel() > 9"),
    _decode_stream("numbers not checked", "            self._require_ids(each)\n", ""),
    _bytes_of(
        "special tokens have the characters of bytes only",
        "bytes(BYTES[each] for each in token) if BYTES.keys() >= {*token} else token.encode()",
        "bytes(BYTES[each] for each in token)",
    ),
)
