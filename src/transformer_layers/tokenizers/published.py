"""The tokenizers of published models, as their `tokenizer.json` describes them."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers
import torch
from jaxtyping import Int
from tokenizers import AddedToken
from torch import Tensor

from transformer_layers.checkpoints.atomic_save import require_named
from transformer_layers.checkpoints.json_file import parse_json_object, shown
from transformer_layers.checkpoints.regular_file import read_regular
from transformer_layers.tokenizers.chat import ChatTemplate
from transformer_layers.tokenizers.ids import require_ids, require_one
from transformer_layers.validation import require_text

DESCRIPTION = "tokenizer.json"
CONFIG = "tokenizer_config.json"
SPECIAL = "special_tokens_map.json"
TEMPLATE = "chat_template.jinja"
FILES = (DESCRIPTION, CONFIG, SPECIAL, TEMPLATE)
FURTHER_TEMPLATES = "additional_chat_templates"  # a folder of templates with names

_LARGEST = 2**27  # bytes; the largest published ones, of 262,144 tokens, have a quarter of it
_MODELS = ("BPE", "Unigram", "WordLevel", "WordPiece")
_NAMED = tuple(f"{name}_token" for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"))
_FURTHER = ("extra_special_tokens", "additional_special_tokens")
# Where a config names special tokens.
SPECIAL_ENTRIES = (*_NAMED, *_FURTHER)
_UNFINISHED = "\N{REPLACEMENT CHARACTER}"  # with it ends what lacks bytes of its last character


class PublishedTokenizer:
    """The tokenizer of a published model, such as those of Llama, Mistral, Qwen and GPT-2.

    The library `tokenizers` computes what `tokenizer.json` says: byte-level byte pair encoding, one
    of characters that falls back to bytes, a unigram model, and others. Which of its tokens begin
    and end a text, and the template of chats, are read from the files beside it, as
    `transformers.PreTrainedTokenizerFast` reads them. :func:`load_tokenizer` makes it.

    Args:
        files: What the folder's files hold, by name; `tokenizer.json` at least.
        folder: The folder that they come from, for errors.

    Attributes:
        vocab_size: Number of tokens, with those that were added to the vocabulary.
        bos_token: Number of the token that begins a text; None if there is none.
        eos_token: Number of the token that ends one; None if there is none.
        pad_token: Number of the token that fills up a batch; None if there is none.
        chat_template: The template of chats; None if there is none.

    Raises:
        ImportError: If there is a template, and the package `jinja2` is not installed.
        ValueError: If a file is damaged, or the files do not fit; the message names it.
    """

    def __init__(self, files: Mapping[str, bytes], folder: Path) -> None:
        self._files = dict(files)
        self._folder = folder
        self._made: dict[str, ChatTemplate] = {}
        entries = entries_of(files, folder)
        self._library = _library(files[DESCRIPTION], folder / DESCRIPTION)
        self._named = _add_tokens(self._library, entries, folder / CONFIG)
        self._library.encode_special_tokens = True  # names in a text are text
        self.vocab_size = self._library.get_vocab_size()
        self.bos_token = self._number_of("bos_token")
        self.eos_token = self._number_of("eos_token")
        self.pad_token = self._number_of("pad_token")
        self._templates = _templates(files, entries, folder)
        self.chat_template = self._templates.get("default")
        added = self._library.get_added_tokens_decoder()
        unknown = self._number_of("unk_token")
        self._special = {i for i, token in added.items() if token.special}
        named = {self._library.token_to_id(text) for text in self._named.values()}
        self._names = (self._special | named) - {unknown}  # which no text stands for by itself

    def encode(
        self, text: str, special: bool = False, *, add_special_tokens: bool = True
    ) -> Int[Tensor, " seq"]:
        """The tokens of a text, with those that the model wants around it.

        With `special=True` they are what `tokenizer(text).input_ids` is in `transformers`; other
        texts than those that have the name of a special token in them have these tokens anyway.

        Args:
            text: Any text.
            special: Whether names of special tokens in the text, such as `</s>`, stand for these
                tokens, as in `transformers`. If not, they are text like any other, so that nobody
                who writes a text can end it for the model.
            add_special_tokens: Whether what `tokenizer.json` puts around a text is added: for Llama
                and Mistral the token that begins it, for GPT-2 and Qwen nothing. As in
                `transformers`, `add_bos_token` in `tokenizer_config.json` changes nothing of that.

        Returns:
            Their numbers, int64 of shape `(seq,)`.

        Raises:
            TypeError: If `text` is no str.
            ValueError: If it holds half of a surrogate pair, which UTF-8 cannot write; or the name
                of a special token that this tokenizer cannot write as text.
        """
        require_text("text", text)
        library = self._reading_names if special else self._library
        found = library.encode(text, add_special_tokens=add_special_tokens)
        if not special:
            self._require_text_alone(found)
        return torch.tensor(found.ids, dtype=torch.int64)

    def decode(self, ids: Int[Tensor, " seq"], *, skip_special_tokens: bool = False) -> str:
        """The text of tokens.

        Args:
            ids: Numbers of tokens, int64 or int32 of shape `(seq,)`.
            skip_special_tokens: Whether special tokens, such as those that begin and end a text,
                are left out.

        Returns:
            The text. Bytes that are no UTF-8, as when a character is cut in two, become U+FFFD.

        Raises:
            TypeError: If `ids` are not int64 or int32.
            ValueError: If they are not of one axis, or one is the number of no token.
        """
        self._require_ids(ids)
        return self._library.decode(ids.tolist(), skip_special_tokens=skip_special_tokens)

    def decode_stream(
        self, ids: Iterable[Int[Tensor, "1"]], *, skip_special_tokens: bool = False
    ) -> Iterator[str]:
        """The text of tokens that come one by one, as :meth:`Llama.stream` yields them.

        Args:
            ids: Numbers of tokens, each int64 or int32 of shape `(1,)`.
            skip_special_tokens: As in :meth:`decode`.

        Yields:
            What each token adds to the text, where a character that is not yet whole is nothing,
            and, last, what is left; together what :meth:`decode` returns. After a token that is a
            byte by itself, such as `<0x0A>`, the text waits for the first one that is not: only
            then it is known whether the bytes are characters.

        Raises:
            TypeError: If one is not int64 or int32.
            ValueError: If one is not of one axis with one element, or the number of no token.
        """
        # Text that was given stays as it is, so that only what came since is decoded, together with
        # the tokens before: at the very beginning a space may be left out.
        before: list[int] = []
        new: list[int] = []
        for each in ids:
            self._require_ids(each)
            require_one(each)
            new.append(int(each))
            if self._is_byte(new[-1]) or (skip_special_tokens and new[-1] in self._special):
                yield ""
                continue
            added = self._added(before, new, skip_special_tokens)
            if not added or added.endswith(_UNFINISHED):
                yield ""
                continue
            yield added
            before, new = new, []
        yield self._added(before, new, skip_special_tokens)

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = True,
        **variables: Any,
    ) -> Int[Tensor, " seq"]:
        """The tokens of a chat, as the model's template writes it.

        They are those of `apply_chat_template(messages, add_generation_prompt=True)` in
        `transformers`: where a message has the name of a special token in it, that is the token, so
        look into messages that others wrote.

        Args:
            messages: The messages, each a dict with its `role` and its `content`; what is None
                counts as left out.
            add_generation_prompt: Whether the beginning of the model's answer follows.
            **variables: What else the template asks for, such as `enable_thinking`, or `tools`, for
                which there may be a template of its own.

        Returns:
            Their numbers, int64 of shape `(seq,)`.

        Raises:
            TypeError: If the messages are no list of dicts, or hold what JSON does not.
            ValueError: If there is no template, or no message, or the template raises or does not
                come to an end.
        """
        text = self.chat_text(messages, add_generation_prompt=add_generation_prompt, **variables)
        return self.encode(text, special=True, add_special_tokens=False)

    def chat_text(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = True,
        **variables: Any,
    ) -> str:
        """The text of a chat, of which :meth:`chat` gives the tokens.

        Args:
            messages: See there.
            add_generation_prompt: See there.
            **variables: See there.

        Returns:
            The text.

        Raises:
            TypeError: See there.
            ValueError: See there.
        """
        if self.chat_template is None:
            raise ValueError(
                f"{self._folder}: there is no chat template, neither in {TEMPLATE} nor as "
                f"chat_template in {CONFIG}; write the text yourself, and encode it"
            )
        given = {"tools": None, "documents": None, **self._named, **variables}
        name = "tool_use" if given["tools"] is not None and "tool_use" in self._templates else ""
        written = self._written(name or "default")
        return written.render(messages, add_generation_prompt=add_generation_prompt, **given)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the files that it was made of, which `load_tokenizer` and `transformers` load.

        Args:
            folder: Where they are written; made if needed.

        Raises:
            OSError: If a file cannot be written.
            ValueError: If `folder` is the empty text, or has another tokenizer in `vocab.json` and
                `merges.txt`.
        """
        require_named(folder)
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("merges.txt", "vocab.json"):
            if os.path.lexists(folder / name):
                raise ValueError(f"{folder / name}: is of another tokenizer; save elsewhere")
        for name in (*FILES, *_further_templates(folder)):
            (folder / name).unlink(missing_ok=True)
        for name, content in self._files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)

    @cached_property
    def _reading_names(self) -> tokenizers.Tokenizer:
        """The same, for which names of special tokens in a text are these tokens."""
        return tokenizers.Tokenizer.from_str(self._library.to_str())

    def _written(self, name: str) -> ChatTemplate:
        if name not in self._made:
            text = (self.chat_template or "") if name == "default" else self._templates[name]
            self._made[name] = ChatTemplate(text, str(self._folder))
        return self._made[name]

    def _number_of(self, name: str) -> int | None:
        return self._library.token_to_id(self._named[name]) if name in self._named else None

    def _require_ids(self, ids: Tensor) -> None:
        require_ids(ids, self._known)

    @cached_property
    def _known(self) -> frozenset[int]:
        return frozenset(self._library.get_vocab().values())

    def _is_byte(self, number: int) -> bool:
        token = self._library.id_to_token(number) or ""
        return len(token) == 6 and token.startswith("<0x") and token.endswith(">")

    def _added(self, before: list[int], new: list[int], skip: bool) -> str:
        start = self._library.decode(before, skip_special_tokens=skip)
        return self._library.decode(before + new, skip_special_tokens=skip)[len(start) :]

    def _require_text_alone(self, found: tokenizers.Encoding) -> None:
        for number, around in zip(found.ids, found.special_tokens_mask, strict=True):
            if not around and number in self._names:
                raise ValueError(
                    f"the text has {self._library.id_to_token(number)!r} in it, which this "
                    "tokenizer cannot write as text; leave it out, or pass special=True if it is "
                    "to be the token of that name"
                )


