"""`python -m tools.unheld_sentences`: prints the sentences of lessons that nothing holds.

A sentence with a number that no cell has glued in, and one with a word such as *all* or *never*,
carries the chip of a claim, or stands with its reason in `held_otherwise.yml` of the book.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from tools.unheld_sentences.lessons import lessons, pages
from tools.unheld_sentences.prose import Sentence, sentences

BOOK = Path("book")
EXCEPTIONS = "held_otherwise.yml"
# A number is a word of its own: GPT-2, float16 and L1 are names.
_NUMBER = re.compile(r"(?<![\w.-])\d|(?<=\s[-\u2212+])\d")
# So is an all-reduce.
_ALWAYS = re.compile(r"\b(all|never|only|any|always|cannot)\b(?!-)", re.IGNORECASE)


def why(sentence: Sentence) -> str:
    """What in a sentence has to be held and is not; empty where nothing is."""
    if sentence.has_chip:
        return ""
    kinds = {"number": _NUMBER, "always": _ALWAYS}
    return ", ".join(kind for kind, pattern in kinds.items() if pattern.search(sentence.words))


def unheld(page: Path) -> Iterator[tuple[Sentence, str]]:
    """The sentences of a page that no chip and no cell holds, each with what is to be held."""
    for sentence in sentences(page):
        if kind := why(sentence):
            yield sentence, kind


def exceptions(file: Path) -> Mapping[str, str]:
    """The sentences that are held otherwise, each with its reason.

    Raises:
        ValueError: If the file is no mapping of sentences to reasons.
    """
    if not file.is_file():
        return {}
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"{file}: it is no YAML. Remedy: mend it: {error}") from error
    if not isinstance(found, dict) or not all(
        isinstance(each, str) and each.strip() for pair in found.items() for each in pair
    ):
        raise ValueError(
            f"{file}: it is no list of sentences with reasons. "
            'Remedy: write each as "The sentence.": the reason'
        )
    return {" ".join(sentence.split()): reason for sentence, reason in found.items()}


def report(asked: Sequence[Path], held: Mapping[str, str], file: Path, whole: bool) -> list[str]:
    """A line for each sentence that nothing holds, and for each exception that is out of date.

    Args:
        asked: The pages.
        held: The exceptions, and their reasons.
        file: Where the exceptions stand.
        whole: Whether these are all pages that the exceptions are for.
    """
    lines, met = [], set()
    for page in asked:
        for sentence, kind in unheld(page):
            met.add(sentence.text)
            if sentence.text not in held:
                lines.append(f"{page}:{sentence.line}: {sentence.text} ({kind})")
    if whole:
        lines += [f"{file}: no lesson needs it any more: {each}" for each in held.keys() - met]
    return sorted(lines, key=lambda line: line.startswith(str(file)))


def counts(asked: Sequence[Path], held: Mapping[str, str]) -> list[str]:
    """How many sentences of each page nothing holds, and how many of all."""
    found = {page: sum(sentence.text not in held for sentence, _ in unheld(page)) for page in asked}
    return [f"{number:5} {page}" for page, number in found.items()] + [
        f"{sum(found.values()):5} sentences"
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Reads the pages, prints what is found, and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.unheld_sentences", description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, help="pages or folders; else all lessons")
    parser.add_argument("--count", action="store_true", help="count the sentences of each page")
    parser.add_argument("--book", type=Path, default=BOOK, help="the folder of the book")
    options = parser.parse_args(arguments)
    file = options.book / EXCEPTIONS
    asked = lessons(options.book) if not options.count else pages(options.book)
    if options.pages:
        asked = [
            page for each in options.pages for page in ([each] if each.is_file() else pages(each))
        ]
        if missing := [str(each) for each in options.pages if not each.exists()]:
            parser.error(f"there is no {', '.join(missing)}")
    try:
        held = exceptions(file)
    except ValueError as error:
        parser.error(str(error))
    if options.count:
        print("\n".join(counts(asked, held)))
        return 0
    lines = report(asked, held, file, whole=not options.pages)
    number = sum(not line.startswith(f"{file}: ") for line in lines)
    print("\n".join([*lines, f"{number} sentences that nothing holds, in {len(asked)} pages"]))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
