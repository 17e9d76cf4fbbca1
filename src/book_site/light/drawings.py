"""Writes drawings in fewer bytes that look the same to a hundredth of a point.

What matplotlib repeats is said once or left out: groups without attributes, comments, paths that
paint nothing, closing lines, spaces in styles. Text, roles, labels and links stay as they are.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_TOKEN = re.compile(r"<!--.*?-->|<[^>]*>|[^<]+", re.DOTALL)
_TAG = re.compile(r"<(/?)([\w:]+)((?:[^>\"]|\"[^\"]*\")*?)(/?)>", re.DOTALL)
_ATTRIBUTE = re.compile(r'([\w:-]+)="([^"]*)"')
_COMMAND = re.compile(r"[A-Za-z]|[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
_NUMBER = re.compile(r"(?<![\w.#-])(-?)0(?=\.\d)")
_UNUSED = re.compile(r'<defs></defs>| version="1.1"| xmlns:xlink="[^"]*"(?!.* xlink:)', re.DOTALL)
_OPACITY = re.compile(r"(?<=opacity:)(\d?\.\d{3})\d+")
_HASH = re.compile(r'(?<=[="#(])[mp][0-9a-f]{10}(?=[")])')
# Numbers of a path behind each command, of those that matplotlib writes.
_TAKES = {"M": 2, "L": 2, "H": 1, "V": 1, "Q": 4, "C": 6, "Z": 0}
_PLACES = {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "points"}
# What a group may say for all that it holds.
_INHERITED = re.compile(r"(?:(?:fill|stroke)[\w-]*|font-[\w-]+|text-anchor):")


def shortened(drawing: str, names: Mapping[str, str] | None = None) -> str:
    """A drawing in fewer bytes.

    Args:
        drawing: An `svg` element.
        names: Other names for those that matplotlib makes of digests.

    Examples:
        >>> shortened('<svg><g><path d="M 1 2 L 3.456 2 L 1 2 z " style="fill: red"/></g></svg>')
        '<svg><path d="M1 2H3.46z" style="fill:red"/></svg>'
    """
    tokens = [token for token in map(_short, _TOKEN.findall(drawing)) if token]
    tokens = list(_needed(tokens))
    while (grouped := list(_grouped(tokens))) != tokens:
        tokens = grouped
    text = "".join(tokens)
    text = _UNUSED.sub("", text)
    return _HASH.sub(lambda name: names.get(name[0], name[0]), text) if names else text


def names_in(drawings: str, prefix: str = "d") -> dict[str, str]:
    """Short names, for all that matplotlib has made of digests on a page.

    Examples:
        >>> names_in('<path id="m0123456789"/><use href="#m0123456789"/>')
        {'m0123456789': 'd0'}
    """
    found = dict.fromkeys(_HASH.findall(drawings))
    return {name: f"{prefix}{number}" for number, name in enumerate(found)}


def _short(token: str) -> str:
    if token.startswith("<!--"):
        return ""
    if not token.startswith("<"):
        return token if token.strip() else ""
    tag = _TAG.fullmatch(token)
    if not tag or tag[1]:
        return token
    attributes = "".join(
        f' {name}="{value}"' for name, value in _attributes(tag[2], tag[3]) if value or name != "d"
    )
    return f"<{tag[2]}{attributes}{tag[4]}>"


def _attributes(element: str, text: str) -> Iterator[tuple[str, str]]:
    for name, value in _ATTRIBUTE.findall(text):
        if name == "d":
            yield name, path(value)
        elif name == "style":
            yield name, _style(value)
        elif name in _PLACES or (name == "transform" and value.startswith("translate")):
            yield name, re.sub(r"-?\d*\.\d+(?![\d.]*e)", lambda found: _rounded(found[0]), value)
        elif name == "xlink:href" and element == "use":
            yield "href", value
        else:
            yield name, value


def _style(style: str) -> str:
    parts = (re.sub(r"\s*([:;,])\s*", r"\1", part.strip()) for part in style.split(";"))
    shown = (_OPACITY.sub(r"\1", part) for part in parts if part)
    return ";".join(_NUMBER.sub(r"\1", part) for part in shown)


def _rounded(number: str) -> str:
    return _number(round(float(number) * 100))


def _number(hundredths: int) -> str:
    """A number without the zeros that say nothing."""
    sign, (whole, part) = "-" * (hundredths < 0), divmod(abs(hundredths), 100)
    digits = f"{part:02}".rstrip("0")
    return sign + (f"{whole or ''}.{digits}" if digits else str(whole))


def path(data: str) -> str:
    """The data of a path, each place absolute or relative, as is shorter.

    Examples:
        >>> path("M 10 10 L 10 20.25 L 110.333 20 C 1 1 2 2 3 3")
        'M10 10V20.25L110.33 20C1 1 2 2 3 3'
    """
    found = _COMMAND.findall(data)
    at = (0, 0)
    start = (0, 0)
    written, last, i = "", "", 0
    pieces: list[tuple[str, list[int]]] = []
    command = ""
    while i < len(found):
        if found[i].isalpha() and found[i] not in "eE":
            command = found[i].upper() if found[i] in "zZ" else found[i]
            i += 1
        if command not in _TAKES:
            return data  # written by hand
        count = _TAKES[command]
        numbers = [round(float(number) * 100) for number in found[i : i + count]]
        i += count
        pieces.append((command, numbers))
        if command == "M":
            command = "L"
        if not count and i < len(found) and not found[i].isalpha():
            return data
    for number, (command, values) in enumerate(pieces):
        if command == "Z":
            written, last, at = written + "z", "z", start
            continue
        if command in "HV":
            end = (values[0], at[1]) if command == "H" else (at[0], values[0])
        else:
            end = (values[-2], values[-1])
        closes = number + 1 < len(pieces) and pieces[number + 1][0] == "Z"
        if command == "L" and closes and end == start and last:
            continue
        if command == "M":
            start = end
        elif command == "L" and end[1] == at[1]:
            command, values = "H", [end[0]]
        elif command == "L" and end[0] == at[0]:
            command, values = "V", [end[1]]
        if command == "H":
            moved = [values[0] - at[0]]
        elif command == "V":
            moved = [values[0] - at[1]]
        else:
            moved = [value - at[place % 2] for place, value in enumerate(values)]
        absolute = _said(command, values, last)
        relative = _said(command.lower(), moved, last)
        # A path begins where it says, for those who read only that.
        shorter = relative if len(relative) < len(absolute) and command != "M" else absolute
        last = command.lower() if shorter is relative else command
        written += shorter
        at = end
    return written


def _said(command: str, numbers: list[int], last: str) -> str:
    """A command with its numbers; one that is repeated needs no letter."""
    repeated = command == last and command not in "Mm"
    text = "" if repeated else command
    for number in map(_number, numbers):
        apart = bool(text) and text[-1].isdigit() and number[0] != "-"
        if apart or (repeated and not text and number[0] != "-"):
            text += " "
        text += number
    return text


def _needed(tokens: list[str]) -> Iterator[str]:
    """The elements without groups that say nothing, and without paths that paint nothing."""
    opened: list[str] = []
    within: list[str] = []
    for place, token in enumerate(tokens):
        tag = _TAG.fullmatch(token)
        if not tag:
            yield token
            continue
        following = tokens[place + 1] if place + 1 < len(tokens) else ""
        if tag[1]:
            kept = opened.pop() if opened else token
            if within:
                within.pop()
            if kept:
                yield token
        elif tag[4]:
            if not (tag[2] == "path" and _is_invisible(token, within)):
                yield token
        else:
            says = token != "<g>" or following.startswith(("<title", "<desc"))
            opened.append(token if says else "")
            within.append(token)
            if says:
                yield token


def _is_invisible(token: str, within: list[str]) -> bool:
    """Whether a path has neither a fill nor a line, nor a name."""
    if any("stroke" in each or each.startswith(("<defs", "<clipPath")) for each in within):
        return False
    found = dict(_ATTRIBUTE.findall(token))
    return found.keys() <= {"d", "style", "clip-path"} and found.get("style") == "fill:none"


def _grouped(tokens: list[str]) -> Iterator[str]:
    """Neighbors that share a style, or its beginning, in a group that has it."""
    run: list[_Painted] = []
    for token in [*tokens, ""]:
        own = _painted(token)
        if run and (own is None or own.key != run[0].key):
            yield from _group(run)
            run = []
        if own:
            run.append(own)
        elif token:
            yield token


class _Painted(NamedTuple):
    """An element whose style a group may have: the element without it, its clip, its style."""

    element: str
    clip: str
    style: list[str]

    @property
    def key(self) -> tuple[str, str]:
        """What neighbors have in common."""
        return self.clip, self.style[0]


def _painted(token: str) -> _Painted | None:
    tag = _TAG.fullmatch(token)
    if not tag or not tag[4] or tag[2] not in ("path", "use"):
        return None
    found = dict(_ATTRIBUTE.findall(tag[3]))
    style = found.pop("style", "").split(";")
    clip = found.pop("clip-path", "")
    if not all(_INHERITED.match(part) for part in style):
        return None
    rest = "".join(f' {name}="{value}"' for name, value in found.items())
    return _Painted(f"<{tag[2]}{rest}/>", clip, style)


def _group(run: list[_Painted]) -> Iterator[str]:
    shared = [part for part in run[0].style if all(part in each.style for each in run)]
    if len(run) == 1:
        yield _with(run[0].element, run[0].clip, shared)
        return
    yield _with("<g>", run[0].clip, shared)
    for each in run:
        yield _with(each.element, "", [part for part in each.style if part not in shared])
    yield "</g>"


def _with(element: str, clip: str, style: list[str]) -> str:
    added = (f' clip-path="{clip}"' if clip else "") + (
        f' style="{";".join(style)}"' if style else ""
    )
    end = "/>" if element.endswith("/>") else ">"
    return element.removesuffix(end) + added + end