def read_files(folder: Path) -> dict[str, bytes]:
    """Reads the files of a published tokenizer.

    Args:
        folder: The folder.

    Returns:
        What they hold, by name; only of those that are there.

    Raises:
        OSError: If one cannot be read.
        ValueError: If one is larger than 128 MiB, or no file.
    """
    files = {}
    for name in (*FILES, *_further_templates(folder)):
        path = folder / name
        if os.path.lexists(path):
            try:
                files[name] = read_regular(path, _LARGEST)
            except FileNotFoundError:
                if path.is_symlink():
                    raise  # else a process that saves has just removed it
    return files


def _further_templates(folder: Path) -> list[str]:
    """The files of further templates, by their names in the folder."""
    found = sorted((folder / FURTHER_TEMPLATES).glob("*.jinja"))
    return [f"{FURTHER_TEMPLATES}/{path.name}" for path in found]


def entries_of(files: Mapping[str, bytes], folder: Path) -> dict[str, Any]:
    """What the config says, and, as in older folders, a file of special tokens beside it.

    Args:
        files: What the folder's files hold, by name.
        folder: The folder, for errors.

    Returns:
        The entries; none where there is neither file.

    Raises:
        ValueError: If a file is no JSON object.
    """
    entries: dict[str, Any] = {}
    if CONFIG in files:
        entries = parse_json_object(files[CONFIG], folder / CONFIG)
    if SPECIAL in files and "added_tokens_decoder" not in entries:
        entries |= parse_json_object(files[SPECIAL], folder / SPECIAL)
    return entries


