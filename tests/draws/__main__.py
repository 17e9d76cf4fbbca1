"""`python -m tests.draws`: every chapter of the built book with other seeds; `make draws` calls it.

Each claim must hold in each: no cell may fail, and evidence must say what it says in the book.
Printed tensors may differ. The exit status is 1 if something was the luck of its seed.
"""

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from tqdm import tqdm

from tests.draws import chapter

SITE = Path("book/_build/html/_sources")


def run(job: tuple[Path, int]) -> tuple[Path, int, str, list[dict[str, object]]]:
    """One chapter with one shift of its seeds, in a process of its own."""
    notebook, shift = job
    command = [sys.executable, "-m", chapter.__name__, str(notebook), str(1000 * shift)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return notebook, shift, done.stderr.strip().rpartition("\n")[2], []
    return notebook, shift, "", json.loads(done.stdout)


def main() -> int:
    """Runs the chapters and prints which cells were luck."""
    parser = argparse.ArgumentParser(prog="python -m tests.draws", description=__doc__)
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
    count = 0
    with ThreadPoolExecutor(asked.workers) as pool:
        for notebook, shift, error, found in tqdm(
            pool.map(run, jobs), total=len(jobs), unit="run", disable=None
        ):
            page = notebook.relative_to(SITE).with_suffix("")
            count += len(found) + bool(error)
            if error:
                tqdm.write(f"{page}, seeds + {1000 * shift}: the run ended with {error}")
            for each in found:
                code = str(each["code"]).strip().splitlines()[-1]
                place = f"{page}, cell {each['place']}, seeds + {1000 * shift}"
                tqdm.write(f"{place}: {each['what']}\n    {code}")
    print(
        f"{len(notebooks)} chapters, {asked.seeds} other seeds each: {count or 'no'} cells of luck"
    )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
