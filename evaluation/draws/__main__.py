"""`python -m evaluation.draws`, `make draws`: every chapter of the built book with other seeds.

Each claim must hold in each: no cell may fail, and evidence must say what it says in the book.
Printed tensors may differ. The exit status is 1 if something was the luck of its seed.
"""

import argparse
import importlib
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from multiprocessing import connection
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from evaluation.draws import chapter

SITE = Path("book/_build/html/_sources")

# What chapters import and is slow to import: here once, instead of in every process.
SLOW = (
    "layer_checks",
    "matplotlib.figure",
    "torch._dynamo",
    "torch.export",
    "transformers.models.gpt2.modeling_gpt2",
    "book_site.figures",
)

FORK = multiprocessing.get_context("fork")


def runs(
    jobs: Sequence[tuple[Path, int]], workers: int
) -> Iterator[tuple[Path, int, str, list[dict[str, Any]]]]:
    """Each chapter with its shift of the seeds in a process of its own, as they end."""
    waiting = list(reversed(jobs))
    running: dict[Any, tuple[multiprocessing.process.BaseProcess, Path, int, Path]] = {}
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < workers:
                notebook, shift = waiting.pop()
                result = Path(folder, f"{len(waiting)}.json")
                begun = FORK.Process(target=run, args=(notebook, shift, result))
                begun.start()
                running[begun.sentinel] = begun, notebook, shift, result
            for sentinel in connection.wait(list(running)):
                ended, notebook, shift, result = running.pop(sentinel)
                ended.join()
                if ended.exitcode:
                    yield notebook, shift, f"exit status {ended.exitcode}", []
                else:
                    yield notebook, shift, "", json.loads(result.read_text(encoding="utf-8"))


def run(notebook: Path, shift: int, result: Path) -> None:
    """One chapter with one shift of its seeds; in the process that is its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    found = chapter.found(notebook, 1000 * shift)
    result.write_text(json.dumps(found), encoding="utf-8")


def main() -> int:
    """Runs the chapters and prints which cells were luck."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.draws", description=__doc__)
    parser.add_argument("pages", nargs="*", help="chapters such as normalization/dropout; all else")
    parser.add_argument("--seeds", type=int, default=10, help="how many other seeds")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    notebooks = sorted(SITE.rglob("*.ipynb"))
    if asked.pages:
        notebooks = [SITE / f"{page}.ipynb" for page in asked.pages]
    if missing := [str(each) for each in notebooks if not each.is_file()]:
        sys.exit(f"no such notebook: {', '.join(missing)}; run `make book` first")
    if not notebooks:
        sys.exit(f"no notebook in {SITE}; run `make book` first")
    jobs = list(product(notebooks, range(1, asked.seeds + 1)))
    for module in SLOW:
        importlib.import_module(module)
    torch.set_num_threads(1)  # a thread that has begun does not come along
    count = 0
    told = tqdm(runs(jobs, asked.workers), total=len(jobs), unit="run", mininterval=5)
    for notebook, shift, error, found in told:
        page = notebook.relative_to(SITE).with_suffix("").as_posix()
        told.set_postfix_str(page, refresh=False)
        count += len(found) + bool(error)
        if error:
            told.write(f"{page}, seeds + {1000 * shift}: the run ended with {error}")
        for each in found:
            code = str(each["code"]).strip().splitlines()[-1]
            place = f"{page}, cell {each['place']}, seeds + {1000 * shift}"
            told.write(f"{place}: {each['what']}\n    {code}")
    print(
        f"{len(notebooks)} chapters, {asked.seeds} other seeds each: {count or 'no'} cells of luck"
    )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
