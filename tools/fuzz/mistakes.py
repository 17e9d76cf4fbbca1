"""Blocks as authors write them: rounded and shortened where they may be, or wrong in one place."""

import random
import re
from decimal import ROUND_HALF_EVEN, Decimal

_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[A-Za-z]{3,}")
_DECIMAL = re.compile(r"(?<![\w.])-?\d{1,9}\.\d{3,12}(?![\w.])")


def loosened(rng: random.Random, text: str) -> str:
    """The same, with numbers rounded, a word left out, or white space of another width."""
    way = rng.choice(["round", "shorten", "space", "same"])
    if way == "round":
        return _DECIMAL.sub(_rounded, text)
    if way == "space":
        return text.replace(" ", "  ").strip()
    words = [match for match in _LETTER.finditer(text) if _alone(text, match)]
    if way == "shorten" and len(words) > 1:
        chosen = rng.choice(words)
        return f"{text[: chosen.start()]}...{text[chosen.end() :]}"
    return text


def _rounded(match: re.Match[str]) -> str:
    return str(Decimal(match[0]).quantize(Decimal("0.01"), ROUND_HALF_EVEN))


def _alone(text: str, match: re.Match[str]) -> bool:
    """Whether a word has blanks around it, so that leaving it out joins nothing."""
    around = text[max(match.start() - 1, 0) : match.start()] + text[match.end() : match.end() + 1]
    return around == "  "


def wrong(rng: random.Random, text: str, exact: bool = False) -> str | None:
    """The text with one mistake that a reader would call one; None if none can be made."""
    ways = [_digit, _letter, _less, _more, _swapped, _shape]
    if exact:
        ways.append(_moved)
    rng.shuffle(ways)
    for way in ways:
        made = way(rng, text)
        if made is not None:
            return made
    return None


def _digit(rng: random.Random, text: str) -> str | None:
    # Not in an exponent, where a zero stays a zero, and not in a word.
    places = [m.start() for m in re.finditer(r"(?<![\w.+-])\d+(?=[\s,)\]]|$)", text)]
    places += [m.start(1) for m in re.finditer(r"(?<![\w.])\d+\.\d*(\d)(?![\w.])", text)]
    if not places:
        return None
    place = rng.choice(places)
    other = str((int(text[place]) + rng.randint(1, 9)) % 10)
    if text[place].isascii() is False or (other == "0" and text[place - 1 : place] in ("", " ")):
        return None
    return text[:place] + other + text[place + 1 :]


def _letter(rng: random.Random, text: str) -> str | None:
    words = list(_LETTER.finditer(text))
    if not words:
        return None
    place = rng.choice(words).start()
    other = "q" if text[place] != "q" else "w"
    return text[:place] + other + text[place + 1 :]


def _less(rng: random.Random, text: str) -> str | None:
    lines = text.split("\n")
    full = [
        index for index, line in enumerate(lines) if _LETTER.search(line) or _DIGIT.search(line)
    ]
    if len(full) < 2:
        return None
    del lines[rng.choice(full)]
    return "\n".join(lines)


def _more(rng: random.Random, text: str) -> str | None:
    lines = text.split("\n")
    lines.insert(rng.randint(0, len(lines)), "and one more")
    return "\n".join(lines)


def _swapped(rng: random.Random, text: str) -> str | None:
    lines = text.split("\n")
    pairs = [
        index
        for index in range(len(lines) - 1)
        if _letters(lines[index]) != _letters(lines[index + 1])
        and _letters(lines[index])
        and _letters(lines[index + 1])
    ]
    if not pairs:
        return None
    index = rng.choice(pairs)
    lines[index : index + 2] = lines[index + 1], lines[index]
    return "\n".join(lines)


def _letters(line: str) -> str:
    return "".join(_LETTER.findall(line))


def _shape(rng: random.Random, text: str) -> str | None:
    return text.replace("[[", "[", 1) if "[[" in text else None


def _moved(rng: random.Random, text: str) -> str | None:
    words = re.compile(r"(?<=\w)  (?=\w)")
    return words.sub("   ", text, count=1) if words.search(text) else None