def _library(content: bytes, path: Path) -> tokenizers.Tokenizer:
    model = parse_json_object(content, path).get("model")
    kind = model.get("type") if isinstance(model, dict) else None
    if not isinstance(model, dict) or kind not in (*_MODELS, None):
        found = shown(kind if isinstance(model, dict) else model)
        raise ValueError(
            f"{path}: model must be an object with a type of {', '.join(_MODELS)}, got {found}"
        )
    try:
        library = tokenizers.Tokenizer.from_str(content.decode())
    except Exception as error:  # the library raises Exception itself
        what = str(error).partition("\n")[0]
        raise ValueError(f"{path}: no tokenizer can be made of it: {what}") from error
    library.no_truncation()
    library.no_padding()
    return library


def _add_tokens(
    library: tokenizers.Tokenizer, entries: Mapping[str, Any], path: Path
) -> dict[str, str]:
    """Has the library know the tokens that the config names; returns the named ones' texts."""
    decoder = entries.get("added_tokens_decoder", {})
    if not isinstance(decoder, dict):
        raise ValueError(f"{path}: added_tokens_decoder must be an object, got {shown(decoder)}")
    for number, entry in decoder.items():
        token = _token("added_tokens_decoder", entry, path)
        if str(library.token_to_id(token.content)) != number:
            raise ValueError(
                f"{path}: added_tokens_decoder says that {shown(token.content)} is the token "
                f"{shown(number)}; in {DESCRIPTION} it is {library.token_to_id(token.content)}"
            )
        library.add_tokens([token])
    named = {}
    for name in _NAMED:
        if entries.get(name) is not None:
            token = _token(name, entries[name], path, special=True)
            _require_known(library, name, token, path)
            _add_if_new(library, token)
            named[name] = token.content
    for name in _FURTHER:
        extra = entries.get(name) or []
        if not isinstance(extra, list | dict):
            raise ValueError(f"{path}: {name} must be a list, got {shown(extra)}")
        for entry in extra.values() if isinstance(extra, dict) else extra:
            token = _token(name, entry, path, special=True)
            _require_known(library, name, token, path)
            _add_if_new(library, token)
    return named


