"""Chats as texts: the templates that published tokenizers bring along, rendered in a sandbox.

They are written in the language of the package `jinja2`, as `transformers` renders them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from transformer_layers.checkpoints.json_file import shown

# Calls and rounds of loops. A template takes some ten of them for each message.
MOST_STEPS = 1_000_000
# Characters of a text, or elements of a list, that a product in a template may have.
MOST_COPIES = 10_000_000

# What a model thought before it answered has three names; a template may ask for either.
_THOUGHTS = ("reasoning_content", "thinking", "reasoning")

# How many steps the template that is being rendered has left.
_left: ContextVar[list[int]] = ContextVar("_left")


class ChatTemplate:
    """A template that writes a chat as the text that a model was trained on.

    Templates come from elsewhere, so one is rendered in jinja's sandbox, where it reaches nothing
    but the chat, changes none of it, and stops after 1,000,000 calls and rounds of loops.

    Args:
        source: The template.
        origin: Where it is from, for errors.

    Attributes:
        source: The template.

    Raises:
        ImportError: If the package `jinja2` is not installed.
        ValueError: If it cannot be parsed.
    """

    def __init__(self, source: str, origin: str) -> None:
        self.source = source
        self._origin = origin
        environment, error_class = _environment()
        try:
            parsed = environment.parse(source)
            _count_rounds(parsed)
            self._template = environment.from_string(parsed)
        except (error_class, RecursionError) as error:
            raise ValueError(f"{origin}: the chat template cannot be parsed: {error}") from error

    def render(self, messages: Sequence[Mapping[str, Any]], **variables: Any) -> str:
        """The text of a chat.

        Args:
            messages: The messages, each with its `role` and, mostly, its `content`.
            **variables: What the template may ask for, such as `add_generation_prompt`.

        Returns:
            The text.

        Raises:
            TypeError: If the messages are no list of dicts, or hold what JSON does not.
            ValueError: If there are none, or the template refuses them, fails, or goes on and on.
        """
        chat = _chat_of(messages)
        values = {name: _plain(name, value) for name, value in variables.items()}
        steps = _left.set([MOST_STEPS])
        try:
            return self._template.render(messages=chat, **values)
        except Exception as error:  # a template can raise what Python can
            what = str(error).partition("\n")[0] or type(error).__name__
            raise ValueError(
                f"{self._origin}: the chat template raises on these messages: {what}"
            ) from error
        finally:
            _left.reset(steps)


def _step() -> None:
    """Counts a call, or a round of a loop."""
    left = _left.get()
    left[0] -= 1
    if left[0] < 0:
        raise ValueError(f"it does not end within {MOST_STEPS:,} calls and rounds of loops")


def _environment() -> tuple[Any, type[Exception]]:
    """Where templates are parsed, and what is raised where one cannot be."""
    try:
        import jinja2
        import jinja2.ext
        import jinja2.sandbox
    except ImportError as error:
        raise ImportError("chat templates need the package jinja2; install it") from error

    class Generation(jinja2.ext.Extension):
        """Takes the marks around what the model is to write, and leaves what is between them."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return jinja2.nodes.Scope(body, lineno=line)

    class Sandbox(jinja2.sandbox.ImmutableSandboxedEnvironment):
        """The sandbox, which also counts calls and looks at products."""

        intercepted_binops = frozenset(["*", "**"])

        def call(self, context: Any, called: Any, /, *args: Any, **kwargs: Any) -> Any:
            _step()
            return super().call(context, called, *args, **kwargs)

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            _require_small(operator, left, right)
            return super().call_binop(context, operator, left, right)

    @jinja2.pass_context  # so that it is not called where the template is parsed
    def counted(context: Any, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            _step()
            yield value

    def raise_exception(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment = Sandbox(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters |= {"tojson": _to_json, "_counted": counted}
    environment.globals |= {"raise_exception": raise_exception, "strftime_now": _now}
    return environment, jinja2.TemplateError


def _count_rounds(parsed: Any) -> None:
    from jinja2 import nodes

    for loop in parsed.find_all(nodes.For):
        line = loop.iter.lineno
        loop.iter = nodes.Filter(loop.iter, "_counted", [], [], None, None, lineno=line)


def _require_small(operator: str, left: Any, right: Any) -> None:
    if operator == "**":
        # Of the size of the result: digits of the base times the exponent.
        size = max(len(str(left)), 1) * abs(right) if isinstance(right, int) else 0
        if size > 10_000:
            raise ValueError(f"{shown(left)} ** {shown(right)} is too large")
        return
    for several, times in ((left, right), (right, left)):
        if isinstance(several, str | list | tuple) and isinstance(times, int):
            if len(several) * times > MOST_COPIES:
                raise ValueError(f"{times:,} copies of {shown(several)} are too many")


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """The filter of templates; jinja's own writes <, >, & and ' in another way, for HTML."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _now(form: str) -> str:
    return datetime.now().strftime(form)


def _chat_of(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages as the template gets them: copies, without what is None."""
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
        raise TypeError(
            "messages must be a list of dicts such as {'role': 'user', 'content': 'Hello'}, got "
            f"{shown(messages)} of type {type(messages).__name__}"
        )
    if not messages:
        raise ValueError("messages must hold one message at least, got none")
    chat = []
    for i, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise TypeError(
                f"messages[{i}] must be a dict such as {{'role': 'user', 'content': 'Hello'}}, got "
                f"{shown(message)} of type {type(message).__name__}"
            )
        copied = {
            key: _plain(f"messages[{i}]", each) for key, each in message.items() if each is not None
        }
        for name in _THOUGHTS:
            if name in copied:
                thought = copied[name]
                copied = {"thinking": thought, **copied, "reasoning_content": thought}
                break
        chat.append(copied)
    return chat


def _plain(name: str, value: Any) -> Any:
    """A copy of what JSON can hold: other things have methods that a template might call."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Mapping):
        return {key: _plain(name, each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(name, each) for each in value]
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(
        f"{name} must hold what JSON can hold, got {shown(value)} of type {type(value).__name__}"
    )
