"""Loading of whichever tokenizer a folder holds."""

import os
import time
from typing import Any

from transformer_layers.checkpoints.atomic_save import PAUSES, TOKENIZER, require_named
from transformer_layers.checkpoints.folder import find_folder
from transformer_layers.checkpoints.json_file import parse_json_object
from transformer_layers.tokenizers.published import (
    DESCRIPTION,
    FILES,
    SPECIAL_ENTRIES,
    TEMPLATE,
    PublishedTokenizer,
    entries_of,
    read_files,
)
from transformer_layers.tokenizers.tokenizer import END_OF_TEXT, Tokenizer, read_pair


def load_tokenizer(
    folder: str | os.PathLike[str], *, revision: str | None = None
) -> Tokenizer | PublishedTokenizer:
    """Reads the tokenizer of a published model, or one that was saved.

    A folder with `tokenizer.json` gives what that file says, with the special tokens and the
    template of chats of the files beside it: see :class:`PublishedTokenizer`. Where the file says
    what `vocab.json` and `merges.txt` say, the tokenizer of GPT-2, these two are read, as they are
    where they stand alone: see :class:`Tokenizer`.

    Args:
        folder: A folder with `tokenizer.json`, or with `vocab.json` and `merges.txt`, or a name on
            the Hugging Face hub, such as `openai-community/gpt2`; see :meth:`GPT2.from_pretrained`.
        revision: The branch, the tag or the commit on the hub; its main branch if not given. A
            folder has none.

    Returns:
        The tokenizer.

    Raises:
        FileNotFoundError: If one of the files is not there, or the hub cannot be asked.
        OSError: If a file cannot be opened.
        TypeError: If `revision` is no str.
        ValueError: If a file is damaged, or too large, or the files do not fit; the message names
            it. Or if `folder` is the empty text, or a file, or a folder is to have a revision.

    Examples:
        >>> import tempfile
        >>> from transformer_layers import train_tokenizer
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     train_tokenizer(["low lower lowest"], vocab_size=260).save(folder)
        ...     load_tokenizer(folder).encode("low lows")
        tensor([257, 258,  82])
    """
    require_named(folder)
    place = find_folder(folder, sorted((*TOKENIZER, *FILES)), revision=revision)
    for pause in PAUSES:
        files = read_files(place)
        if DESCRIPTION not in files:
            return read_pair(place, folder)
        if not all(os.path.lexists(place / name) for name in TOKENIZER):
            return PublishedTokenizer(files, place)
        described = parse_json_object(files[DESCRIPTION], place / DESCRIPTION)
        if not _is_gpt2s(described, entries_of(files, place), TEMPLATE in files):
            return PublishedTokenizer(files, place)
        ours = read_pair(place, folder)
        if ours.has(*_contents(described["model"])):
            return ours
        time.sleep(pause)  # a process that saves may have replaced some of them
    raise ValueError(
        f"{place / DESCRIPTION}: holds another vocabulary, or other merges, than vocab.json and "
        "merges.txt beside it; remove what is of another tokenizer"
    )


def _is_gpt2s(described: dict[str, Any], entries: dict[str, Any], template: bool) -> bool:
    """Whether it is described that texts are cut and written as :class:`Tokenizer` does."""
    pieces = described.get("pre_tokenizer")
    added = described.get("added_tokens")
    named = {name: entries.get(name) for name in SPECIAL_ENTRIES}
    return (
        isinstance(described.get("model"), dict)
        and described["model"].get("type") == "BPE"
        and described.get("normalizer") is None
        and isinstance(pieces, dict)
        and (pieces.get("type"), pieces.get("add_prefix_space")) == ("ByteLevel", False)
        and pieces.get("use_regex", True) is True
        and isinstance(added, list)
        and [_name_of(token) for token in added] == [END_OF_TEXT]
        and all(_name_of(token) in (None, END_OF_TEXT) for token in named.values())
        and _name_of_kind(described.get("post_processor")) in (None, "ByteLevel")
        and not template
        and entries.get("chat_template") is None
    )


def _name_of_kind(part: Any) -> Any:
    return part.get("type") if isinstance(part, dict) else part


def _name_of(token: Any) -> Any:
    return token.get("content") if isinstance(token, dict) else token or None


def _contents(model: dict[str, Any]) -> tuple[Any, list[tuple[str, ...]]]:
    """Vocabulary and merges; older files write each merge as one text."""
    merges = model.get("merges") or []
    pairs = (each.split(" ") if isinstance(each, str) else each for each in merges)
    return model.get("vocab"), [tuple(pair) for pair in pairs]