def _add_if_new(library: tokenizers.Tokenizer, token: AddedToken) -> None:
    """Makes a token of the vocabulary a special one; of one that is added, the flags stay."""
    added = library.get_added_tokens_decoder().values()
    if token.content not in {each.content for each in added}:
        library.add_special_tokens([token])


def _token(name: str, entry: Any, path: Path, special: bool = False) -> AddedToken:
    if isinstance(entry, str) and entry:
        return AddedToken(entry, special=special, normalized=False)
    fields = dict(entry) if isinstance(entry, dict) else {}
    fields.pop("__type", None)
    content = fields.pop("content", None)
    flags = ("lstrip", "rstrip", "normalized", "single_word", "special")
    if not isinstance(content, str) or not content or not fields.keys() <= {*flags}:
        raise ValueError(f"{path}: {name} must name a token, got {shown(entry)}")
    if not all(isinstance(value, bool) for value in fields.values()):
        raise ValueError(f"{path}: {name} must have true or false for each flag of {shown(entry)}")
    fields["special"] = special or fields.get("special", False)
    return AddedToken(content, **fields)


def _require_known(library: tokenizers.Tokenizer, name: str, token: AddedToken, path: Path) -> None:
    if library.token_to_id(token.content) is None:
        raise ValueError(
            f"{path}: {name} is {shown(token.content)}, and {DESCRIPTION} has no token of that name"
        )


def _templates(
    files: Mapping[str, bytes], entries: Mapping[str, Any], folder: Path
) -> dict[str, str]:
    """The templates of chats by name; that of a file stands before that of the config."""
    found = entries.get("chat_template")
    if found is None or isinstance(found, str):
        found = [{"name": "default", "template": found}] if found else []
    several: dict[str, str] = {}
    for each in found if isinstance(found, list) else [found]:
        entry = each if isinstance(each, dict) else {}
        name, template = entry.get("name"), entry.get("template")
        if not isinstance(name, str) or not isinstance(template, str):
            raise ValueError(
                f"{folder / CONFIG}: chat_template must be a text, or a list of objects with a "
                f"name and a template, got {shown(each)}"
            )
        several[name] = template
    for place, content in files.items():
        if place.endswith(".jinja"):
            name = "default" if place == TEMPLATE else Path(place).stem
            try:
                several[name] = content.decode()
            except UnicodeDecodeError as error:
                raise ValueError(f"{folder / place}: cannot be read as UTF-8: {error}") from error
    return several
