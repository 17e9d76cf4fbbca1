"""Lines of the tokenizer that is written out that are wrong, for `test_byte_pairs.py`."""

from evaluation.mutation.wrongs import Function

_visible = Function("tokenizers/byte_pairs:_VISIBLE")
_pieces = Function("tokenizers/byte_pairs:PIECES")
_spelled = Function("tokenizers/byte_pairs:spelled")
_merged = Function("tokenizers/byte_pairs:merged")
_encode = Function("tokenizers/byte_pairs:encode")
_decode = Function("tokenizers/byte_pairs:decode")
_train = Function("tokenizers/byte_pairs:train")

BYTE_PAIRS = (
    # Bytes and pieces
    _visible(
        "the soft hyphen spelled as itself",
        "range(0xA1, 0xAD), *range(0xAE, 0x100)",
        "range(0xA1, 0x100)",
    ),
    _spelled(
        "characters for bytes", "CHARACTERS[byte] for byte in piece.encode()", "c for c in piece"
    ),
    _pieces(
        "cut at spaces only",
        r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|",
        r" ?\S+|",
    ),
    _pieces("letters of English only", r" ?\p{L}+", " ?[a-zA-Z]+"),
    _pieces("digits one by one", r"\p{N}+| ", r"\p{N}| "),
    _pieces("white space takes the space of the next piece", r"|\s+(?!\S)", ""),
    _pieces("endings in capitals", "'(?:s", "(?i)'(?:s"),
    # Merging
    _merged(
        "merges from left to right, whatever their ranks",
        "(ranks[pair], i) for",
        "(ranks[pair] * 0, i) for",
    ),
    _merged("neighbors of what was joined not asked again", "(before[i], i)", "(i,)"),
    _merged("the pair at the right not asked again", "(before[i], i)", "(before[i],)"),
    _merged("a token joined twice", "!= rank", "is None"),
    _merged(
        "the way back not kept", "after[i], before[after[j]] = after[j], i", "after[i] = after[j]"
    ),
    _merged("no list of what waits", "    heapify(waiting)\n", "    waiting.sort(reverse=True)\n"),
    # Special tokens, and back
    _encode(
        "special tokens are always text", "if names else [text]", "if names is None else [text]"
    ),
    _encode("names are expressions", "map(regex.escape, names)", "names"),
    _encode("the shorter name first", ", reverse=True", ""),
    _encode("no word twice", "for piece in cut for number", "for piece in set(cut) for number"),
    _encode("anything taken for text", '    require_text("text", text)\n', ""),
    _decode("broken characters left out", 'errors="replace"', 'errors="ignore"'),
    # Training
    _train("pairs counted once a piece", "sign * times[piece]", "sign"),
    _train("old pairs still counted", "            count(piece, -1)\n", ""),
    _train("new pairs not counted", "            count(piece, 1)\n    return", "    return"),
    _train("the later number first", "-vocab[pair[0]]", "vocab[pair[0]]"),
    _train("the second token not looked at", ", -vocab[pair[1]]", ", 0"),
    _train("the rarest pair", "max(counts", "min(counts"),
)
