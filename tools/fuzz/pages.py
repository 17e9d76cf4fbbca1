"""Pages of segments, in Markdown and reStructuredText, and what must become of each."""

import random
import re
from dataclasses import dataclass, field
from pathlib import Path

from tools.fuzz.mistakes import loosened, wrong
from tools.fuzz.segments import Segment, segment

FRONT_MATTER = """\
---
file_format: mystnb
kernelspec: {name: python3, display_name: Python 3, language: python}
---

# A page

"""
TITLE = "A page\n======\n\n"
_DOTS = re.compile(r"(\\*)\.\.\.")


def escaped(text: str) -> str:
    """A text as a block has it, in which three dots stand for themselves."""
    return _DOTS.sub(lambda match: match[1] * 2 + r"\...", text)


@dataclass
class Placed:
    """A segment on a page.

    Attributes:
        state: "missing", "right", "loosened", "wrong" or "silent".
        body: The lines of its block.
        block: The block as it is written; empty if there is none.
        line: The line, from 1, of its block, or of its cell if there is none.
    """

    segment: Segment
    state: str
    body: str
    cell: str
    block: str
    line: int = 0


@dataclass
class FuzzPage:
    """A page, and how it is stored."""

    suffix: str
    newline: str = "\n"
    bom: bool = False
    parts: list[str | Placed] = field(default_factory=list)

    @property
    def placed(self) -> list[Placed]:
        return [part for part in self.parts if isinstance(part, Placed)]

    def text(self) -> str:
        """The page with line breaks of its own, and the lines of its blocks counted."""
        text = ""
        for part in self.parts:
            if isinstance(part, str):
                text += part
                continue
            part.line = text.count("\n") + 1
            text += part.cell
            if part.block:
                part.line = text.count("\n") + 1
                text += part.block
        return text

    def write(self, path: Path) -> None:
        """Stores the page."""
        data = self.text().replace("\n", self.newline).encode()
        path.write_bytes(b"\xef\xbb\xbf" * self.bom + data)

    def only_blocks_changed(self, data: bytes) -> str | None:
        """What is wrong with the page as it is stored now; None if only blocks are others."""
        if data.startswith(b"\xef\xbb\xbf") != self.bom:
            return "the byte order mark"
        text = data.decode("utf-8-sig")
        if self.newline == "\r\n" and re.search(r"(?<!\r)\n", text):
            return "a line break"
        if self.newline == "\n" and "\r" in text:
            return "a carriage return"
        text, place = text.replace("\r\n", "\n") + "\n", 0
        for part in self.parts:
            if isinstance(part, str):
                if not text.startswith(part, place):
                    return f"{text[place : place + 60]!r} in place of {part[:60]!r}"
                place += len(part)
                continue
            kept = part.cell + part.block
            if part.state in ("missing", "wrong"):
                kept = part.cell.rstrip("\n")
            if not text.startswith(kept, place):
                return f"{text[place : place + 60]!r} in place of {kept[:200]!r}"
            place += len(kept)
            if part.state in ("missing", "wrong"):
                found = _BLOCK[self.suffix].match(text, place)
                if not found:
                    return f"no block at {text[place : place + 60]!r}, below {part.cell[-200:]!r}"
                place = found.end()
                if not text.startswith("\n", place):
                    return f"{text[place : place + 60]!r} in place of a line break"
                place += 1
        if text[place:].strip("\n"):
            return f"{text[place : place + 60]!r} at the end"
        return None


_BLOCK = {
    ".md": re.compile(
        r"\n+[ ]*(?P<fence>`{3,}|~{3,}|:{3,})\s*\{expect-output\}[^\n]*\n"
        r"(?:.*?\n)??[ ]*(?P=fence)[`~:]*(?=\n|$)",
        re.DOTALL,
    ),
    ".rst": re.compile(
        r"\n+(?P<indent>[ \t]*)\.\. expect-output::[^\n]*"
        r"(?:(?:\n[ \t]*)*\n(?P=indent)[ \t]+[^\s][^\n]*)*"
    ),
}


