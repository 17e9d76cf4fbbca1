"""Builds books made by chance and tells what the extension got wrong. Exit status 1 if anything."""

import argparse
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.verified_book import forks
from tools.fuzz.pages import make_page

SETTINGS = """\
extensions = ["verified_book", "verified_book.parallel"]
master_doc = "index"
exclude_patterns = ["_build"]
nb_execution_mode = "cache"
nb_execution_timeout = 300
nb_execution_allow_errors = True
myst_enable_extensions = ["colon_fence"]
nb_merge_streams = {merge}
"""
PLACE = re.compile(r"^(\S+?):(\d+): ERROR: (.*)$", re.MULTILINE)


class Book:
    """A book of pages made by chance."""

    def __init__(self, folder: Path, rng: random.Random, pages: int, segments: int) -> None:
        self.folder, self.pages = folder, {}
        merge = rng.random() < 0.5
        for index in range(pages):
            suffix = rng.choice([".md", ".md", ".rst"])
            self.pages[f"page{index}{suffix}"] = make_page(rng, suffix, segments)
        folder.mkdir(parents=True)
        (folder / "conf.py").write_text(SETTINGS.format(merge=merge))
        names = "\n".join(f"   {Path(name).stem}" for name in self.pages)
        (folder / "index.rst").write_text(f"Book\n====\n\n.. toctree::\n\n{names}\n")
        for name, page in self.pages.items():
            page.write(folder / name)

    def build(self, accept: bool = False) -> tuple[int, str]:
        arguments = ["--no-color", "-b", "dummy", ".", "_build/dummy"]
        settings = {"VERIFIED_BOOK_ACCEPT": "1" if accept else "0"}
        log = self.folder.with_suffix(".log")
        run = forks.Run(forks.sphinx, arguments, self.folder, settings, log)
        return run.wait(600), run.log

    def failures(self, log: str) -> dict[tuple[str, int], str]:
        return {(Path(path).name, int(line)): message for path, line, message in PLACE.findall(log)}

    def stored(self) -> dict[str, bytes]:
        return {name: (self.folder / name).read_bytes() for name in self.pages}


def trial(folder: Path, seed: int, pages: int, segments: int) -> tuple[Counter[str], list[str]]:
    """One book from its first build to its second accept; what it held and what went wrong."""
    book = Book(folder, random.Random(seed), pages, segments)
    counts = Counter(placed.state for page in book.pages.values() for placed in page.placed)
    wrong: list[str] = []

    def report(kind: str, place: object, detail: str = "") -> None:
        wrong.append(f"{kind}: seed {seed}, {place}: {detail}")

    status, log = book.build()
    found = book.failures(log)
    if "Traceback" in log or "Extension error" in log:
        report("exception", "first build", log[-1500:])
    for name, page in book.pages.items():
        page.text()  # counts lines
        for placed in page.placed:
            flagged = (name, placed.line) in found
            must = placed.state in ("missing", "wrong")
            if flagged != must:
                kind = "wrong green" if must else "wrong red"
                detail = f"{placed.state} {placed.segment.code!r} block {placed.body!r}"
                report(kind, f"{name}:{placed.line}", detail + f" {found.get((name, placed.line))}")
    known = {(name, placed.line) for name, page in book.pages.items() for placed in page.placed}
    for place in found.keys() - known:
        report("failure at no block", place, found[place])
    if (status == 0) != (counts["missing"] + counts["wrong"] == 0):
        report("exit status", status)

    status, log = book.build(accept=True)
    accepted = book.stored()
    if status:
        report("accept", "refused", "\n".join(map(str, book.failures(log).items()))[:1500])
    for name, page in book.pages.items():
        if moved := page.only_blocks_changed(accepted[name]):
            report("lost or moved line", name, moved)
    status, log = book.build()
    if status:
        report("red after accept", "", "\n".join(map(str, book.failures(log).items()))[:1500])
    shutil.rmtree(book.folder / "_build")
    status, log = book.build(accept=True)
    if status or book.stored() != accepted:
        changed = [name for name, data in book.stored().items() if data != accepted[name]]
        report("second accept", changed, f"status {status}")
    return counts, wrong


def main() -> int:
    """Runs trials until the number of segments is reached."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--segments", type=int, default=5000, help="how many cells in all")
    parser.add_argument("--seed", type=int, default=1, help="of the first book")
    parser.add_argument("--keep", action="store_true", help="leave the books that went wrong")
    options = parser.parse_args()
    pages, size = 6, 50
    done: Counter[str] = Counter()
    wrong: list[str] = []
    seed, started = options.seed, time.monotonic()
    while done.total() < options.segments:
        folder = Path(tempfile.mkdtemp(prefix="fuzz-")) / f"book{seed}"
        counts, found = trial(folder, seed, pages, size)
        done += counts
        wrong += found
        print(f"seed {seed}: {dict(counts)}, {len(found)} wrong", flush=True)
        print("\n".join(found), end="\n" * bool(found), flush=True)
        if not (found and options.keep):
            shutil.rmtree(folder.parent, ignore_errors=True)
        elif options.keep:
            print(f"kept: {folder}")
        seed += 1
    kinds = Counter(item.partition(":")[0] for item in wrong)
    print(f"{done.total()} segments ({dict(done)}) in {time.monotonic() - started:.0f} s")
    print(f"wrong: {dict(kinds) or 'nothing'}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
