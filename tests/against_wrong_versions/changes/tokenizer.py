"""Lines of the tokenizer that are wrong, for `test_tokenizer.py`."""

from tests.against_wrong_versions.wrongs import Change

TOKENIZER = (
    # Cutting and merging
    Change(
        "gpt2/tokenizer",
        "merges in the order of the alphabet",
        "self._merges = list(merges)",
        "self._merges = sorted(merges)",
    ),
    Change(
        "gpt2/tokenizer",
        "first merge taken for the line of the version",
        "self._merges = list(merges)",
        "self._merges = list(merges)[1:]",
    ),
    Change(
        "gpt2/tokenizer",
        "whole words looked up before merging",
        "models.BPE(vocab=self._vocab, merges=self._merges)",
        "models.BPE(vocab=self._vocab, merges=self._merges, ignore_merges=True)",
    ),
    Change(
        "gpt2/tokenizer",
        "text not cut",
        "pre_tokenizers.ByteLevel(add_prefix_space=False)",
        "pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)",
    ),
    Change(
        "gpt2/tokenizer",
        "cut at spaces, which are lost",
        "pre_tokenizers.ByteLevel(add_prefix_space=False)",
        "pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),\n"
        "        pre_tokenizers.ByteLevel(add_prefix_space=False)])",
    ),
    Change(
        "gpt2/tokenizer",
        "apostrophe cut from its letters",
        "pre_tokenizers.ByteLevel(add_prefix_space=False)",
        "pre_tokenizers.Sequence([pre_tokenizers.Split(\"'\", 'isolated'),\n"
        "        pre_tokenizers.ByteLevel(add_prefix_space=False)])",
    ),
    Change(
        "gpt2/tokenizer",
        "a space put before the text",
        "add_prefix_space=False",
        "add_prefix_space=True",
    ),
    Change(
        "gpt2/tokenizer",
        "characters composed",
        "    library.decoder =",
        "    library.normalizer = tokenizers.normalizers.NFC()\n    library.decoder =",
    ),
    # Numbers and bytes
    Change("gpt2/tokenizer", "int32", "dtype=torch.int64", "dtype=torch.int32"),
    Change(
        "gpt2/tokenizer",
        "bytes not put together again",
        "    library.decoder = decoders.ByteLevel()\n",
        "",
    ),
    Change(
        "gpt2/tokenizer",
        "spelled bytes joined",
        "decoders.ByteLevel()",
        "decoders.Fuse()",
    ),
    Change(
        "gpt2/tokenizer",
        "end of text is text",
        "        self._library.add_special_tokens([END_OF_TEXT])\n",
        "",
    ),
    Change(
        "gpt2/tokenizer",
        "end of text not decoded",
        "skip_special_tokens=False",
        "skip_special_tokens=True",
    ),
    Change(
        "gpt2/tokenizer",
        "end of text has the first number",
        'vocab = {**trained["vocab"], END_OF_TEXT: len(trained["vocab"])}',
        'vocab = {END_OF_TEXT: 0, **{token: i + 1 for token, i in trained["vocab"].items()}}',
    ),
    Change(
        "gpt2/tokenizer",
        "end of text not counted",
        "self.vocab_size = len(self._vocab)",
        "self.vocab_size = len(self._vocab) - 1",
    ),
    Change(
        "gpt2/tokenizer",
        "an attribute that cannot be pickled",
        "        self.vocab_size =",
        "        self.number = lambda token: self._vocab[token]\n        self.vocab_size =",
    ),
    # Training
    Change(
        "gpt2/tokenizer",
        "pairs that are rare not merged",
        "show_progress=False",
        "show_progress=False, min_frequency=4",
    ),
    Change(
        "gpt2/tokenizer",
        "tokens of four bytes at most",
        "show_progress=False",
        "show_progress=False, max_token_length=4",
    ),
    Change(
        "gpt2/tokenizer",
        "bytes that the texts have not are no tokens",
        "initial_alphabet=sorted(_BYTES), ",
        "",
    ),
    Change(
        "gpt2/tokenizer",
        "merges sorted after training",
        'for first, second in trained["merges"]]',
        'for first, second in sorted(trained["merges"])]',
    ),
    Change(
        "gpt2/tokenizer",
        "texts used up by the check",
        "    texts = list(texts)\n",
        "",
    ),
    Change(
        "gpt2/tokenizer",
        "trained on the first text",
        "train_from_iterator(texts, trainer)",
        "train_from_iterator(texts[:1], trainer)",
    ),
    Change(
        "gpt2/tokenizer",
        "one token too many asked for",
        "vocab_size=vocab_size - 1",
        "vocab_size=vocab_size",
    ),
    Change(
        "gpt2/tokenizer",
        "all pairs are one too many",
        "if len(vocab) < vocab_size:",
        "if len(vocab) <= vocab_size:",
    ),
    Change(
        "gpt2/tokenizer",
        "fewer tokens than were asked for",
        "if len(vocab) < vocab_size:",
        "if not vocab:",
    ),
    Change(
        "gpt2/tokenizer",
        "end of text not counted in the least size",
        "minimum=len(_BYTES) + 1",
        "minimum=len(_BYTES)",
    ),
    Change(
        "gpt2/tokenizer",
        "characters of one text taken for texts",
        "if isinstance(texts, str):",
        "if texts is None:",
    ),
    Change(
        "gpt2/tokenizer",
        "the error names the first text",
        'f"texts[{i}]"',
        '"texts[0]"',
    ),
    # Files
    Change(
        "gpt2/tokenizer",
        "merges written over in their place",
        "(unfinished / TOKENIZER.first).write_text(",
        "(Path(folder) / TOKENIZER.first).write_text(",
    ),
    Change(
        "gpt2/tokenizer",
        "vocabulary written over in its place",
        "(unfinished / TOKENIZER.second).write_text(",
        "(Path(folder) / TOKENIZER.second).write_text(",
    ),
    Change(
        "gpt2/tokenizer",
        "digest without the merges",
        "json.dumps([sorted(vocab.items()), merges])",
        "json.dumps(sorted(vocab.items()))",
    ),
    Change(
        "gpt2/tokenizer",
        "digest without the numbers",
        "json.dumps([sorted(vocab.items()), merges])",
        "json.dumps([sorted(vocab), merges])",
    ),
    Change(
        "gpt2/tokenizer",
        "digest of the vocabulary in the order of its file",
        "sorted(vocab.items())",
        "list(vocab.items())",
    ),
    Change(
        "gpt2/tokenizer",
        "digest not compared",
        "(seal is None or seal == _digest(vocab, merges))",
        "seal != 1",
    ),
    Change(
        "gpt2/tokenizer",
        "digest needed",
        "(seal is None or seal == _digest(vocab, merges))",
        "seal == _digest(vocab, merges)",
    ),
    Change(
        "gpt2/tokenizer",
        "a vocabulary that a killed process did not come to not looked for",
        "(vocab_path, *left_behind(Path(folder), TOKENIZER))",
        "(vocab_path,)",
    ),
    Change(
        "gpt2/tokenizer",
        "tokens that no merge makes",
        "    if unmade:\n",
        "    if len(unmade) > 40:\n",
    ),
    Change(
        "gpt2/tokenizer",
        "special tokens need a merge",
        "if not _SPECIAL.fullmatch(token)]",
        "if token != END_OF_TEXT]",
    ),
    Change(
        "gpt2/tokenizer",
        "the working directory read",
        "    require_named(folder)\n",
        "",
    ),
    Change("gpt2/tokenizer", "characters escaped", "ensure_ascii=False", "ensure_ascii=True"),
    Change(
        "gpt2/tokenizer",
        "no line for the version",
        "lines = [seal, *(",
        "lines = [*(",
    ),
    Change(
        "gpt2/tokenizer",
        "no end of the last line",
        'for first, second in self._merges), ""]',
        "for first, second in self._merges)]",
    ),
    Change(
        "gpt2/tokenizer",
        "line of the version read as a merge",
        'if lines[0].startswith("#version"):',
        'if lines[0].startswith("# version"):',
    ),
    Change(
        "gpt2/tokenizer",
        "first line left out, whatever it is",
        'if lines[0].startswith("#version"):',
        "if lines[0]:",
    ),
    Change(
        "gpt2/tokenizer",
        "line of a number sign left out",
        'if lines[0].startswith("#version"):',
        'if lines[0].startswith("#"):',
    ),
    Change(
        "gpt2/tokenizer",
        "line ends of Windows kept",
        'path.read_text(encoding="utf-8").split',
        'path.read_bytes().decode("utf-8").split',
    ),
    Change(
        "gpt2/tokenizer",
        "lines counted from 0",
        "enumerate(lines, start=1)",
        "enumerate(lines)",
    ),
    Change(
        "gpt2/tokenizer",
        "third token of a line left out",
        'if line != "" and len(tokens) != 2:',
        'if line != "" and len(tokens) < 2:',
    ),
    Change(
        "gpt2/tokenizer",
        "the error does not name the file of the merges",
        'raise ValueError(f"{path}: cannot be read as text in UTF-8: {error}") from error',
        "raise",
    ),
    Change(
        "gpt2/tokenizer",
        "the error does not name the folder",
        'raise ValueError(f"{what}: {error}")',
        "raise ValueError(str(error))",
    ),
    Change(
        "gpt2/tokenizer",
        "a folder looked for, but not its files",
        "if not path.is_file():",
        "if not path.parent.is_dir():",
    ),
    Change(
        "gpt2/tokenizer",
        "missing folder not noticed",
        "if not path.is_file():",
        "if path.parent.is_dir() and not path.is_file():",
    ),
    # Errors
    Change(
        "gpt2/tokenizer",
        "numbers not checked",
        "if numbers != list(range(len(vocab))):",
        "if len(numbers) > len(vocab):",
    ),
    Change(
        "gpt2/tokenizer",
        "True is a number",
        "if type(number) is int)",
        "if isinstance(number, int))",
    ),
    Change(
        "gpt2/tokenizer",
        "missing end of text not noticed",
        "({*_BYTES, END_OF_TEXT})",
        "_BYTES",
    ),
    Change(
        "gpt2/tokenizer",
        "results of merges not looked up",
        "for token in (first, second, first + second):",
        "for token in (first, second):",
    ),
    Change(
        "gpt2/tokenizer",
        "anything written as text",
        '        _require_text("text", text)\n',
        "        text = str(text)\n",
    ),
    Change(
        "gpt2/tokenizer",
        "half of a surrogate pair replaced",
        "text.encode()",
        'text.encode(errors="replace")',
    ),
    Change(
        "gpt2/tokenizer",
        "one position after the half of a pair",
        "at position {error.start}",
        "at position {error.end}",
    ),
    Change(
        "gpt2/tokenizer",
        "floating-point numbers of tokens",
        '        require_integers("ids", ids)\n',
        "",
    ),
    Change("gpt2/tokenizer", "a single number decoded", "if ids.ndim != 1:", "if ids.ndim > 1:"),
    Change(
        "gpt2/tokenizer", "one past the vocabulary", "< self.vocab_size:", "<= self.vocab_size:"
    ),
    Change(
        "gpt2/tokenizer",
        "negative numbers pass",
        "not 0 <= ids.min() <= ids.max() <",
        "not ids.max() <",
    ),
    Change(
        "gpt2/tokenizer",
        "no tokens refused",
        "if ids.numel() > 0 and not 0 <=",
        "if ids.numel() == 0 or not 0 <=",
    ),
)