def make_page(rng: random.Random, suffix: str, count: int) -> FuzzPage:
    """A page of segments."""
    page = FuzzPage(suffix, rng.choice(["\n", "\n", "\r\n"]), rng.random() < 0.1)
    page.parts.append(FRONT_MATTER if suffix == ".md" else TITLE)
    for index in range(count):
        made = segment(rng)
        if suffix == ".rst" and made.tags == ("remove-cell",):
            made = Segment(made.code, "", ("remove-output",))
        state, body = _state(rng, made)
        place = _markdown if suffix == ".md" else _rst
        page.parts += place(rng, made, state, body, index)
    if rng.random() < 0.3 and isinstance(page.parts[-1], str):
        page.parts[-1] = page.parts[-1].rstrip("\n")
    return page


def _state(rng: random.Random, made: Segment) -> tuple[str, str]:
    """What an author has written below a cell."""
    if not made.text:
        return "silent", ""
    state = rng.choice(["missing", "right", "right", "loosened", "wrong", "wrong"])
    if made.words and state in ("missing", "loosened"):
        state = "right"
    text = escaped(made.text)
    if state == "loosened":
        text = loosened(rng, text)
    elif state == "wrong":
        changed = wrong(rng, made.text, bool(made.words))
        if changed is None or not changed.strip():
            return "right", text.rstrip("\n")
        text = escaped(changed)
    return state, "" if state == "missing" else text.rstrip("\n")


def _fence(rng: random.Random, body: str, character: str) -> str:
    longest = max((len(run) for run in re.findall(f"{character}{{3,}}", body)), default=2)
    return character * (longest + 1 + rng.choice([0, 0, 2]))


def _markdown(
    rng: random.Random, made: Segment, state: str, body: str, index: int
) -> list[str | Placed]:
    fence = _fence(rng, made.code, rng.choice("``~"))
    tags = ""
    if made.tags:
        names = ", ".join(made.tags)
        tags = rng.choice([f":tags: [{names}]\n", f"---\ntags: [{names}]\n---\n"])
        tags += rng.choice(["", "\n"])
    elif made.code.startswith((":", "---")):
        tags = ":tags: []\n\n"
    language = rng.choice([" ipython3", " python", ""])
    cell = f"{fence}{{code-cell}}{language}\n{tags}{made.code}\n{fence}\n"
    block = ""
    if state not in ("missing", "silent"):
        mark = _fence(rng, body, rng.choice("```~:"))
        words = "".join(f" {word}" for word in made.words)
        block = f"{mark}{{expect-output}}{words}\n{body}\n{mark}\n"
        block = "\n" * rng.choice([0, 1, 1, 2, 3]) + block
        cell, block = cell + block[: len(block) - len(block.lstrip("\n"))], block.lstrip("\n")
    after = rng.choice(
        ["\n", "\nProse after it.\n\n", "\n\n## A heading\n\n", "\n```{note}\nA note.\n```\n\n"]
    )
    return [Placed(made, state, body, cell, block), after]


def _rst(
    rng: random.Random, made: Segment, state: str, body: str, index: int
) -> list[str | Placed]:
    before, indent = rng.choice(
        [
            ("", ""),
            ("", ""),
            ("", ""),
            (".. note::\n\n   A note:\n\n", "   "),
            ("- An item:\n\n", "  "),
            ("1. An item:\n\n", "   "),
            ("A term\n   Its meaning:\n\n", "   "),
            (".. note::\n\n\tTabs:\n\n", "\t"),
            ("..\n\n   Quoted:\n\n", "   "),
        ]
    )
    if before.startswith("..\n"):  # an empty comment ends what stands before the quotation
        before = "..\n\n   Quoted:\n\n"
    tags = f"{indent}   :tags: [{', '.join(made.tags)}]\n" if made.tags else ""
    code = _indented(made.code, indent + "   ")
    cell = f"{indent}.. code-cell:: ipython3\n{tags}\n{code}\n"
    block = ""
    if state not in ("missing", "silent"):
        words = "".join(f" {word}" for word in made.words)
        body_text = _indented(body, indent + "   ")
        cell += "\n" * rng.choice([1, 1, 2, 3])
        block = f"{indent}.. expect-output::{words}\n\n{body_text}\n"
    after = rng.choice(
        ["\n", "\nProse after it.\n\n", f"\nA heading {index}\n-----------------\n\n"]
    )
    return [before, Placed(made, state, body, cell, block), after]


def _indented(text: str, indent: str) -> str:
    return "\n".join(indent + line if line.strip() else "" for line in text.split("\n"))
